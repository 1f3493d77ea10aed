// C SQLite with rosbag2's schema as the base of gobag perf columnar: journal in memory, synchronous OFF, 1,000 messages a
// transaction. Usage: sqlite_rows MESSAGES DATABASE. MESSAGES holds, for each, stamp and length (u64) and the payload, padded to 8 bytes.
// Prints the CPU seconds and the seconds that opening, writing and closing took as JSON.
#include <fcntl.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static sqlite3 *db;

static void fail(const char *what, const char *why) {
  fprintf(stderr, "%s: %s\n", what, why);
  exit(1);
}

static void check(int rc, const char *what) {
  if (rc != SQLITE_OK && rc != SQLITE_DONE) fail(what, sqlite3_errmsg(db));
}

static void run(const char *sql) { check(sqlite3_exec(db, sql, NULL, NULL, NULL), sql); }

static double cpu(void) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
  if (argc != 3) fail("usage", "sqlite_rows MESSAGES DATABASE");
  int fd = open(argv[1], O_RDONLY);
  struct stat st;
  if (fd < 0 || fstat(fd, &st) != 0) fail(argv[1], "cannot be read");
  const unsigned char *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
  if (p == MAP_FAILED) fail(argv[1], "cannot be mapped");
  const unsigned char *end = p + st.st_size;

  double cpu0 = cpu(), t0 = now();
  check(sqlite3_open_v2(argv[2], &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL), "open");
  run("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF");
  run("CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL, serialization_format TEXT NOT NULL,"
      " offered_qos_profiles TEXT NOT NULL, type_description_hash TEXT NOT NULL);"
      "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER NOT NULL, timestamp INTEGER NOT NULL, data BLOB NOT NULL);"
      "CREATE INDEX timestamp_idx ON messages (timestamp ASC);"
      "INSERT INTO topics VALUES (1, '/perf', 'a_msgs/msg/B', 'cdr', '', '')");
  sqlite3_stmt *s;
  check(sqlite3_prepare_v2(db, "INSERT INTO messages (timestamp, topic_id, data) VALUES (?, ?, ?)", -1, &s, NULL), "prepare");
  size_t n = 0;
  for (; end - p >= 16; n++) {
    int64_t stamp;
    uint64_t size;
    memcpy(&stamp, p, 8);
    memcpy(&size, p + 8, 8);
    p += 16;
    if (size > (uint64_t)(end - p)) fail(argv[1], "is cut off");
    if (n % 1000 == 0) run("BEGIN");
    check(sqlite3_bind_int64(s, 1, stamp), "bind");
    check(sqlite3_bind_int64(s, 2, 1), "bind");
    check(sqlite3_bind_blob(s, 3, p, (int)size, SQLITE_STATIC), "bind");
    check(sqlite3_step(s), "insert");
    sqlite3_reset(s);
    if (n % 1000 == 999) run("COMMIT");
    p += (size + 7) & ~(uint64_t)7;
  }
  if (n % 1000 != 0) run("COMMIT");
  sqlite3_finalize(s);
  check(sqlite3_close(db), "close");
  printf("{\"CPU\": %.6f, \"Seconds\": %.6f}\n", cpu() - cpu0, now() - t0);
  return 0;
}
