// Clocks in nanoseconds and the sleep to an absolute deadline.
#pragma once
#include <stdint.h>
#include <time.h>

static inline int64_t clock_ns(clockid_t id) {
  struct timespec t;
  clock_gettime(id, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline int64_t mono_ns(void) { return clock_ns(CLOCK_MONOTONIC); }
static inline int64_t wall_ns(void) { return clock_ns(CLOCK_REALTIME); }

// sleep_until returns at the monotonic time t, or earlier when a signal arrives.
static inline void sleep_until(int64_t t) {
  struct timespec d = {.tv_sec = t / 1000000000, .tv_nsec = t % 1000000000};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &d, NULL);
}

static inline void sleep_ms(int64_t ms) { sleep_until(mono_ns() + ms * 1000000); }
