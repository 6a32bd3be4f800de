"""Compares two folders of monthly files with datacompy on Polars. Prints, as JSON, its seconds and the values that differ by column.

Run by benches/diff.py, in an environment of its own.
"""
import json
import os
import sys
import time

os.environ["POLARS_MAX_THREADS"] = "2"
import datacompy  # noqa: E402
import polars as pl  # noqa: E402

one_folder, other_folder, keys = sys.argv[1], sys.argv[2], sys.argv[3].split(",")
changed = {}
begun = time.perf_counter()
for month in sorted(os.listdir(one_folder)):
    one, two = (pl.read_parquet(f"{side}/{month}/part-0.parquet", hive_partitioning=False) for side in (one_folder, other_folder))
    for column in datacompy.PolarsCompare(one, two, join_columns=keys).column_stats:
        changed[column["column"]] = changed.get(column["column"], 0) + int(column["unequal_cnt"])
print(json.dumps({"seconds": time.perf_counter() - begun, "changed": changed}))
