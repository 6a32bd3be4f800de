"""Numbers of a Parquet file's columns by pyarrow and plain Python, one JSON line a file.

Reads file names from standard input, writes for each a line: {"rows": N, "columns": {path: numbers}}. Parts of nested
columns go by path, as reissue calls them: a.b, a[], m.key. Values that are not there (below a null) are left out.
Sums: exact integers and decimals; floats by math.fsum, which rounds once.
"""
import decimal
import json
import math
import sys

import pyarrow as pa
import pyarrow.parquet as pq

decimal.getcontext().prec = 200


def parts(path, array):
    kind = array.type
    if pa.types.is_struct(kind):
        there = array.filter(array.is_valid())
        for at, field in enumerate(kind):
            yield from whole(f"{path}.{field.name}", there.field(at))
    elif pa.types.is_map(kind):
        entries = array.filter(array.is_valid())
        keys, items = [], []
        for entry in entries.to_pylist():
            keys += [key for key, _ in entry]
            items += [item for _, item in entry]
        yield from whole(f"{path}.{kind.key_field.name}", pa.array(keys, kind.key_type))
        yield from whole(f"{path}.{kind.item_field.name}", pa.array(items, kind.item_type))
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        yield from whole(f"{path}[]", array.filter(array.is_valid()).flatten())


def whole(path, array):
    if pa.types.is_nested(array.type):
        yield from parts(path, array)
    else:
        yield path, array, True


def bits(value):
    return (value, math.copysign(1.0, value))


def numbers(array, is_part):
    kind = array.type
    if pa.types.is_dictionary(kind):
        array, kind = array.cast(kind.value_type), kind.value_type
    found = {"nulls": array.null_count}
    if is_part:
        found["items"] = len(array)
    if pa.types.is_nested(kind):
        return found
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind) or pa.types.is_date(kind) or pa.types.is_duration(kind):
        return found
    values = [value for value in array.to_pylist() if value is not None]
    if pa.types.is_boolean(kind):
        found["trues"] = sum(values)
    elif pa.types.is_integer(kind):
        found["sum"] = str(sum(values))
        if values:
            found["min"], found["max"] = str(min(values)), str(max(values))
    elif pa.types.is_decimal(kind):
        found["sum"] = str(sum(values, decimal.Decimal(0)))
        if values:
            found["min"], found["max"] = str(min(values)), str(max(values))
    elif pa.types.is_floating(kind):
        values = [float(value) for value in values]
        real = [value for value in values if not math.isnan(value)]
        finite = [value for value in real if not math.isinf(value)]
        found["nans"], found["infinities"] = len(values) - len(real), len(real) - len(finite)
        try:
            found["sum"] = repr(math.fsum(finite))
        except OverflowError:
            pass  # a partial sum is too large for fsum, not for us
        if real:
            found["min"], found["max"] = repr(min(real, key=bits)), repr(max(real, key=bits))
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        found["bytes"] = sum(len(value.encode()) for value in values)
        if values:
            ordered = sorted(value.encode() for value in values)
            found["min"], found["max"] = ordered[0].decode(), ordered[-1].decode()
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind) or pa.types.is_binary_view(kind):
        found["bytes"] = sum(len(value) for value in values)
    return found


for line in sys.stdin:
    table = pq.read_table(line.strip()).combine_chunks()
    told = {}
    for name in table.column_names:
        column = table.column(name)
        array = column.chunk(0) if column.num_chunks else pa.array([], column.type)
        told[name] = numbers(array, False)
        told.update({path: numbers(part, True) for path, part, _ in parts(name, array)})
    print(json.dumps({"rows": table.num_rows, "columns": told}), flush=True)
