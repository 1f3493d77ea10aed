"""Reads Parquet files with engines that know nothing of gobag and prints what is in them, one JSON object for each file.

  columnar.py ENGINE FILE...     ENGINE: pyarrow, duckdb or polars
  columnar.py filters FILE...    counts of rows that pass filters, by DuckDB on the file (which skips by statistics) and on
                                 the values themselves; prints where they differ

A column is said by a hash of its values (numbers as their bits, little endian; texts and bytes with their length before them)
and, for every list it is in, a hash of the lists' lengths.
"""

import hashlib
import json
import struct
import sys

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq


def load(engine, path):
    if engine == "pyarrow":
        return pq.read_table(path, page_checksum_verification=True)
    if engine == "duckdb":
        import duckdb

        con = duckdb.connect()
        t = con.sql(f"SELECT * FROM read_parquet('{path}', hive_partitioning = false)").arrow()
        return t.read_all() if isinstance(t, pa.RecordBatchReader) else t
    import polars as pl

    return pl.read_parquet(path, hive_partitioning=False).to_arrow()


def leaf(arr):
    t = arr.type
    if pa.types.is_dictionary(t):
        return leaf(arr.dictionary_decode())
    if arr.null_count:
        raise ValueError(f"{arr.null_count} nulls")
    if pa.types.is_timestamp(t):
        if t.unit != "ns" or t.tz:
            raise ValueError(f"timestamp is {t}")
        arr = arr.cast(pa.int64())
    if pa.types.is_boolean(t):
        arr = arr.cast(pa.uint8())
    h = hashlib.sha256()
    if any(f(t) for f in (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary,
                          pa.types.is_fixed_size_binary, pa.types.is_string_view, pa.types.is_binary_view)):
        for s in arr.to_pylist():
            s = s.encode() if isinstance(s, str) else s
            h.update(struct.pack("<I", len(s)) + s)
    else:
        h.update(arr.to_numpy(zero_copy_only=False).tobytes())
    return str(t), len(arr), h.hexdigest()


def walk(path, arr, out):
    t = arr.type
    if pa.types.is_struct(t):
        for i, child in enumerate(arr.flatten()):
            walk(f"{path}.{t.field(i).name}", child, out)
    elif pa.types.is_list(t) or pa.types.is_large_list(t):
        lengths = pc.list_value_length(arr).cast(pa.uint32()).to_numpy(zero_copy_only=False)
        out.setdefault(path, {}).setdefault("lists", []).append(hashlib.sha256(lengths.tobytes()).hexdigest())
        walk(path, arr.flatten(), out)
    else:
        kind, n, h = leaf(arr)
        out.setdefault(path, {}).update(type=kind, values=n, hash=h)


def say(engine, path):
    table = load(engine, path)
    out = {}
    for name in table.column_names:
        column = table.column(name)
        arr = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        if isinstance(arr, pa.ChunkedArray):
            arr = pa.concat_arrays(arr.chunks) if arr.num_chunks else pa.array([], column.type)
        walk(name, arr, out)
    print(json.dumps({"file": path, "rows": table.num_rows, "columns": out}))


def filters(path):
    import duckdb

    con = duckdb.connect()
    table = pq.read_table(path)
    con.register("memory", table)
    for f in table.schema:
        if pa.types.is_nested(f.type) or pa.types.is_binary(f.type) or pa.types.is_fixed_size_binary(f.type):
            continue
        column = '"' + f.name + '"'
        probes = con.sql(f"SELECT DISTINCT {column} FROM memory ORDER BY 1").fetchall()
        for (v,) in probes[:3] + probes[len(probes) // 2:][:2] + probes[-3:]:
            for op in ("=", "<", "<=", ">", ">="):
                counts = []
                for source in (f"read_parquet('{path}', hive_partitioning = false)", "memory"):
                    q = f"SELECT count(*) FROM {source} WHERE {column} {op} (SELECT {column} FROM memory WHERE {column} IS NOT DISTINCT FROM ? LIMIT 1)"
                    if pa.types.is_floating(f.type) or pa.types.is_integer(f.type) or pa.types.is_string(f.type):
                        q = f"SELECT count(*) FROM {source} WHERE {column} {op} ?"
                    counts.append(con.execute(q, [v]).fetchall()[0][0])
                if counts[0] != counts[1]:
                    print(json.dumps({"file": path, "filter": f"{column} {op} {v!r}", "on_file": counts[0], "in_memory": counts[1]}))


def main():
    for path in sys.argv[2:]:
        if sys.argv[1] == "filters":
            filters(path)
        else:
            say(sys.argv[1], path)


main()
