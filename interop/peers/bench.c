#define _GNU_SOURCE
#include "bench.h"
#include <ftw.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include "clock.h"

enum { POOL = 24 << 20, STEP = 104729, BATCH = 1 << 20 };

static double now_cpu, now_seconds; // when the clocks stopped

void bench_fail(const char *format, ...) {
  va_list args;
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fputc('\n', stderr);
  exit(1);
}

static uint64_t next_random(uint64_t *state) { // splitmix64
  uint64_t z = *state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

static long long number(const char *flag, const char *text, long long low, long long high) {
  char *end;
  long long n = strtoll(text, &end, 10);
  if (*text == 0 || *end != 0 || n < low || n > high) {
    fprintf(stderr, "%s %s: not a number in %lld..%lld\n", flag, text, low, high);
    exit(2);
  }
  return n;
}

static void *reserve(size_t n) {
  void *p = calloc(n ? n : 1, 1);
  if (!p) bench_fail("out of memory: %zu bytes", n);
  return p;
}

// one of several words, the index
static int word(const char *flag, const char *text, const char *const *known) {
  for (int i = 0; known[i]; i++)
    if (strcmp(text, known[i]) == 0) return i;
  fprintf(stderr, "%s %s: unknown\n", flag, text);
  exit(2);
}

void bench_parse(struct bench *b, int argc, char **argv) {
  memset(b, 0, sizeof *b);
  b->preset = "";
  for (int i = 1; i < argc; i += 2) {
    const char *flag = argv[i];
    if (i + 1 == argc) {
      fprintf(stderr, "%s: no value\n", flag);
      exit(2);
    }
    const char *v = argv[i + 1];
    if (!strcmp(flag, "--op")) b->write = word(flag, v, (const char *const[]){"read", "write", NULL});
    else if (!strcmp(flag, "--order")) b->order = word(flag, v, (const char *const[]){"seq", "each", "rand", NULL});
    else if (!strcmp(flag, "--payload")) b->half = word(flag, v, (const char *const[]){"noise", "half", NULL});
    else if (!strcmp(flag, "--size")) b->size = number(flag, v, 1, POOL / 2);
    else if (!strcmp(flag, "--count")) b->count = number(flag, v, 1, 100000000);
    else if (!strcmp(flag, "--seed")) b->seed = number(flag, v, 0, INT64_MAX);
    else if (!strcmp(flag, "--buffer")) b->buffer = number(flag, v, 0, INT64_MAX);
    else if (!strcmp(flag, "--pace")) b->pace = number(flag, v, 0, INT64_MAX);
    else if (!strcmp(flag, "--sync-ms")) (void)number(flag, v, 0, INT64_MAX); // rosbag2 leaves it to the engine
    else if (!strcmp(flag, "--path")) b->path = v;
    else if (!strcmp(flag, "--preset")) b->preset = v;
    else {
      fprintf(stderr, "%s: unknown flag\n", flag);
      exit(2);
    }
  }
  if (!b->path || !b->size || !b->count) {
    fprintf(stderr, "--path, --size and --count must be given\n");
    exit(2);
  }
  b->pool = reserve(POOL);
  uint64_t state = b->seed;
  for (size_t i = 0; i < POOL; i += 8) {
    uint64_t r = next_random(&state);
    memcpy(b->pool + i, &r, 8);
  }
  if (b->half)
    for (size_t i = 0; i + 100 <= POOL; i += 100) memcpy(b->pool + i + 50, b->pool + i, 50);
  if (b->order == BENCH_RAND) {
    b->keys = reserve(b->count * sizeof *b->keys);
    for (size_t i = 0; i < b->count; i++) b->keys[i] = i;
    for (size_t i = b->count - 1; i > 0; i--) {
      size_t j = next_random(&state) % (i + 1);
      uint32_t k = b->keys[i];
      b->keys[i] = b->keys[j];
      b->keys[j] = k;
    }
  }
  b->waits = reserve(b->count * sizeof *b->waits);
}

size_t bench_key(const struct bench *b, size_t i) { return b->keys ? b->keys[i] : i; }

const unsigned char *bench_data(const struct bench *b, size_t key) { return b->pool + key * STEP % (POOL - b->size); }

int64_t bench_stamp(size_t key) { return 1700000000000000000 + (int64_t)key * 100000; }

// a number behind a key in a file of /proc; -1 where there is none
static int64_t proc_number(const char *path, const char *key) {
  FILE *f = fopen(path, "r");
  if (!f) return -1;
  char line[256];
  int64_t n = -1;
  while (n < 0 && fgets(line, sizeof line, f))
    if (!strncmp(line, key, strlen(key))) n = strtoll(line + strlen(key), NULL, 10);
  fclose(f);
  return n;
}

static double cpu_seconds(void) {
  struct rusage r;
  getrusage(RUSAGE_SELF, &r);
  return r.ru_utime.tv_sec + r.ru_stime.tv_sec + (r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

void bench_start(struct bench *b) {
  FILE *f = fopen("/proc/self/clear_refs", "w"); // the peak of the resident set counts from here
  if (f) {
    fputs("5", f);
    fclose(f);
  }
  b->base_rss = proc_number("/proc/self/status", "VmRSS:") << 10;
  b->written = proc_number("/proc/self/io", "write_bytes:");
  b->cpu = cpu_seconds();
  b->begin = b->last = mono_ns();
}

static int64_t due(const struct bench *b, size_t i) { return b->begin + (int64_t)((double)i * b->size / b->pace * 1e9); }

size_t bench_batch(struct bench *b, size_t i) {
  size_t most = b->size < BATCH ? BATCH / b->size : 1, n = 0;
  if (b->pace) {
    while (mono_ns() < due(b, i)) sleep_until(due(b, i));
    int64_t now = mono_ns();
    while (n < most && i + n < b->count && due(b, i + n) <= now) n++;
  } else {
    b->last = mono_ns();
    n = most < b->count - i ? most : b->count - i;
  }
  return n;
}

void bench_wrote(struct bench *b, size_t i, size_t n) {
  int64_t now = mono_ns();
  for (size_t k = i; k < i + n; k++) b->waits[b->waited++] = now - (b->pace ? due(b, k) : b->last);
}

// touch reads one word of every cache line.
static uint64_t touch(const unsigned char *p, size_t n) {
  uint64_t sum = n, w;
  for (; n >= 64; p += 64, n -= 64) {
    memcpy(&w, p, 8);
    sum += w;
  }
  if (n >= 8) {
    memcpy(&w, p, 8);
    sum += w;
  }
  return sum;
}

void bench_read_one(struct bench *b, const void *data, size_t size) {
  if (b->read == b->count) bench_fail("there are more than %zu messages", b->count);
  b->sum += touch(data, size);
  b->read++;
  if (b->order != BENCH_SEQ) {
    int64_t now = mono_ns();
    b->waits[b->waited++] = now - b->last;
    b->last = now;
  }
}

void bench_stop(struct bench *b) {
  now_seconds = (mono_ns() - b->begin) / 1e9;
  now_cpu = cpu_seconds() - b->cpu;
}

static int64_t on_disk;

static int add_file(const char *path, const struct stat *st, int type, struct FTW *at) {
  (void)path, (void)type, (void)at;
  on_disk += (int64_t)st->st_blocks * 512;
  return 0;
}

static int ascending(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static int64_t quantile(const struct bench *b, double q) {
  if (!b->waited) return 0;
  size_t i = q * b->waited;
  return b->waits[i < b->waited ? i : b->waited - 1];
}

int bench_report(struct bench *b) {
  if (!b->write) {
    uint64_t want = 0;
    for (size_t k = 0; k < b->count; k++) want += touch(bench_data(b, k), b->size);
    if (b->read != b->count || b->sum != want)
      bench_fail("read %zu messages with sum %" PRIx64 ", written were %zu with sum %" PRIx64, b->read, b->sum, b->count, want);
  }
  if (nftw(b->path, add_file, 16, FTW_PHYS)) bench_fail("%s: cannot be walked", b->path);
  int64_t peak = proc_number("/proc/self/status", "VmHWM:") << 10;
  int64_t written = proc_number("/proc/self/io", "write_bytes:");
  qsort(b->waits, b->waited, sizeof *b->waits, ascending);
  printf("{\"messages\":%zu,\"seconds\":%.9f,\"cpu_s\":%.6f,\"rss_base_bytes\":%" PRId64 ",\"rss_peak_bytes\":%" PRId64
         ",\"write_bytes\":%" PRId64 ",\"disk_bytes\":%" PRId64 ",\"wait_p50_ns\":%" PRId64 ",\"wait_p99_ns\":%" PRId64
         ",\"wait_p999_ns\":%" PRId64 ",\"wait_max_ns\":%" PRId64 "}\n",
         b->count, now_seconds, now_cpu, b->base_rss, peak, b->written < 0 ? -1 : written - b->written, on_disk, quantile(b, 0.5), quantile(b, 0.99),
         quantile(b, 0.999), quantile(b, 1));
  free(b->pool);
  free(b->keys);
  free(b->waits);
  return 0;
}
