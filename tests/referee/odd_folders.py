"""Pairs of folders that differ in form as folders of the world do: odd_folders.py FOLDER."""
import os
import sys
from datetime import datetime, timezone
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

root = sys.argv[1]
IDS = pa.array([1, 2, 3], pa.int64())


def write(path, **columns):
    path = f"{root}/{path}"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    names = {name.replace("__", "."): values for name, values in columns.items()}
    pq.write_table(pa.table(names), path)


def values(kind, *items):
    return pa.array(items, kind)


# Files of one folder in other types: 2^40 does not fit into the first file's.
write("narrow/a.parquet", id=IDS, v=values(pa.int32(), 1, 2, 3))
write("narrow/b.parquet", id=values(pa.int64(), 4, 5, 6), v=values(pa.int64(), 1 << 40, 5, 6))
write("narrow_other/a.parquet", id=IDS, v=values(pa.int32(), 1, 2, 3))
write("narrow_other/b.parquet", id=values(pa.int64(), 4, 5, 6), v=values(pa.int64(), 1 << 41, 5, 6))
write("mixed/a.parquet", id=IDS, v=values(pa.int64(), 1, 2, 3))
write("mixed/b.parquet", id=values(pa.int64(), 4, 5, 6), v=values(pa.string(), "x", "5", "6"))
# An instant that nanoseconds cannot hold.
far = datetime(9999, 12, 31)
write("far_ms/a.parquet", id=IDS, v=values(pa.timestamp("ms"), far, far, far))
write("near_ns/a.parquet", id=IDS, v=values(pa.timestamp("ns"), datetime(2024, 1, 1), None, None))
# A column that came later.
write("grown/a.parquet", id=IDS)
write("grown/b.parquet", id=values(pa.int64(), 4, 5, 6), late=values(pa.string(), "x", "y", "z"))
write("grown_other/a.parquet", id=IDS)
write("grown_other/b.parquet", id=values(pa.int64(), 4, 5, 6), late=values(pa.string(), "x", "y", "other"))
write("shrunk/a.parquet", id=IDS, late=values(pa.string(), None, None, None))
write("shrunk/b.parquet", id=values(pa.int64(), 4, 5, 6))
# The folder's value beside the file's own column.
write("hive_in/m=1/a.parquet", id=IDS, m=values(pa.int64(), 7, 7, 7))
write("hive_in_other/m=1/a.parquet", id=IDS, m=values(pa.int64(), 8, 8, 8))
# The same rows cut in other ways.
write("hive_1/m=1/a.parquet", id=IDS, v=values(pa.int64(), 1, 2, 3))
write("hive_1/m=2/a.parquet", id=values(pa.int64(), 4), v=values(pa.int64(), 4))
write("hive_01/m=01/a.parquet", id=IDS, v=values(pa.int64(), 1, 2, 3))
write("hive_01/m=02/a.parquet", id=values(pa.int64(), 4), v=values(pa.int64(), 5))
for name, one in (("default_1", "1"), ("default_01", "01")):
    write(f"{name}/m={one}/a.parquet", id=IDS, v=values(pa.int64(), 1, 2, 3))
    write(f"{name}/m=__HIVE_DEFAULT_PARTITION__/a.parquet", id=values(pa.int64(), 9), v=values(pa.int64(), 4))
