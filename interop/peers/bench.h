// What the storage peers share: the flags of a task of gobag perf storage, messages, and the result as a JSON line.
#pragma once
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

enum bench_order { BENCH_SEQ, BENCH_EACH, BENCH_RAND };

struct bench {
  // the task
  int write; // else read
  enum bench_order order;
  size_t size, count;
  const char *path, *preset;
  uint64_t seed;
  int half;       // payload that compresses to half
  int64_t buffer; // bytes; 0 = default
  int64_t pace;   // bytes per second; 0 = as fast as it goes

  // its data
  unsigned char *pool;
  uint32_t *keys;  // of BENCH_RAND
  int64_t *waits;  // ns, one for each message
  size_t waited, read;
  uint64_t sum;
  int64_t begin, last; // monotonic ns
  double cpu;
  int64_t base_rss, written;
};

// bench_parse reads the command line, makes the data and ends the program with code 2 where a flag is wrong.
void bench_parse(struct bench *b, int argc, char **argv);

// bench_key is the i-th key; bench_data its payload, of size bytes; bench_stamp its stamp, ns.
size_t bench_key(const struct bench *b, size_t i);
const unsigned char *bench_data(const struct bench *b, size_t key);
int64_t bench_stamp(size_t key);

// bench_start starts the clocks.
void bench_start(struct bench *b);

// bench_batch says how many messages from the i-th on are to be handed over at once. When paced it sleeps until the
// first is due. bench_wrote ends the wait of the n messages from the i-th on.
size_t bench_batch(struct bench *b, size_t i);
void bench_wrote(struct bench *b, size_t i, size_t n);

// bench_read_one takes in one message that was read.
void bench_read_one(struct bench *b, const void *data, size_t size);

// bench_stop stops the clocks; bench_report checks what was read and prints the result. It returns the exit code.
void bench_stop(struct bench *b);
int bench_report(struct bench *b);

// bench_fail prints what failed and ends the program with code 1.
#if defined(__GNUC__)
__attribute__((noreturn, format(printf, 1, 2)))
#endif
void bench_fail(const char *format, ...);

#ifdef __cplusplus
}
#endif
