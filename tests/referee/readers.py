"""Reads a dataset's files with DuckDB, Polars and pyarrow, and requires that all see the same rows,
types and partition values; and that no wildcard below the root meets anything but the root's files.

readers.py FILES_JSON ROOT COLUMN EXPECTED_ROWS [VIEW_SQL]

The ready view, where there is one, must show the same rows.
"""
import glob
import json
import os
import sys

import duckdb
import polars
import pyarrow.dataset as ds

files_json, root, column, expected, *view = sys.argv[1:]
files = [entry["path"] for entry in json.load(open(files_json))["files"]]
assert files

quoted = ", ".join("'" + path.replace("'", "''") + "'" for path in files)
con = duckdb.connect()
scan = f"read_parquet([{quoted}], hive_partitioning = true)"
types = {name: kind for name, kind, *_ in con.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()}
columns = sorted(types)
by_duckdb = con.execute(f"SELECT {column}, count(*), count(on_time), sum(delay_minutes), sum(distance) FROM {scan} GROUP BY 1 ORDER BY 1").fetchall()
by_duckdb = [(str(day), *rest) for day, *rest in by_duckdb]

frame = polars.scan_parquet(files, hive_partitioning=True)
assert sorted(frame.collect_schema().names()) == columns, (frame.collect_schema(), columns)
summed = frame.group_by(column).agg(
    polars.len().alias("rows"), polars.col("on_time").count(), polars.col("delay_minutes").sum(), polars.col("distance").sum()
).sort(column).collect()
by_polars = [(str(day), rows, known, delay, distance) for day, rows, known, delay, distance in summed.iter_rows()]

table = ds.dataset(files, format="parquet", partitioning="hive").to_table()
assert sorted(table.column_names) == columns
kinds = {name: str(table.schema.field(name).type) for name in columns if name != column}
for path in files:
    here = {f.name: str(f.type) for f in ds.dataset([path], format="parquet").schema}
    assert here == kinds, (path, here, kinds)
summed = table.group_by(column).aggregate([("distance", "count"), ("on_time", "count"), ("delay_minutes", "sum"), ("distance", "sum")]).sort_by(column)
by_pyarrow = [
    (str(row[column]), row["distance_count"], row["on_time_count"], row["delay_minutes_sum"], row["distance_sum"])
    for row in summed.to_pylist()
]
assert by_duckdb == by_polars, (by_duckdb[:3], by_polars[:3])
assert by_duckdb == by_pyarrow, (by_duckdb[:3], by_pyarrow[:3])
assert types[column] == "DATE", types
assert sum(rows for _, rows, *_ in by_duckdb) == int(expected), sum(rows for _, rows, *_ in by_duckdb)

for path in view:
    con.execute(open(path).read())
    seen = con.execute(f"SELECT {column}, count(*), count(on_time), sum(delay_minutes), sum(distance) FROM on_time GROUP BY 1 ORDER BY 1").fetchall()
    assert [(str(day), *rest) for day, *rest in seen] == by_duckdb

# Wildcards below the root, in each engine, meet the root's own files and nothing else.
own = sorted(os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names)
met = sorted(path for path in glob.glob(f"{root}/**", recursive=True) if os.path.isfile(path))
assert met == own
met = sorted(row[0] for row in con.execute(f"SELECT DISTINCT filename FROM read_parquet('{root}/**/*.parquet', filename = true)").fetchall())
assert met == own, (met[:3], own[:3])
rows = con.execute(f"SELECT count(*) FROM read_parquet('{root}/**/*.parquet')").fetchone()[0]
assert polars.scan_parquet(f"{root}/**/*.parquet").select(polars.len()).collect().item() == rows
assert ds.dataset(root, format="parquet", partitioning="hive").count_rows() == rows
print(f"{len(files)} files, {expected} rows, three readers agree")
