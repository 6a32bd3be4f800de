"""Random pairs of tables, compared by `reissue diff` and by plain Python dictionaries: python random_pairs.py BINARY FIRST_SEED COUNT FOLDER.

Keys of one to four columns of any type, unique or not, null or not, in order or not, over several files; values of any
type. By docs/diff.md: rows pair by key when it is unique on both sides and has no null, others are equal by multiplicity; every
NaN is one value, and -0.0 is not 0.0. Prints each pair on which the two do not agree, with its seed, and how many there are.
"""
import datetime as dt
import json
import math
import os
import random
import shutil
import struct
import subprocess
import sys
from collections import Counter, defaultdict
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq


def integers(bits, signed):
    least, greatest = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    near = (max(least, -5), min(greatest, 5))
    return lambda dice: dice.choice([least, greatest, 0, 1, dice.randint(least, greatest), dice.randint(*near), dice.randint(*near)])


def text(dice):
    return dice.choice(["", "a", "\0", "a\0", "é", "zz" * dice.randint(0, 10), "abcdefghijkl", "abcdefghijklm", str(dice.randint(0, 30)), "x" * dice.randint(0, 40)])


def double(dice):
    return dice.choice([math.nan, 0.0, -0.0, math.inf, -math.inf, 1.5, 5e-324, dice.uniform(-3, 3), float(dice.randint(-4, 4))])


def some_bytes(length):
    return lambda dice: bytes(dice.choice([0, 1, 255]) for _ in range(length))


EPOCH = dt.datetime(1970, 1, 1)
KEYS = {
    **{f"int{bits}": (pa.int64() if bits == 64 else getattr(pa, f"int{bits}")(), integers(bits, True)) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (getattr(pa, f"uint{bits}")(), integers(bits, False)) for bits in (8, 16, 32, 64)},
    "boolean": (pa.bool_(), lambda dice: dice.random() < 0.5),
    "date": (pa.date32(), lambda dice: EPOCH.date() + dt.timedelta(days=dice.randint(-400, 400))),
    "timestamp": (pa.timestamp("us"), lambda dice: EPOCH + dt.timedelta(microseconds=dice.randint(-(10**7), 10**7) * dice.choice([1, 10**6]))),
    "decimal": (pa.decimal128(20, 3), lambda dice: Decimal(dice.randint(-(10 ** dice.randint(1, 18)), 10**6)).scaleb(-3)),
    "binary of 4": (pa.binary(4), some_bytes(4)),
    "binary of 16": (pa.binary(16), some_bytes(16)),
    "text": (pa.string(), text),
    "binary": (pa.binary(), lambda dice: text(dice).encode()),
    "float64": (pa.float64(), double),
    "float32": (pa.float32(), lambda dice: dice.choice([math.nan, 0.0, -0.0, math.inf, 1.5, float(dice.randint(-4, 4))])),
}
VALUES = {
    **KEYS,
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), text),
    "list of int64": (pa.list_(pa.int64()), lambda dice: [dice.choice([None, dice.randint(-3, 3)]) for _ in range(dice.randint(0, 3))]),
    "list of text": (pa.list_(pa.string()), lambda dice: [text(dice) for _ in range(dice.randint(0, 3))]),
    "list of float64": (pa.list_(pa.float64()), lambda dice: [double(dice) for _ in range(dice.randint(0, 3))]),
    "time": (pa.time64("us"), lambda dice: dt.time(dice.randint(0, 23), dice.randint(0, 59), 0, dice.randint(0, 5))),
}


