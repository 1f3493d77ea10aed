// C SQLite with rosbag2's schema as a peer of gobag perf storage. Presets: resilient (rosbag2's: WAL, synchronous NORMAL),
// default (rosbag2's: journal in memory, synchronous OFF), equal (what gobag does: 8 KB pages, persistent journal,
// synchronous FULL, exclusive). Of each a transaction is committed at 8 MB. Flags and result: bench.h.
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include "bench.h"

enum { COMMIT = 8 << 20, TOPICS = 10 };

static sqlite3 *db;

static void check(int rc, const char *what) {
  if (rc != SQLITE_OK && rc != SQLITE_DONE && rc != SQLITE_ROW) bench_fail("%s: %s", what, db ? sqlite3_errmsg(db) : sqlite3_errstr(rc));
}

static void run(const char *sql) { check(sqlite3_exec(db, sql, NULL, NULL, NULL), sql); }

static sqlite3_stmt *prepare(const char *sql) {
  sqlite3_stmt *s;
  check(sqlite3_prepare_v2(db, sql, -1, &s, NULL), sql);
  return s;
}

static void set_cache(int64_t bytes) {
  char sql[64];
  snprintf(sql, sizeof sql, "PRAGMA cache_size = -%lld", (long long)(bytes >> 10));
  if (bytes) run(sql);
}

static void create(const struct bench *b) {
  check(sqlite3_open_v2(b->path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL), "open");
  if (!strcmp(b->preset, "resilient") || !*b->preset) run("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
  else if (!strcmp(b->preset, "default")) run("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF");
  else if (!strcmp(b->preset, "equal"))
    run("PRAGMA page_size = 8192; PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = PERSIST; PRAGMA synchronous = FULL; PRAGMA cache_size = -4096");
  else bench_fail("preset %s: none of resilient, default, equal", b->preset);
  set_cache(b->buffer);
  run("CREATE TABLE schema(schema_version INTEGER PRIMARY KEY, ros_distro TEXT NOT NULL);"
      "CREATE TABLE metadata(id INTEGER PRIMARY KEY, metadata_version INTEGER NOT NULL, metadata TEXT NOT NULL);"
      "CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL, serialization_format TEXT NOT NULL,"
      " offered_qos_profiles TEXT NOT NULL, type_description_hash TEXT NOT NULL);"
      "CREATE TABLE message_definitions(id INTEGER PRIMARY KEY, topic_type TEXT NOT NULL, encoding TEXT NOT NULL,"
      " encoded_message_definition TEXT NOT NULL, type_description_hash TEXT NOT NULL);"
      "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER NOT NULL, timestamp INTEGER NOT NULL, data BLOB NOT NULL);"
      "CREATE INDEX timestamp_idx ON messages (timestamp ASC);"
      "INSERT INTO schema VALUES (4, 'jazzy')");
  sqlite3_stmt *s = prepare("INSERT INTO topics VALUES (NULL, ?, 'a_msgs/msg/B', 'cdr', '', '')");
  for (int i = 0; i < TOPICS; i++) {
    char name[32];
    snprintf(name, sizeof name, "/perf/t%04d", i);
    check(sqlite3_bind_text(s, 1, name, -1, SQLITE_TRANSIENT), "bind");
    check(sqlite3_step(s), "topic");
    sqlite3_reset(s);
  }
  sqlite3_finalize(s);
}

static void write_all(struct bench *b) {
  sqlite3_stmt *s = prepare("INSERT INTO messages (timestamp, topic_id, data) VALUES (?, ?, ?)");
  size_t pending = 0;
  for (size_t i = 0; i < b->count;) {
    size_t n = bench_batch(b, i);
    for (size_t k = i; k < i + n; k++) {
      size_t key = bench_key(b, k);
      if (!pending) run("BEGIN");
      check(sqlite3_bind_int64(s, 1, bench_stamp(key)), "bind");
      check(sqlite3_bind_int64(s, 2, (sqlite3_int64)(key % TOPICS + 1)), "bind");
      check(sqlite3_bind_blob(s, 3, bench_data(b, key), (int)b->size, SQLITE_STATIC), "bind");
      check(sqlite3_step(s), "insert");
      sqlite3_reset(s);
      if ((pending += b->size) >= COMMIT) {
        run("COMMIT");
        pending = 0;
      }
    }
    bench_wrote(b, i, n);
    i += n;
  }
  if (pending) run("COMMIT");
  sqlite3_finalize(s);
}

// All is read in one transaction.
static void read_all(struct bench *b) {
  run("BEGIN");
  if (b->order == BENCH_SEQ) {
    sqlite3_stmt *s = prepare("SELECT data, timestamp, topic_id FROM messages ORDER BY timestamp, id");
    int rc;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) bench_read_one(b, sqlite3_column_blob(s, 0), (size_t)sqlite3_column_bytes(s, 0));
    check(rc, "read");
    sqlite3_finalize(s);
  } else {
    sqlite3_stmt *s = prepare("SELECT data, topic_id FROM messages WHERE timestamp = ?");
    for (size_t i = 0; i < b->count; i++) {
      check(sqlite3_bind_int64(s, 1, bench_stamp(bench_key(b, i))), "bind");
      if (sqlite3_step(s) != SQLITE_ROW) bench_fail("message %zu is not there: %s", bench_key(b, i), sqlite3_errmsg(db));
      bench_read_one(b, sqlite3_column_blob(s, 0), (size_t)sqlite3_column_bytes(s, 0));
      sqlite3_reset(s);
    }
    sqlite3_finalize(s);
  }
  run("COMMIT");
}

int main(int argc, char **argv) {
  struct bench b;
  bench_parse(&b, argc, argv);
  if (b.write) {
    bench_start(&b); // opening is part of a write
    create(&b);
    write_all(&b);
    check(sqlite3_close(db), "close"); // and closing
    bench_stop(&b);
  } else {
    check(sqlite3_open_v2(b.path, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL), "open");
    run("PRAGMA mmap_size = 2147483648");
    set_cache(b.buffer);
    bench_start(&b);
    read_all(&b);
    bench_stop(&b);
    check(sqlite3_close(db), "close");
  }
  return bench_report(&b);
}
