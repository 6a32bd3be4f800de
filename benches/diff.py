"""Compares two folders of Parquet by key, with DuckDB, Polars and reissue, side by side.

    python3 benches/lineitem.py FOLDER --reissue BINARY        # makes the data: 24 months of TPC-H lineitem
    python3 benches/diff.py FOLDER --reissue BINARY [--rounds 5]

production against: a candidate in key order whose price differs in 8 of 9 rows; the same in random order; one with 1 % of
rows changed; a copy of itself. Two threads each, in turns, page cache warm. DuckDB and Polars join in full by key and count, by column, the
values that differ; datacompy, once, does the same with Polars; reissue diff also says what happened. The counts must agree.
Prints one JSON object: median seconds, and the peak memory of reissue in MB. The peers are installed into FOLDER/environments.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

from peers import DATACOMPY, PEERS, environment, run_inside

if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
    run_inside(sys.argv[1], "peers", PEERS)
os.environ["POLARS_MAX_THREADS"] = "2"
import duckdb  # noqa: E402
import polars as pl  # noqa: E402

KEYS = ["l_orderkey", "l_linenumber"]
OTHERS = ["l_shipdate", "l_returnflag", "l_linestatus", "l_quantity", "p_brand", "charge", "l_shipmode"]


def months(root):
    return sorted(os.listdir(f"{root}/old"))


def prepare(root):
    con = duckdb.connect()
    con.execute("SET threads = 2")
    shutil.copytree(f"{root}/production", f"{root}/old")
    shutil.copytree(f"{root}/candidate_duckdb", f"{root}/all_changed")
    shutil.copytree(f"{root}/production", f"{root}/none_changed")
    ways = {
        "shuffled": ("all_changed", "*", "hash(l_orderkey, l_linenumber)"),
        "few_changed": ("old", "* REPLACE (CASE WHEN hash(l_orderkey) % 100 = 0 THEN charge + 1 ELSE charge END AS charge)", "l_orderkey, l_linenumber"),
    }
    for name, (source, columns, order) in ways.items():
        for month in months(root):
            os.makedirs(f"{root}/{name}/{month}")
            con.execute(f"""COPY (SELECT {columns} FROM '{root}/{source}/{month}/part-0.parquet' ORDER BY {order})
                TO '{root}/{name}/{month}/part-0.parquet' (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1, ROW_GROUP_SIZE 1048576)""")


def by_duckdb(root, other):
    con = duckdb.connect()
    con.execute("SET threads = 2")
    changed = dict.fromkeys(OTHERS, 0)
    for month in months(root):
        counts = ", ".join(f"count(*) FILTER (WHERE p.{c} IS DISTINCT FROM c.{c})" for c in OTHERS)
        found = con.execute(f"""SELECT {counts} FROM '{root}/old/{month}/part-0.parquet' p FULL OUTER JOIN
            '{root}/{other}/{month}/part-0.parquet' c ON {' AND '.join(f'p.{k} = c.{k}' for k in KEYS)}""").fetchone()
        for column, values in zip(OTHERS, found):
            changed[column] += values
    return changed


def by_polars(root, other):
    changed = dict.fromkeys(OTHERS, 0)
    for month in months(root):
        one, two = (pl.scan_parquet(f"{root}/{side}/{month}/part-0.parquet", hive_partitioning=False) for side in ("old", other))
        counts = [pl.col(c).ne_missing(pl.col(f"{c}_right")).sum().alias(c) for c in OTHERS]
        found = one.join(two, on=KEYS, how="full").select(counts).collect().row(0)
        for column, values in zip(OTHERS, found):
            changed[column] += values
    return changed


def by_datacompy(root, other):
    python = environment(root, "datacompy", DATACOMPY)
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "datacompy_side.py")
    words = [python, program, f"{root}/old", f"{root}/{other}", ",".join(KEYS)]
    told = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    return told["seconds"], {column: told["changed"][column] for column in OTHERS}


def by_reissue(root, other, binary):
    words = [binary, "diff", f"{root}/old", f"{root}/{other}", "--key", ",".join(KEYS), "--threads", "2", "--json"]
    done = subprocess.run(["/usr/bin/time", "-f", "%M", *words], capture_output=True, text=True, check=True)
    columns = json.loads(done.stdout)["total"]["columns"]
    return {c: columns.get(c, {"changed": 0})["changed"] for c in OTHERS}, int(done.stderr.split()[-1]) / 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--reissue", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    root, binary = os.path.abspath(given.folder), os.path.abspath(given.reissue)
    if not os.path.isdir(f"{root}/few_changed"):
        prepare(root)
    told = {}
    for other in ("all_changed", "shuffled", "few_changed", "none_changed"):
        seconds = {"duckdb": [], "polars": [], "reissue": []}
        memory = []
        for _ in range(given.rounds):
            begun = time.perf_counter()
            expected = by_duckdb(root, other)
            seconds["duckdb"].append(time.perf_counter() - begun)
            begun = time.perf_counter()
            assert by_polars(root, other) == expected
            seconds["polars"].append(time.perf_counter() - begun)
            begun = time.perf_counter()
            found, peak = by_reissue(root, other, binary)
            seconds["reissue"].append(time.perf_counter() - begun)
            memory.append(peak)
            assert found == expected, (found, expected)
        told[other] = {tool: round(statistics.median(all_), 2) for tool, all_ in seconds.items()}
        told[other]["datacompy, once"], found = by_datacompy(root, other)
        assert found == expected, (found, expected)
        told[other]["reissue MB"] = round(max(memory))
        told[other]["times faster than duckdb"] = round(told[other]["duckdb"] / told[other]["reissue"], 2)
    print(json.dumps(told))


main()
