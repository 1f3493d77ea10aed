// C SQLite as a relational peer of gobag perf tsbs-cpu and tsbs-iot: tables that are filled from standard input, and timed
// queries. The database is the argument. Commands, a line each:
//
//	X SQL             run a statement
//	T NAME TYPES      rows of a table may come, a letter a column: s text, i int64, b u8, d double
//	R                 rows follow: u8 number of the table (in the order of T), u8 how many, 32 at most, then their values (text with a
//	                  u16 length); 255 ends them
//	Q REPEATS SQL     run a query and print its rows and times
//
// 32 rows go in by one INSERT, about 1,024 in one transaction. R and Q are answered by a line of JSON. Numbers are little endian.
#define _GNU_SOURCE
#include <inttypes.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include "clock.h"

enum { TABLES = 8, COLUMNS = 64, MULTI = 32, TRANSACTION = 1024, TEXT = 1 << 16 };

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

static void run(const char *sql) { check(sqlite3_exec(db, sql, NULL, NULL, NULL), sql); }

static double cpu_seconds(struct rusage *r) {
  getrusage(RUSAGE_SELF, r);
  return r->ru_utime.tv_sec + r->ru_stime.tv_sec + (r->ru_utime.tv_usec + r->ru_stime.tv_usec) / 1e6;
}

static struct table {
  char name[64], types[COLUMNS];
  int columns;
  sqlite3_stmt *one, *many;
} tables[TABLES];
static int ntables;

static sqlite3_stmt *insert(const struct table *t, int rows) {
  static char sql[65536];
  size_t n = (size_t)snprintf(sql, sizeof sql, "INSERT INTO %s VALUES ", t->name);
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < t->columns && n < sizeof sql; c++)
      n += (size_t)snprintf(sql + n, sizeof sql - n, "%s?%s", c ? "," : r ? ",(" : "(", c == t->columns - 1 ? ")" : "");
  if (n >= sizeof sql) fail("a statement is too long");
  sqlite3_stmt *s;
  check(sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &s, NULL), sql);
  return s;
}

static void need(void *to, size_t n) {
  if (fread_unlocked(to, 1, n, stdin) != n) fail("the rows end too early");
}

// bind_row reads a row into the parameters of s from first on; texts go to arena, whose rest is returned.
static char *bind_row(const struct table *t, sqlite3_stmt *s, int first, char *arena) {
  for (int c = 0; c < t->columns; c++) {
    int at = first + c + 1;
    int64_t i;
    double d;
    uint16_t n;
    uint8_t b;
    switch (t->types[c]) {
      case 's':
        need(&n, 2);
        if (n > TEXT / COLUMNS) fail("a text of %d bytes", n);
        need(arena, n);
        check(sqlite3_bind_text(s, at, arena, n, SQLITE_STATIC), "bind");
        arena += n;
        break;
      case 'i':
        need(&i, 8);
        check(sqlite3_bind_int64(s, at, i), "bind");
        break;
      case 'd':
        need(&d, 8);
        check(sqlite3_bind_double(s, at, d), "bind");
        break;
      default:
        need(&b, 1);
        check(sqlite3_bind_int(s, at, b), "bind");
    }
  }
  return arena;
}

static void insert_now(sqlite3_stmt *s) {
  check(sqlite3_step(s), "insert");
  sqlite3_reset(s);
}

static void rows(void) {
  static char arena[MULTI * TEXT];
  struct rusage r;
  double cpu = cpu_seconds(&r);
  int64_t begin = mono_ns(), total = 0;
  int waiting = 0;
  for (;;) {
    uint8_t k, n;
    need(&k, 1);
    if (k == 255) break;
    need(&n, 1);
    if (k >= ntables || n > MULTI) fail("%d rows of table %d of %d", n, k, ntables);
    struct table *t = &tables[k];
    if (!t->many) t->many = insert(t, MULTI), t->one = insert(t, 1);
    if (!waiting) run("BEGIN");
    if (n == MULTI) {
      char *a = arena;
      for (int i = 0; i < n; i++) a = bind_row(t, t->many, i * t->columns, a);
      insert_now(t->many);
    } else {
      for (int i = 0; i < n; i++) {
        bind_row(t, t->one, 0, arena);
        insert_now(t->one);
      }
    }
    total += n;
    if ((waiting += n) >= TRANSACTION) {
      run("COMMIT");
      waiting = 0;
    }
  }
  if (waiting) run("COMMIT");
  double seconds = (mono_ns() - begin) / 1e9;
  cpu = cpu_seconds(&r) - cpu;
  printf("{\"rows\":%" PRId64 ",\"seconds\":%.9f,\"cpu_s\":%.6f,\"rss_peak_bytes\":%" PRId64 "}\n", total, seconds, cpu, (int64_t)r.ru_maxrss << 10);
}

