"""An independent reading of the content digest, version 2, against the test vectors.

digest.py VECTORS_FOLDER
"""
import struct
import sys

import xxhash

M = (1 << 64) - 1
K = (0x9E3779B97F4A7C15, 0x243F6A8885A308D3, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
NULL = (0x6E756C6C6E756C6C, 0x9E3779B97F4A7C15)


def halves(a, b):
    product = a * b
    return product & M, product >> 64


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
            lo, hi = halves(v0 ^ s0, v1 ^ s1)
            r0 = (r0 + (lo ^ hi)) & M
            r1 = (r1 + rotl(lo, 32) - (hi ^ (lo >> 29))) & M
        lo, hi = halves(r0 ^ K[0], r1 ^ K[1])
        low = lo ^ hi
        lo, hi = halves(rotl(r0, 32) ^ K[2], (r1 + K[3]) & M)
        high = lo ^ hi
        total = (total + (low | high << 64)) & ((1 << 128) - 1)
    return f"d2:{len(rows)}:{total:032x}"


folder = sys.argv[1]
mixed = digest([("id", "int"), ("x", "float"), ("t", "text")], [(1, 0.5, "a"), (2, None, ""), (3, -0.0, None)])
booleans = digest([("b", "bool")], [(True,), (False,)])
for name, found in (("mixed", mixed), ("booleans", booleans)):
    told = open(f"{folder}/{name}.txt").read().strip()
    assert found == told, (name, found, told)
print("both vectors agree")