def same(value):
    """A value in a form in which Python's equality is the documented one."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else ("float", struct.pack("d", value))
    return tuple(same(item) for item in value) if isinstance(value, list) else value


def row(dice, kinds, types, nulls):
    return tuple(None if dice.random() < share else types[kind][1](dice) for kind, share in zip(kinds, nulls))


def known(values):
    return tuple(same(value) for value in values)


def pair(dice):
    """Two tables, each a list of keys and values, and the types of their columns."""
    keys = [dice.choice(list(KEYS)) for _ in range(dice.choice([1, 1, 1, 2, 2, 3, 4]))]
    values = [dice.choice(list(VALUES)) for _ in range(dice.randint(1, 5))]
    key_nulls = [dice.choice([0, 0, 0.1]) for _ in keys]
    nulls = [dice.choice([0, 0.1, 0.5, 1.0]) for _ in values]
    unique = dice.random() < 0.6
    seen, before, after = set(), [], []

    def add(table):
        key = row(dice, keys, KEYS, key_nulls)
        if not unique or known(key) not in seen:
            seen.add(known(key))
            table.append((key, row(dice, values, VALUES, nulls)))

    for _ in range(dice.choice([0, 1, 2, 5, 50, 300, 700, 3_000])):
        add(before)
    changed, dropped = dice.choice([0, 0.01, 0.3, 1]), dice.choice([0, 0, 0.05, 0.5])
    for key, old in before:
        if dice.random() >= dropped:
            new = list(old)
            if dice.random() < changed:
                place = dice.randrange(len(values))
                new[place] = row(dice, values[place : place + 1], VALUES, nulls[place : place + 1])[0]
            after.append((key, tuple(new)))
    for _ in range(dice.choice([0, 0, 1, 20])):
        add(after)
    if dice.random() < 0.3:
        dice.shuffle(after)
    return before, after, keys, values


def write(dice, rows, folder, keys, values):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    kinds = [KEYS[kind][0] for kind in keys] + [VALUES[kind][0] for kind in values]
    names = [f"k{place}" for place in range(len(keys))] + [f"v{place}" for place in range(len(values))]
    cuts = sorted(dice.randint(0, len(rows)) for _ in range(dice.choice([0, 0, 1, 2])))
    for number, (start, end) in enumerate(zip([0, *cuts], [*cuts, len(rows)])):
        columns = zip(*[(*key, *value) for key, value in rows[start:end]]) if end > start else [[]] * len(names)
        arrays = [pa.array(list(column), kind.value_type).dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else pa.array(list(column), kind)
                  for column, kind in zip(columns, kinds)]
        table = pa.table(arrays, schema=pa.schema(list(zip(names, kinds))))
        pq.write_table(table, f"{folder}/{number}.parquet", row_group_size=dice.choice([10, 1_000, 1 << 20]), use_dictionary=dice.random() < 0.5)


def expected(before, after, keyless):
    if keyless:
        one, two = (Counter((known(key), known(value)) for key, value in side) for side in (before, after))
        equal = sum((one & two).values())
        return {"equal": equal, "changed": 0, "only_production": len(before) - equal, "only_candidate": len(after) - equal}, {}
    sides = (defaultdict(list), defaultdict(list))
    for side, rows in zip(sides, (before, after)):
        for key, value in rows:
            side[known(key)].append(known(value))
    rows, columns = Counter(equal=0, changed=0, only_production=0, only_candidate=0), Counter()
    for key in sides[0].keys() | sides[1].keys():
        one, two = sides[0].get(key, []), sides[1].get(key, [])
        if len(one) == len(two) == 1 and None not in key:
            rows["equal" if one == two else "changed"] += 1
            columns.update(f"v{place}" for place, (old, new) in enumerate(zip(one[0], two[0])) if old != new)
        else:
            equal = sum((Counter(one) & Counter(two)).values())
            rows.update(equal=equal, only_production=len(one) - equal, only_candidate=len(two) - equal)
    return dict(rows), dict(columns)


def disagreement(binary, seed, folder):
    dice = random.Random(seed)
    before, after, keys, values = pair(dice)
    write(dice, before, f"{folder}/before", keys, values)
    write(dice, after, f"{folder}/after", keys, values)
    keyless = dice.random() < 0.2
    how = ["--keyless"] if keyless else ["--key", ",".join(f"k{place}" for place in range(len(keys)))]
    done = subprocess.run([binary, "diff", f"{folder}/before", f"{folder}/after", "--json", *how], capture_output=True, text=True)
    try:
        told = json.loads(done.stdout)
        found = {name: told["total"][name] for name in ("equal", "changed", "only_production", "only_candidate")}
    except (ValueError, KeyError):
        return f"exit {done.returncode}: {done.stdout[:300]} {done.stderr[-600:]}; keys {keys}, values {values}"
    columns = {name: column["changed"] for name, column in told["total"].get("columns", {}).items() if column.get("changed")}
    clusters = Counter()
    for cluster in told.get("clusters", []):
        if cluster.get("column"):
            clusters[cluster["column"]] += cluster["values"]
    wanted = expected(before, after, keyless)
    agree = (found, columns) == wanted and dict(clusters) == columns
    return None if agree else f"expected {wanted}, found {found}, {columns}, in clusters {dict(clusters)}; keys {keys}, values {values}"


def main():
    binary, first, count, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    wrong = 0
    for seed in range(first, first + count):
        if text := disagreement(binary, seed, folder):
            wrong += 1
            print(f"seed {seed}: {text}")
    print(f"{count} pairs, {wrong} wrong")


main()
