"""DuckDB as a peer of gobag perf tsbs-cpu and tsbs-iot: reads queries from standard input, one JSON object a line
({"sql": ..., "repeat": n, "exec": true for a statement without rows}), and answers each with its rows and times as a line of JSON.
Timed is from the text of the query until all rows are in DuckDB's own columns."""

import json
import resource
import sys
import time
from decimal import Decimal

import duckdb


def cpu():
    r = resource.getrusage(resource.RUSAGE_SELF)
    return r.ru_utime + r.ru_stime


def plain(v):
    return float(v) if isinstance(v, Decimal) else v


con = duckdb.connect()
for line in sys.stdin:
    q = json.loads(line)
    try:
        if q.get("exec"):
            con.execute(q["sql"])
            print(json.dumps({}), flush=True)
            continue
        seconds, before = [], cpu()
        for _ in range(q["repeat"]):
            begin = time.perf_counter()
            con.execute(q["sql"]).fetchnumpy()
            seconds.append(time.perf_counter() - begin)
        used = cpu() - before
        rows = [[plain(v) for v in row] for row in con.execute(q["sql"]).fetchall()]
        print(json.dumps({"seconds": seconds, "cpu_s": used, "rows": rows}), flush=True)
    except duckdb.Error as err:
        print(json.dumps({"error": str(err)}), flush=True)
