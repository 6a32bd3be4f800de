"""Writes a reference table of kinds: make_kinds.py FILE."""
import sys

import duckdb

duckdb.sql(f"COPY (SELECT 'kind ' || i AS name FROM range(10) t(i)) TO '{sys.argv[1]}'")
