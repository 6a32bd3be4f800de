"""Two days of people with a struct column, as production has them and as they should be: make_structs.py FOLDER."""
import os
import sys

import pyarrow as pa
import pyarrow.parquet as pq

for day in (1, 2):
    for name, town in (("people", "Old"), ("raw", "New")):
        ids = list(range(day * 100, day * 100 + 50))
        address = [{"city": f"{town} Town" if i % 5 == 0 else "City", "zip": i} for i in ids]
        kind = pa.struct([("city", pa.string()), ("zip", pa.int64())])
        table = pa.table({"id": pa.array(ids, pa.int64()), "address": pa.array(address, kind), "amount": pa.array(ids, pa.int32())})
        folder = f"{sys.argv[1]}/lake/{name}/day=2024-03-0{day}"
        os.makedirs(folder)
        pq.write_table(table, f"{folder}/part.parquet")