write("order_ab/a=1/b=x%3Ay/a.parquet", id=IDS)
write("order_ba/b=x:y/a=1/a.parquet", id=IDS)
write("flat/a.parquet", id=values(pa.int64(), 1, 2, 3, 4), v=values(pa.int64(), 1, 2, 3, 4), m=values(pa.int32(), 1, 1, 1, 2))
write("hive_3/m=3/a.parquet", id=IDS, v=values(pa.int64(), 1, 2, 3))
write("hive_null/m=__HIVE_DEFAULT_PARTITION__/a.parquet", id=IDS, v=values(pa.int64(), 1, 2, 3))
write("flat_null/a.parquet", id=IDS, v=values(pa.int64(), 1, 2, 3), m=values(pa.int32(), None, None, None))
# Keys that are no number, with other bits.
nan = np.array([0x7FF8000000000000, 0xFFF8000000000001], np.uint64).view(np.float64)
write("nan_one/a.parquet", k=pa.array([1.0, nan[0]]), v=values(pa.int64(), 1, 2))
write("nan_two/a.parquet", k=pa.array([nan[1], 1.0]), v=values(pa.int64(), 2, 1))
# A name that is also a path.
both = pa.array([{"b": 1}, {"b": 2}, {"b": 3}], pa.struct([pa.field("b", pa.int64())]))
write("path_one/a.parquet", id=IDS, a=both, a__b=values(pa.int64(), 1, 2, 3))
# Types that hold the same values, and one other value in each.
A, B = {}, {}
A["ints"], B["ints"] = values(pa.list_(pa.int32()), [1], [2], None), values(pa.list_(pa.int64()), [1], [2], [3])
A["texts"], B["texts"] = values(pa.list_(pa.string()), ["a"], [], ["c"]), values(pa.large_list(pa.string()), ["a"], [], ["d"])
noon = datetime(2024, 1, 1, 12, tzinfo=timezone.utc)
A["zone"] = values(pa.timestamp("us", "America/New_York"), noon, noon, noon)
B["zone"] = values(pa.timestamp("us", "UTC"), noon, noon, datetime(2024, 1, 1, 13, tzinfo=timezone.utc))
A["wide"] = values(pa.decimal128(10, 2), Decimal("1.00"), Decimal("2.50"), Decimal("3.00"))
B["wide"] = values(pa.decimal256(50, 4), Decimal("1"), Decimal("2.5"), Decimal("3.0001"))
A["whole"], B["whole"] = values(pa.int32(), 1, 2, 3), values(pa.decimal128(12, 2), Decimal("1"), Decimal("2"), Decimal("3.01"))
A["clock"], B["clock"] = values(pa.time32("ms"), 1, 2, 3), values(pa.time64("us"), 1000, 2000, 3001)
A["bytes"], B["bytes"] = values(pa.binary(2), b"ab", b"cd", b"ef"), values(pa.binary(), b"ab", b"cd", b"eg")
A["double"], B["double"] = values(pa.int32(), 1, 2, 3), values(pa.float64(), 1.0, 2.0, 3.5)
struct = lambda kind: pa.struct([pa.field("x", kind)])
A["deep"], B["deep"] = values(struct(pa.int16()), {"x": 1}, {"x": 2}, {"x": 3}), values(struct(pa.int64()), {"x": 1}, {"x": 2}, {"x": 1 << 40})
write("types_one/a.parquet", id=IDS, **A)
write("types_two/a.parquet", id=IDS, **B)
# Columns that cannot be compared, or are on one side.
write("text/a.parquet", id=IDS, v=values(pa.string(), "1", "2", "3"))
write("number/a.parquet", id=IDS, v=values(pa.int64(), 1, 2, 3))
write("without/a.parquet", id=IDS)
write("upper/a.parquet", ID=IDS)
# No column that could name a segment of rows.
for name, price in (("times_one", 1.0), ("times_two", 2.0)):
    write(f"{name}/a.parquet", at=values(pa.timestamp("us"), datetime(2024, 1, 1), datetime(2024, 1, 2)), price=values(pa.float64(), price, 5.0))
# The same fields in another order.
swapped = lambda x: pa.struct([pa.field("b", pa.int32()), pa.field("a", pa.string())]) if x else pa.struct([pa.field("a", pa.string()), pa.field("b", pa.int64())])
write("fields_one/a.parquet", id=IDS, s=values(swapped(False), {"a": "x", "b": 1}, {"a": "y", "b": 2}, None))
write("fields_two/a.parquet", id=IDS, s=values(swapped(True), {"a": "x", "b": 1}, {"a": "y", "b": 3}, None))
write("s@2/a.parquet", id=IDS, v=values(pa.int64(), 1, 2, 4))
