"""Corrects a price formula in two years of TPC-H lineitem, with DuckDB and with reissue, side by side.

    python3 benches/lineitem.py FOLDER --reissue target/release/reissue [--scale 5] [--rounds 9] [--cold]

24 monthly partitions joined to `part`; production has the price without its tax. Each round runs both, in
turn, from the same files, on two threads, zstd level 1, row groups of 1,048,576 rows, in key order, synced:

    duckdb   COPY in key order; counts, nulls, distinct keys, sums; full outer join with per-column counts
    reissue  run (transform, write, metrics, digest, uniqueness), then check (decode the stored bytes again,
             metrics, compare with production by key)

Results must agree: rows, distinct keys, the exact sum of the price, changed values per column. With --cold, each starts
with none of FOLDER's files in the page cache. Prints one JSON object with the median seconds of each, and the peak
memory of reissue in MB. The peers are installed into FOLDER/environments.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from decimal import Decimal

from peers import PEERS, run_inside

if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
    run_inside(sys.argv[1], "peers", PEERS)
import duckdb  # noqa: E402

KEYS = ["l_orderkey", "l_linenumber"]
OTHERS = ["l_shipdate", "l_returnflag", "l_linestatus", "l_quantity", "p_brand", "charge", "l_shipmode"]
THREADS = 2


def months(root):
    return sorted(name.split("=")[1] for name in os.listdir(f"{root}/history"))


def price(taxed):
    return "l_extendedprice * (1 - l_discount)" + (" * (1 + l_tax)" if taxed else "")


def sync(path):
    handle = os.open(path, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)


def write(con, root, name, taxed):
    shutil.rmtree(f"{root}/{name}", ignore_errors=True)
    for month in months(root):
        folder = f"{root}/{name}/ship_month={month}"
        os.makedirs(folder)
        con.execute(f"""COPY (
            SELECT {', '.join(KEYS)}, l_shipdate, l_returnflag, l_linestatus, l_quantity, p_brand,
                   CAST({price(taxed)} AS DECIMAL(18, 6)) AS charge, l_shipmode
            FROM '{root}/history/ship_month={month}/*.parquet' JOIN '{root}/part.parquet' ON l_partkey = p_partkey
            ORDER BY {', '.join(KEYS)}) TO '{folder}/part-0.parquet'
            (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1, ROW_GROUP_SIZE 1048576)""")
        sync(f"{folder}/part-0.parquet")
        sync(folder)


def prepare(root, scale):
    os.makedirs(root, exist_ok=True)
    tool = os.path.join(os.path.dirname(sys.executable), "tpchgen-cli")
    for table in ("lineitem", "part"):
        subprocess.run([tool, "parquet", "-s", str(scale), "--tables", table, "--output-dir", root], check=True)
    con = duckdb.connect()
    con.execute(f"SET threads = {THREADS}; SET preserve_insertion_order = false")
    con.execute(f"""COPY (SELECT *, strftime(l_shipdate, '%Y-%m') AS ship_month FROM '{root}/lineitem.parquet'
                    WHERE l_shipdate >= DATE '1995-01-01' AND l_shipdate < DATE '1997-01-01')
                    TO '{root}/history' (FORMAT parquet, PARTITION_BY (ship_month), COMPRESSION zstd)""")
    os.remove(f"{root}/lineitem.parquet")
    write(con, root, "production", False)


def forget(root):
    """Drops all files from the page cache."""
    os.sync()
    for folder, _, names in os.walk(root):
        for name in names:
            handle = os.open(os.path.join(folder, name), os.O_RDONLY)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(handle)


def by_duckdb(root, cold):
    con = duckdb.connect()
    con.execute(f"SET threads = {THREADS}")
    if cold:
        forget(root)
    begun = time.perf_counter()
    write(con, root, "candidate_duckdb", True)
    written = time.perf_counter()
    rows = distinct = 0
    charge, changed = Decimal(0), dict.fromkeys(OTHERS, 0)
    for month in months(root):
        file = f"'{root}/candidate_duckdb/ship_month={month}/part-0.parquet'"
        counts = ", ".join(f"count({column})" for column in KEYS + OTHERS)
        found = con.execute(f"""SELECT count(*), count(DISTINCT ({', '.join(KEYS)})), sum(charge), min(charge), max(charge),
                                sum(l_quantity), {counts} FROM {file}""").fetchone()
        rows, distinct, charge = rows + found[0], distinct + found[1], charge + found[2]
    measured = time.perf_counter()
    for month in months(root):
        counts = ", ".join(f"count(*) FILTER (WHERE p.{c} IS DISTINCT FROM c.{c})" for c in OTHERS)
        found = con.execute(f"""SELECT {counts} FROM '{root}/production/ship_month={month}/part-0.parquet' p
                                FULL OUTER JOIN '{root}/candidate_duckdb/ship_month={month}/part-0.parquet' c
                                ON {' AND '.join(f'p.{k} = c.{k}' for k in KEYS)}""").fetchone()
        for column, values in zip(OTHERS, found):
            changed[column] += values
    ended = time.perf_counter()
    size = sum(os.path.getsize(f"{root}/candidate_duckdb/ship_month={m}/part-0.parquet") for m in months(root))
    results = {"rows": rows, "distinct": distinct, "charge": str(charge), "changed": changed}
    return {"write": written - begun, "measure": measured - written, "compare": ended - measured, "all": ended - begun, "bytes": size}, results


SPEC = """[dataset]
url       = "production"
partition = { column = "ship_month", every = "month", timezone = "UTC" }
key       = ["l_orderkey", "l_linenumber"]
[range]
first = "1995-01"
last  = "1996-12"
[change]
reason  = "the tax was left out of the price"
owner   = "bench"
columns = ["charge"]
[transform]
sql = "charge.sql"
[sources.history]
url      = "history"
interval = "ship_month"
[sources.part]
url = "part.parquet"
[limits]
partitions_per_batch = 24
source_queries       = 2
memory               = "8 GiB"
"""


def by_reissue(root, binary, cold):
    shutil.rmtree(f"{root}/production.reissue", ignore_errors=True)
    with open(f"{root}/spec.toml", "w") as file:
        file.write(SPEC)
    with open(f"{root}/charge.sql", "w") as file:
        file.write(f"""SELECT ship_month, {', '.join(KEYS)}, l_shipdate, l_returnflag, l_linestatus, l_quantity, p_brand,
            CAST({price(True)} AS DECIMAL(18, 6)) AS charge, l_shipmode FROM history JOIN part ON l_partkey = p_partkey""")

    peaks = []

    def run(*words):
        command = ["/usr/bin/time", "-f", "%M", binary, *words, "--json", "--as", "bench", "--dataset", f"{root}/production"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        peaks.append(int(done.stderr.split()[-1]) / 1024)
        return json.loads(done.stdout)

    run("init", f"{root}/production", "--adopt", "--partition", "ship_month", "--every", "month", "--timezone", "UTC")
    plan = run("plan", f"{root}/spec.toml")["plan_id"]
    if cold:
        forget(root)
    begun = time.perf_counter()
    run("run", plan)
    written = time.perf_counter()
    report = run("check", plan)
    ended = time.perf_counter()
    parts = report["partitions"].values()
    size = sum(os.path.getsize(os.path.join(f, n)) for f, _, names in os.walk(f"{root}/production.reissue/data") for n in names)
    results = {
        "rows": sum(part["metrics"]["rows"] for part in parts),
        "distinct": sum(part["metrics"]["rows"] - part["metrics"]["keys"]["rows_with_repeated_keys"] for part in parts),
        "charge": str(sum(Decimal(part["metrics"]["columns"]["charge"]["sum"]) for part in parts)),
        "changed": {column: report["total"]["columns"].get(column, {"changed": 0})["changed"] for column in OTHERS},
    }
    times = {"run": written - begun, "check": ended - written, "all": ended - begun}
    return {**times, "bytes": size, "run MB": peaks[-2], "check MB": peaks[-1]}, results


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--reissue", required=True)
    parser.add_argument("--scale", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--cold", action="store_true")
    given = parser.parse_args()
    root = os.path.abspath(given.folder)
    if not os.path.isdir(f"{root}/production"):
        prepare(root, given.scale)
    rounds = {"duckdb": [], "reissue": []}
    for _ in range(given.rounds):
        one, expected = by_duckdb(root, given.cold)
        two, found = by_reissue(root, os.path.abspath(given.reissue), given.cold)
        assert found == expected, (found, expected)
        rounds["duckdb"].append(one)
        rounds["reissue"].append(two)
    told = {tool: {step: round(statistics.median(one[step] for one in all_), 3) for step in all_[0]} for tool, all_ in rounds.items()}
    told["spread"] = {tool: [round(min(one["all"] for one in all_), 3), round(max(one["all"] for one in all_), 3)] for tool, all_ in rounds.items()}
    told["ratio"] = round(told["reissue"]["all"] / told["duckdb"]["all"], 3)
    told["rounds"], told["results"] = given.rounds, expected
    print(json.dumps(told))


main()
