"""An independent reading of the content digest, version 1, against the test vectors.

digest.py VECTORS_FOLDER
"""
import struct
import sys

import xxhash

M = (1 << 64) - 1
K = 0x9E3779B97F4A7C15
NULL = (0x6E756C6C6E756C6C, 0x9E3779B97F4A7C15)


def mix(x):
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & M
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & M
    return x ^ (x >> 31)


def rotl(x, n):
    return ((x << n) | (x >> (64 - n))) & M


def words(data):
    h = xxhash.xxh3_128_intdigest(data)
    return h & M, h >> 64


def value(kind, v):
    if v is None:
        return NULL
    if kind == "int":
        v &= (1 << 128) - 1
        return v & M, v >> 64
    if kind == "float":
        bits = 0x7FF8000000000000 if v != v else struct.unpack("<Q", struct.pack("<d", v))[0]
        return bits, 0
    if kind == "bool":
        return int(v), 0
    return words(v.encode())


def digest(columns, rows):
    seeds = [words(f"{name}\0{kind}".encode()) for name, kind in columns]
    total = 0
    for row in rows:
        r0 = r1 = 0
        for (s0, s1), (_, kind), v in zip(seeds, columns, row):
            v0, v1 = value(kind, v)
            r0 = (r0 + mix(v0 ^ s0) + mix(v1 ^ rotl(s0, 32))) & M
            r1 = (r1 + (mix((v0 + s1) & M) ^ mix((v1 + rotl(s1, 32)) & M))) & M
        low = mix(r0 ^ rotl(r1, 17))
        high = mix((r1 + K * r0) & M)
        total = (total + (low | high << 64)) & ((1 << 128) - 1)
    return f"d1:{len(rows)}:{total:032x}"


folder = sys.argv[1]
mixed = digest([("id", "int"), ("x", "float"), ("t", "text")], [(1, 0.5, "a"), (2, None, ""), (3, -0.0, None)])
booleans = digest([("b", "bool")], [(True,), (False,)])
for name, found in (("mixed", mixed), ("booleans", booleans)):
    told = open(f"{folder}/{name}.txt").read().strip()
    assert found == told, (name, found, told)
print("both vectors agree")
