"""Counts exported rows, and those whose production value is the dataset's and whose candidate value has the other sign.

count_turned.py FILE DATASET
"""
import sys

import duckdb

file, dataset = sys.argv[1:]
print(*duckdb.sql(f"""SELECT count(*), count(*) FILTER (WHERE e.candidate = -e.production AND p.rate = e.production)
    FROM '{file}' e JOIN read_parquet('{dataset}/**/*.parquet', hive_types_autocast = false) p ON p.id = e.id AND p.day = e.partition""").fetchall()[0])
