-- The defective logic that production was made with: a cancelled flight has no delay, and counted
-- as on time.
SELECT
    flight_date,
    carrier,
    flight,
    origin,
    dest,
    tailnum,
    sched_dep_time,
    distance,
    COALESCE(dep_delay, 0) AS delay_minutes,
    COALESCE(dep_delay, 0) <= 15 AS on_time
FROM flights
WHERE flight_date >= $start
  AND flight_date < $end
