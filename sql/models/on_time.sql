-- On-time departures, one row a scheduled flight.
-- Inputs:  flights ($start to $end), corrections (late corrections of delays, same days).
-- Grain:   carrier, flight, origin within a flight_date.
-- A cancelled flight has no delay and is neither on time nor late.
SELECT
    COALESCE(corrections.local_date, flights.flight_date) AS flight_date,
    flights.carrier,
    flights.flight,
    flights.origin,
    flights.dest,
    flights.tailnum,
    flights.sched_dep_time,
    flights.distance,
    COALESCE(corrections.dep_delay, flights.dep_delay) AS delay_minutes,
    COALESCE(corrections.dep_delay, flights.dep_delay) <= $late_after_minutes AS on_time
FROM flights
LEFT JOIN corrections
    ON corrections.carrier = flights.carrier
    AND corrections.flight = flights.flight
    AND corrections.origin = flights.origin
    AND corrections.flight_date = flights.flight_date
WHERE flights.flight_date >= $start
  AND flights.flight_date < $end
