"""Prints the sum of a column of a Parquet file, by DuckDB: sum_of.py FILE COLUMN."""
import sys

import duckdb

file, column = sys.argv[1:]
print(duckdb.sql(f'SELECT sum("{column}")::BIGINT FROM \'{file}\'').fetchall()[0][0])
