// cy_pub is a Cyclone DDS publisher of ROS 2 messages that knows nothing of gobag. One thread a -t argument (all its
// instances); events as JSON lines on stdout:
//   {"event":"ready"} {"event":"start","mono_ns":…} and at the end one {"event":"topic",…} a topic, {"event":"done"}.
#define _GNU_SOURCE
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "clock.h"
#include "cy_describe.h"
#include "dds/dds.h"
#include "graph.h"
#include "sample.h"
#include "spec.h"

static volatile sig_atomic_t stopping;
static void on_signal(int s) { (void)s; stopping = 1; }

// Every duration of a write call, for the quantiles at the end.
struct latencies {
  int64_t *ns;
  size_t len, cap;
};

static void latencies_add(struct latencies *l, int64_t ns) {
  if (l->len == l->cap) {
    l->cap = l->cap ? 2 * l->cap : 4096;
    l->ns = realloc(l->ns, l->cap * sizeof *l->ns);
    if (!l->ns) abort();
  }
  l->ns[l->len++] = ns;
}

static int compare_ns(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static int64_t quantile(const struct latencies *sorted, double q) {
  return sorted->len ? sorted->ns[(size_t)(q * (double)(sorted->len - 1) + 0.5)] : 0;
}

// What one thread publishes.
struct job {
  struct spec spec;
  dds_entity_t *writers;
  char (*names)[160];
  int instances;
  int64_t start, first, last; // monotonic ns
  uint32_t sent;              // running numbers 0…sent-1 went out on every instance
  uint64_t failed;            // write calls that returned an error; their number is used again
  int64_t worst_lag;          // ns behind the schedule
  struct latencies calls;
};

static FILE *call_log; // "topic number mono_ns duration_ns result" a write call
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int64_t run_until; // monotonic ns; 0 = no end

static void write_one(struct job *j, int i, const struct sample *s) {
  for (;;) {
    int64_t before = mono_ns();
    dds_return_t r = dds_write(j->writers[i], &s->as);
    int64_t took = mono_ns() - before;
    latencies_add(&j->calls, took);
    if (call_log) {
      pthread_mutex_lock(&log_lock);
      fprintf(call_log, "%s %" PRIu32 " %" PRId64 " %" PRId64 " %d\n", j->names[i], j->sent, before, took, (int)r);
      pthread_mutex_unlock(&log_lock);
    }
    if (r == DDS_RETCODE_OK) return;
    j->failed++;
    if (r != DDS_RETCODE_TIMEOUT) must(r, "write");
    if (stopping && run_until == 0) return;
  }
}

static bool finished(const struct job *j) {
  return stopping || (j->spec.count && j->sent >= j->spec.count) || (run_until && mono_ns() >= run_until);
}

static void *publish(void *arg) {
  struct job *j = arg;
  struct sample s;
  sample_init(&s, &j->spec);
  int64_t period = j->spec.hz > 0 ? (int64_t)(1e9 / j->spec.hz) : 0;
  for (int64_t tick = 0; !finished(j); tick++) {
    int64_t due = j->start + tick * period, now = mono_ns();
    if (now < due) sleep_until(due);
    else if (period && now - due > j->worst_lag) j->worst_lag = now - due;
    if (finished(j)) break;
    for (int i = 0; i < j->instances; i++) {
      sample_set(&s, j->sent, (uint32_t)i, (uint64_t)j->sent * (uint64_t)period);
      write_one(j, i, &s);
    }
    j->last = mono_ns();
    if (!j->sent) j->first = j->last;
    j->sent++;
  }
  return NULL;
}

static void create_writers(struct job *j, dds_entity_t participant) {
  j->instances = j->spec.n > 0 ? j->spec.n : 1;
  j->writers = calloc((size_t)j->instances, sizeof *j->writers);
  j->names = calloc((size_t)j->instances, sizeof *j->names);
  dds_qos_t *q = spec_qos(&j->spec, true);
  for (int i = 0; i < j->instances; i++) {
    dds_entity_t t = spec_topic(participant, &j->spec, i, j->names[i], sizeof j->names[i]);
    j->writers[i] = must(dds_create_writer(participant, t, q, NULL), j->names[i]);
  }
  dds_delete_qos(q);
}

// wait_matched waits until every writer of j has want readers, a signal comes or the deadline passes.
static bool wait_matched(const struct job *j, uint32_t want, int64_t deadline) {
  for (int i = 0; i < j->instances; i++) {
    for (;;) {
      dds_publication_matched_status_t st;
      must(dds_get_publication_matched_status(j->writers[i], &st), "matched status");
      if (st.current_count >= want) break;
      if (stopping) return true;
      if (mono_ns() > deadline) return false;
      sleep_ms(2);
    }
  }
  return true;
}

static void report(struct job *j) {
  qsort(j->calls.ns, j->calls.len, sizeof *j->calls.ns, compare_ns);
  for (int i = 0; i < j->instances; i++)
    printf("{\"event\":\"topic\",\"topic\":\"%s\",\"sent\":%" PRIu32 ",\"failed\":%" PRIu64 ",\"first_ns\":%" PRId64
           ",\"last_ns\":%" PRId64 ",\"lag_ns\":%" PRId64 ",\"p50_ns\":%" PRId64 ",\"p99_ns\":%" PRId64
           ",\"max_ns\":%" PRId64 "}\n",
           j->names[i], j->sent, j->failed, j->first, j->last, j->worst_lag, quantile(&j->calls, 0.5),
           quantile(&j->calls, 0.99), quantile(&j->calls, 1));
}

// set_priority makes this process a real-time one, so that its write calls are not long because others run. Without the
// right to, it stays as it is.
static void set_priority(int priority) {
  struct sched_param p = {.sched_priority = priority};
  if (sched_setscheduler(0, SCHED_FIFO, &p)) perror("priority");
}

static void usage(void) {
  fprintf(stderr, "usage: cy_pub [--seconds S] [--wait READERS] [--wait-timeout S] [--settle MS] [--linger S] "
                  "[--calls FILE] [--priority P] [--node /NAMESPACE/NAME:16|24] [options of describe.h] -t SPEC …\n");
  exit(2);
}

int main(int argc, char **argv) {
  enum { MAX_JOBS = 32 };
  static struct job jobs[MAX_JOBS];
  int n = 0, settle_ms = 200;
  uint32_t want = 0;
  double seconds = 0, wait_timeout = 20, linger = 2;
  const char *node = NULL;
  static struct describe_options describe;
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 >= argc) usage();
    const char *key = argv[i], *value = argv[i + 1];
    if (!strcmp(key, "-t") && n < MAX_JOBS) spec_parse(&jobs[n++].spec, value);
    else if (!strcmp(key, "--seconds")) seconds = atof(value);
    else if (!strcmp(key, "--wait")) want = (uint32_t)atoi(value);
    else if (!strcmp(key, "--wait-timeout")) wait_timeout = atof(value);
    else if (!strcmp(key, "--settle")) settle_ms = atoi(value);
    else if (!strcmp(key, "--linger")) linger = atof(value);
    else if (!strcmp(key, "--priority")) set_priority(atoi(value));
    else if (!strcmp(key, "--node")) node = value;
    else if (!strcmp(key, "--calls")) { if (!(call_log = fopen(value, "w"))) { perror(value); return 1; } }
    else if (!describe_option(&describe, key, value)) usage();
  }
  if (!n || (describe.definitions && !node)) usage();
  signal(SIGINT, on_signal);
  signal(SIGTERM, on_signal);
  setvbuf(stdout, NULL, _IOLBF, 0);

  dds_entity_t participant = join();
  for (int i = 0; i < n; i++) create_writers(&jobs[i], participant);
  if (node) {
    graph_open(participant, node);
    for (int i = 0; i < n; i++) graph_add(jobs[i].writers[0]); // the first instance of each
    if (!describe.nameless) graph_say();
    if (describe.definitions) cy_describe(participant, &describe);
  }
  pthread_t threads[MAX_JOBS];
  printf("{\"event\":\"ready\"}\n");
  for (int i = 0; i < n; i++) {
    if (!jobs[i].spec.early) continue;
    jobs[i].start = mono_ns();
    if (pthread_create(&threads[i], NULL, publish, &jobs[i])) abort();
  }
  bool all = true;
  if (want) {
    int64_t deadline = mono_ns() + (int64_t)(wait_timeout * 1e9);
    for (int i = 0; i < n; i++) all = wait_matched(&jobs[i], want, deadline) && all;
    sleep_ms(settle_ms); // the reader may still be matching us
  }
  if (!all) fprintf(stderr, "cy_pub: not every topic has %u readers after %g s\n", want, wait_timeout);

  int64_t start = mono_ns();
  if (seconds > 0) run_until = start + (int64_t)(seconds * 1e9);
  printf("{\"event\":\"start\",\"mono_ns\":%" PRId64 ",\"wall_ns\":%" PRId64 "}\n", start, wall_ns());
  for (int i = 0; i < n; i++) {
    if (jobs[i].spec.early) continue;
    jobs[i].start = start;
    if (pthread_create(&threads[i], NULL, publish, &jobs[i])) abort();
  }
  for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
  if (run_until)
    while (!stopping && mono_ns() < run_until) sleep_ms(5); // latched topics stay for the whole run
  for (int i = 0; i < n; i++)
    for (int w = 0; w < jobs[i].instances && jobs[i].spec.reliable; w++)
      dds_wait_for_acks(jobs[i].writers[w], (dds_duration_t)(linger * 1e9));
  for (int i = 0; i < n; i++) report(&jobs[i]);
  printf("{\"event\":\"done\",\"mono_ns\":%" PRId64 "}\n", mono_ns());
  if (call_log && fclose(call_log)) { perror("calls"); return 1; }
  cy_describe_end();
  dds_delete(participant);
  return all ? 0 : 3;
}
