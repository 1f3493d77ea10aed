// An append log as a peer of gobag perf storage: length, stamp and payload through a buffer of 256 KB, no checksum, no
// sync. What a disk takes from a C program. Flags and result: bench.h.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "bench.h"

enum { BUFFER = 256 << 10, HEADER = 16 };

static unsigned char buffer[BUFFER];
static size_t filled;
static int fd;

static void put_all(const unsigned char *p, size_t n) {
  while (n) {
    ssize_t w = write(fd, p, n);
    if (w < 0) bench_fail("write: %m");
    p += w;
    n -= (size_t)w;
  }
}

static void append(const void *p, size_t n) {
  if (filled + n > BUFFER) {
    put_all(buffer, filled);
    filled = 0;
  }
  if (n >= BUFFER) {
    put_all(p, n);
    return;
  }
  memcpy(buffer + filled, p, n);
  filled += n;
}

static void write_all(struct bench *b) {
  for (size_t i = 0; i < b->count;) {
    size_t n = bench_batch(b, i);
    for (size_t k = i; k < i + n; k++) {
      int64_t head[2] = {(int64_t)b->size, bench_stamp(bench_key(b, k))};
      append(head, sizeof head);
      append(bench_data(b, bench_key(b, k)), b->size);
    }
    bench_wrote(b, i, n);
    i += n;
  }
  put_all(buffer, filled);
}

static void read_all(struct bench *b) {
  size_t record = HEADER + b->size;
  unsigned char *p = malloc(record);
  if (!p) bench_fail("out of memory: %zu bytes", record);
  for (size_t i = 0; i < b->count; i++) {
    ssize_t n = pread(fd, p, record, (off_t)(bench_key(b, i) * record));
    if (n != (ssize_t)record) bench_fail("record %zu: %zd bytes, want %zu", bench_key(b, i), n, record);
    bench_read_one(b, p + HEADER, b->size);
  }
  free(p);
}

int main(int argc, char **argv) {
  struct bench b;
  bench_parse(&b, argc, argv);
  bench_start(&b);
  fd = open(b.path, b.write ? O_CREAT | O_EXCL | O_WRONLY : O_RDONLY, 0666);
  if (fd < 0) bench_fail("open %s: %m", b.path);
  if (b.write) write_all(&b);
  else read_all(&b);
  if (close(fd)) bench_fail("close %s: %m", b.path);
  bench_stop(&b);
  return bench_report(&b);
}
