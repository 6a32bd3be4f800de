"""Computes with DuckDB what a report says, from the same files, and requires that they agree.

report.py REPORT_JSON CANDIDATE_FILES_JSON PRODUCTION_FILES_JSON
"""
import json
import math
import sys
from decimal import Decimal

import duckdb

report, candidate, production = (json.load(open(path)) for path in sys.argv[1:])
con = duckdb.connect()


def scan(files):
    return "read_parquet([" + ", ".join(f"'{path}'" for path in files) + "], hive_partitioning = true)"


def by_partition(files):
    found = {}
    for entry in files["files"]:
        found.setdefault(entry["partition"], []).append(entry["path"])
    return found


checked = 0
new, old = by_partition(candidate), by_partition(production)
for partition, told in report["partitions"].items():
    for files, metrics in ((new[partition], told["metrics"]), (old[partition], told["base"]["metrics"])):
        source = scan(files)
        rows, keys = con.execute(f"SELECT count(*), count(DISTINCT (carrier, flight, origin)) FROM {source}").fetchone()
        assert rows == metrics["rows"], (partition, rows, metrics["rows"])
        assert metrics["keys"]["repeated_keys"] == 0 and keys == rows, (partition, keys, rows)
        for column, told_column in metrics["columns"].items():
            nulls, low, high = con.execute(f"SELECT count(*) - count({column}), min({column}), max({column}) FROM {source}").fetchone()
            assert nulls == told_column["nulls"], (partition, column, nulls, told_column)
            if "sum" in told_column:
                total = con.execute(f"SELECT coalesce(sum({column}), 0) FROM {source}").fetchone()[0]
                assert Decimal(str(total)) == Decimal(told_column["sum"]), (partition, column, total, told_column)
            if "trues" in told_column:
                trues = con.execute(f"SELECT count(*) FROM {source} WHERE {column}").fetchone()[0]
                assert trues == told_column["trues"], (partition, column)
            if isinstance(low, (int, str)) and not isinstance(low, bool):
                assert (str(low), str(high)) == (told_column["min"], told_column["max"]), (partition, column, low, high)
            checked += 1

p, c = scan([f for files in old.values() for f in files if True]), scan([f for files in new.values() for f in files])
names = [name for name in next(iter(report["partitions"].values()))["metrics"]["columns"] if name not in ("carrier", "flight", "origin")]
key = " AND ".join(f"p.{k} = c.{k}" for k in ("flight_date", "carrier", "flight", "origin"))
counts = ", ".join(f"count(*) FILTER (WHERE p.{n} IS DISTINCT FROM c.{n} AND p.carrier IS NOT NULL AND c.carrier IS NOT NULL)" for n in names)
any_changed = " OR ".join(f"p.{n} IS DISTINCT FROM c.{n}" for n in names)
inside = ", ".join(f"DATE '{partition}'" for partition in report["partitions"])
only_c, only_p, changed, *each = con.execute(f"""
    SELECT count(*) FILTER (WHERE p.carrier IS NULL), count(*) FILTER (WHERE c.carrier IS NULL),
           count(*) FILTER (WHERE p.carrier IS NOT NULL AND c.carrier IS NOT NULL AND ({any_changed})), {counts}
    FROM (SELECT * FROM {p} WHERE flight_date IN ({inside})) p
    FULL OUTER JOIN (SELECT * FROM {c} WHERE flight_date IN ({inside})) c ON {key}""").fetchone()
total = report["total"]
assert (only_p, only_c, changed) == (total["only_production"], total["only_candidate"], total["changed"])
for name, values in zip(names, each):
    assert total["columns"].get(name, {"changed": 0})["changed"] == values, (name, values)
net = con.execute(f"SELECT sum(c.delay_minutes - p.delay_minutes) FROM {p} p JOIN {c} c ON {key} WHERE p.flight_date IN ({inside})").fetchone()[0]
assert math.isclose(float(net), float(total["columns"]["delay_minutes"].get("net_change", 0))), net
print(f"{checked} columns and the difference of {total['rows_production']} rows agree")
