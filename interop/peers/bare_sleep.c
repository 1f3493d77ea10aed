// bare_sleep wakes up at a list of times and says how late: the ceiling that lateness is measured against.
// Standard input: one offset in ns a line, ascending. It prints {"event":"ready"}, starts half a second later, and
// writes each lateness in ns to standard output, one a line.
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "clock.h"

int main(void) {
  size_t n = 0, cap = 1 << 16;
  int64_t *due = malloc(cap * sizeof *due), v;
  while (due && scanf("%" SCNd64, &v) == 1) {
    if (n == cap) due = realloc(due, (cap *= 2) * sizeof *due);
    if (due) due[n++] = v;
  }
  if (!due) abort();
  printf("{\"event\":\"ready\"}\n");
  fflush(stdout);
  int64_t start = mono_ns() + 500000000;
  for (size_t i = 0; i < n; i++) {
    int64_t at = start + due[i];
    if (mono_ns() < at) sleep_until(at);
    due[i] = mono_ns() - at;
  }
  for (size_t i = 0; i < n; i++) printf("%" PRId64 "\n", due[i]);
  free(due);
  return 0;
}