static void print_text(const unsigned char *s, int n) {
  putchar('"');
  for (int i = 0; i < n; i++) {
    if (s[i] == '"' || s[i] == '\\') printf("\\%c", s[i]);
    else if (s[i] < ' ') printf("\\u%04x", s[i]);
    else putchar(s[i]);
  }
  putchar('"');
}

static void print_row(sqlite3_stmt *s, int first) {
  fputs(first ? "[" : ",[", stdout);
  for (int c = 0; c < sqlite3_column_count(s); c++) {
    if (c) putchar(',');
    switch (sqlite3_column_type(s, c)) {
      case SQLITE_INTEGER: printf("%lld", (long long)sqlite3_column_int64(s, c)); break;
      case SQLITE_FLOAT: printf("%.17g", sqlite3_column_double(s, c)); break;
      case SQLITE_NULL: fputs("null", stdout); break;
      default: print_text(sqlite3_column_text(s, c), sqlite3_column_bytes(s, c));
    }
  }
  putchar(']');
}

// query steps through all rows as often as it is asked to, and once more for printing. The statement is prepared each time.
static void query(int repeats, const char *sql) {
  fputs("{\"seconds\":[", stdout);
  struct rusage r;
  double cpu = cpu_seconds(&r);
  sqlite3_stmt *s;
  for (int i = 0; i < repeats; i++) {
    int64_t begin = mono_ns();
    check(sqlite3_prepare_v2(db, sql, -1, &s, NULL), sql);
    int rc;
    while ((rc = sqlite3_step(s)) == SQLITE_ROW)
      for (int c = sqlite3_column_count(s) - 1; c >= 0; c--)
        if (sqlite3_column_type(s, c) == SQLITE_TEXT) (void)sqlite3_column_text(s, c);
    check(rc, sql);
    sqlite3_finalize(s);
    printf("%s%.9f", i ? "," : "", (mono_ns() - begin) / 1e9);
  }
  printf("],\"cpu_s\":%.6f,\"rows\":[", cpu_seconds(&r) - cpu);
  check(sqlite3_prepare_v2(db, sql, -1, &s, NULL), sql);
  for (int first = 1; sqlite3_step(s) == SQLITE_ROW; first = 0) print_row(s, first);
  sqlite3_finalize(s);
  puts("]}");
}

int main(int argc, char **argv) {
  if (argc != 2) fail("usage: sqlite_table DATABASE");
  check(sqlite3_open_v2(argv[1], &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL), "open");
  char *line = NULL;
  size_t room = 0;
  ssize_t n;
  while ((n = getline(&line, &room, stdin)) > 0) {
    if (line[n - 1] == '\n') line[--n] = 0;
    if (n == 0) continue;
    char *rest = n > 2 ? line + 2 : line + n;
    switch (line[0]) {
      case 'X': run(rest); break;
      case 'T': {
        struct table *t = &tables[ntables];
        if (ntables == TABLES || sscanf(rest, "%63s %63s", t->name, t->types) != 2) fail("table: %s", rest);
        t->columns = (int)strlen(t->types);
        ntables++;
        break;
      }
      case 'R': rows(); break;
      case 'Q': {
        char *sql;
        long repeats = strtol(rest, &sql, 10);
        query((int)repeats, sql);
        break;
      }
      default: fail("command %s", line);
    }
    fflush(stdout);
  }
  free(line);
  for (int i = 0; i < ntables; i++) sqlite3_finalize(tables[i].one), sqlite3_finalize(tables[i].many);
  check(sqlite3_close(db), "close");
  return 0;
}
