-- Rows that break the rule: on_time is known exactly where the delay is.
SELECT flight_date, carrier, flight, origin, delay_minutes, on_time
FROM on_time
WHERE (delay_minutes IS NULL) <> (on_time IS NULL)
ORDER BY flight_date, carrier, flight, origin
