// C SQLite as a peer of gobag perf insert: objects inserted one at a time, each a transaction. Durable: WAL, synchronous
// FULL (each commit is synced); crash-safe: WAL, synchronous OFF (each commit is with the system). Flags and result are those of
// gobag perf insert-task.
#include <inttypes.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include "clock.h"

static sqlite3 *db;

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...) {
  va_list ap;
  va_start(ap, format);
  vfprintf(stderr, format, ap);
  va_end(ap);
  fputc('\n', stderr);
  exit(1);
}

static void check(int rc, const char *what) {
  if (rc != SQLITE_OK && rc != SQLITE_DONE && rc != SQLITE_ROW) fail("%s: %s", what, db ? sqlite3_errmsg(db) : sqlite3_errstr(rc));
}

static int64_t proc_kib(const char *key) {
  FILE *f = fopen("/proc/self/status", "r");
  if (!f) return 0;
  char line[256];
  int64_t n = 0;
  while (!n && fgets(line, sizeof line, f))
    if (!strncmp(line, key, strlen(key))) n = strtoll(line + strlen(key), NULL, 10);
  fclose(f);
  return n << 10;
}

static int64_t next_random(uint64_t *state) {
  uint64_t x = *state += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return (int64_t)(x ^ (x >> 31));
}

static double cpu_seconds(void) {
  struct rusage r;
  getrusage(RUSAGE_SELF, &r);
  return r.ru_utime.tv_sec + r.ru_stime.tv_sec + (r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv) {
  const char *mode = "", *path = NULL;
  int64_t count = 0, limit = 0;
  uint64_t seed = 1;
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 == argc) fail("%s: no value", argv[i]);
    if (!strcmp(argv[i], "--mode")) mode = argv[i + 1];
    else if (!strcmp(argv[i], "--path")) path = argv[i + 1];
    else if (!strcmp(argv[i], "--count")) count = strtoll(argv[i + 1], NULL, 10);
    else if (!strcmp(argv[i], "--limit-ms")) limit = strtoll(argv[i + 1], NULL, 10) * 1000000;
    else if (!strcmp(argv[i], "--seed")) seed = strtoull(argv[i + 1], NULL, 10);
    else fail("%s: unknown flag", argv[i]);
  }
  int durable = !strcmp(mode, "durable");
  if (!path || count < 100 || (!durable && strcmp(mode, "crash-safe"))) fail("--path, --count of at least 100 and --mode durable or crash-safe must be given");
  check(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL), "open");
  check(sqlite3_exec(db, durable ? "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL"
                                 : "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF", NULL, NULL, NULL), "pragmas");
  check(sqlite3_exec(db, "CREATE TABLE objects(id INTEGER PRIMARY KEY, name TEXT NOT NULL, value INTEGER NOT NULL)", NULL, NULL, NULL), "create");
  sqlite3_stmt *s;
  check(sqlite3_prepare_v2(db, "INSERT INTO objects(name, value) VALUES (?, ?)", -1, &s, NULL), "prepare");

  struct point { int64_t inserts, ns, rss; } *points = NULL;
  size_t n = 0, room = 0;
  int64_t step = count / 100, every = limit / 100, due = every, last = 0, k = 0;
  double cpu = cpu_seconds();
  int64_t begin = mono_ns();
  while (k < count) {
    char name[13];
    uint64_t r = (uint64_t)next_random(&seed);
    for (int i = 0; i < 12; i++) name[i] = "abcdefghijklmnopqrstuvwxyz012345"[r >> (5 * i) & 31];
    check(sqlite3_bind_text(s, 1, name, 12, SQLITE_STATIC), "bind");
    check(sqlite3_bind_int(s, 2, (int)(r >> 33)), "bind");
    check(sqlite3_step(s), "insert");
    sqlite3_reset(s);
    k++;
    int even = k % step == 0;
    if (!even && !every) continue;
    int64_t now = mono_ns() - begin;
    if (!even && now < due) continue;
    due = now + every;
    if (n == room) {
      points = realloc(points, (room = room ? 2 * room : 128) * sizeof *points);
      if (!points) fail("out of memory");
    }
    points[n++] = (struct point){k, now, proc_kib("VmRSS:")};
    last = now;
    if (limit && now >= limit) break;
  }
  cpu = cpu_seconds() - cpu;
  int64_t inserted = n ? points[n - 1].inserts : 0;
  sqlite3_finalize(s);
  check(sqlite3_prepare_v2(db, "SELECT count(*) FROM objects", -1, &s, NULL), "count");
  check(sqlite3_step(s), "count");
  if (sqlite3_column_int64(s, 0) != k) fail("%lld objects, %lld were inserted", (long long)sqlite3_column_int64(s, 0), (long long)k);
  sqlite3_finalize(s);
  check(sqlite3_close(db), "close");
  struct stat st;
  if (stat(path, &st)) fail("%s: cannot be looked at", path);
  printf("{\"inserts\":%" PRId64 ",\"seconds\":%.9f,\"cpu_s\":%.6f,\"rss_peak_bytes\":%" PRId64 ",\"disk_bytes\":%" PRId64 ",\"points\":[", inserted, last / 1e9, cpu,
         proc_kib("VmHWM:"), (int64_t)st.st_blocks * 512);
  for (size_t i = 0; i < n; i++)
    printf("%s{\"inserts\":%" PRId64 ",\"seconds\":%.9f,\"rss_bytes\":%" PRId64 "}", i ? "," : "", points[i].inserts, points[i].ns / 1e9, points[i].rss);
  puts("]}");
  free(points);
  return 0;
}
