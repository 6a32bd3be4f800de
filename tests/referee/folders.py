"""Two folders of Parquet that differ, and what DuckDB says of the difference.

folders.py make FOLDER             writes FOLDER/{one,two,flat_one,flat_two,shuffled}: 60,000 rows by month
folders.py say FOLDER ONE TWO      prints the counts of a full outer join by key, as JSON

The second side has values changed, nulls put and taken, rows dropped and added, in ways that a seed decides.
"""
import json
import os
import sys

import duckdb

do, folder = sys.argv[1:3]
con = duckdb.connect()
COLUMNS = ["price", "amount", "status", "seen"]


def scan(name):
    return f"read_parquet('{folder}/{name}/**/*.parquet', hive_partitioning = false)"


def make():
    con.execute("""CREATE TABLE one AS SELECT i AS id, (i % 3)::INT AS line, 'm' || (i % 4) AS month,
        (i * 7 % 1000) / 8.0 AS price, (i % 977)::DECIMAL(12, 2) AS amount,
        CASE WHEN hash(i, 1) % 10 = 0 THEN NULL ELSE 's' || (hash(i, 2) % 5) END AS status,
        TIMESTAMP '2024-01-01' + to_seconds((i * 60)::BIGINT) AS seen FROM range(60000) t(i)""")
    con.execute("""CREATE TABLE two AS SELECT id, line, month,
        CASE WHEN hash(id, 3) % 50 = 0 THEN price * 2 ELSE price END AS price,
        CASE WHEN hash(id, 4) % 70 = 0 THEN NULL WHEN hash(id, 5) % 90 = 0 THEN amount + 1.25 ELSE amount END AS amount,
        CASE WHEN hash(id, 6) % 80 = 0 THEN 's9' ELSE status END AS status,
        CASE WHEN hash(id, 7) % 100 = 0 THEN seen + INTERVAL 1 HOUR ELSE seen END AS seen
        FROM one WHERE hash(id, 8) % 500 != 0
        UNION ALL SELECT 60000 + i, 0, 'm' || (i % 4), 1.0, 1, 'new', TIMESTAMP '2024-01-01' FROM range(77) t(i)""")
    for name in ("one", "two"):
        for month in range(4):
            os.makedirs(f"{folder}/{name}/month=m{month}")
            con.execute(f"""COPY (SELECT * EXCLUDE month FROM {name} WHERE month = 'm{month}' ORDER BY id, line)
                            TO '{folder}/{name}/month=m{month}/part.parquet' (ROW_GROUP_SIZE 4096)""")
        os.makedirs(f"{folder}/flat_{name}")
        con.execute(f"COPY (SELECT * FROM {name} ORDER BY id, line) TO '{folder}/flat_{name}/part.parquet' (ROW_GROUP_SIZE 5000)")
    os.makedirs(f"{folder}/shuffled")
    for part in range(3):
        con.execute(f"""COPY (SELECT * FROM two WHERE hash(id) % 3 = {part} ORDER BY hash(id, 99))
                        TO '{folder}/shuffled/part-{part}.parquet' (ROW_GROUP_SIZE 3000)""")


def say(one, two):
    changed = " OR ".join(f"p.{c} IS DISTINCT FROM c.{c}" for c in COLUMNS)
    counts = ", ".join(f"""count(*) FILTER (WHERE p.id IS NOT NULL AND c.id IS NOT NULL AND p.{c} IS DISTINCT FROM c.{c}),
        count(*) FILTER (WHERE p.id IS NOT NULL AND c.id IS NOT NULL AND p.{c} IS NULL AND c.{c} IS NOT NULL),
        count(*) FILTER (WHERE p.id IS NOT NULL AND c.id IS NOT NULL AND p.{c} IS NOT NULL AND c.{c} IS NULL),
        count(*) FILTER (WHERE p.id IS NOT NULL AND c.id IS NOT NULL AND p.{c} IS NULL AND c.{c} IS NULL)""" for c in COLUMNS)
    row = con.execute(f"""SELECT count(p.id), count(c.id), count(*) FILTER (WHERE c.id IS NULL), count(*) FILTER (WHERE p.id IS NULL),
        count(*) FILTER (WHERE p.id IS NOT NULL AND c.id IS NOT NULL AND ({changed})), sum(c.price - p.price), sum(c.amount - p.amount), {counts}
        FROM {scan(one)} p FULL OUTER JOIN {scan(two)} c ON p.id = c.id AND p.line = c.line""").fetchone()
    columns = {}
    for at, name in enumerate(COLUMNS):
        found = row[7 + 4 * at:11 + 4 * at]
        columns[name] = dict(zip(["changed", "null_only_production", "null_only_candidate", "both_null"], found))
    keyless = con.execute(f"""SELECT (SELECT count(*) FROM (SELECT id, line, {', '.join(COLUMNS)} FROM {scan(one)} EXCEPT ALL SELECT id, line, {', '.join(COLUMNS)} FROM {scan(two)})),
        (SELECT count(*) FROM (SELECT id, line, {', '.join(COLUMNS)} FROM {scan(two)} EXCEPT ALL SELECT id, line, {', '.join(COLUMNS)} FROM {scan(one)}))""").fetchone()
    print(json.dumps({"rows_production": row[0], "rows_candidate": row[1], "only_production": row[2], "only_candidate": row[3],
                      "changed": row[4], "net_price": row[5], "net_amount": float(row[6]), "columns": columns, "keyless": keyless}))


make() if do == "make" else say(*sys.argv[3:5])
