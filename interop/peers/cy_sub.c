// cy_sub is a Cyclone DDS subscriber of ROS 2 messages that knows nothing of gobag: it counts, checks the order, logs
// every arrival and can keep the payloads. It is the outside log of the crash tests and the peer of the overload tests.
// Events as JSON lines on stdout: {"event":"ready"}, {"event":"matched","topic":…} and likewise unmatched, alive, not_alive
// (writers), incompatible, and at the end one {"event":"topic",…} a topic, {"event":"done"}.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "clock.h"
#include "dds/dds.h"
#include "dds/ddsi/ddsi_serdata.h"
#include "sample.h"
#include "spec.h"

static volatile sig_atomic_t stopping;
static void on_signal(int s) { (void)s; stopping = 1; }

enum { BATCH = 64 };

// One topic being read.
struct input {
  enum kind kind;
  char name[160];
  dds_entity_t reader;
  uint32_t matched, alive;       // writers
  uint32_t incompatible;         // writers refused for their QoS
  uint64_t got, bytes;
  int64_t first, last;           // running numbers; -1 none yet
  uint64_t gaps, disorder, odd;  // numbers skipped; not above the last one; without a number
};

static FILE *arrivals;        // "topic number wall_ns mono_ns source_ns header length hash" a sample
static FILE *dump;            // u16 name length, name, u32 length, CDR a sample; little-endian
static int data_fd = -1;      // payloads appended as they come, like a plain recorder
static int64_t slow_us;       // pause after each sample
static int64_t last_arrival;  // monotonic ns
static uint64_t total;

static void write_all(int fd, const uint8_t *p, size_t n) {
  while (n) {
    ssize_t w = write(fd, p, n);
    if (w < 0 && errno == EINTR) continue;
    if (w < 0) { perror("data file"); exit(1); }
    p += w;
    n -= (size_t)w;
  }
}

static void store(const struct input *in, const uint8_t *cdr, uint32_t len) {
  uint16_t name = (uint16_t)strlen(in->name);
  if (fwrite(&name, 2, 1, dump) != 1 || fwrite(in->name, name, 1, dump) != 1 || fwrite(&len, 4, 1, dump) != 1 ||
      fwrite(cdr, len, 1, dump) != 1) {
    perror("dump");
    exit(1);
  }
}

static void take_one(struct input *in, const uint8_t *cdr, uint32_t len, int64_t source, int64_t wall, int64_t mono) {
  int64_t number = cdr_number(in->kind, cdr, len);
  if (number < 0) in->odd++;
  else if (in->last >= 0 && number <= in->last) in->disorder++;
  else {
    if (in->last >= 0) in->gaps += (uint64_t)(number - in->last - 1);
    else in->first = number;
    in->last = number;
  }
  in->got++;
  in->bytes += len;
  total++;
  last_arrival = mono;
  if (arrivals)
    fprintf(arrivals, "%s %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %02x%02x%02x%02x %" PRIu32 " %016" PRIx64 "\n",
            in->name, number, wall, mono, source, cdr[0], cdr[1], cdr[2], cdr[3], len, fnv1a(cdr + 4, len - 4));
  if (dump) store(in, cdr, len);
  if (data_fd >= 0) write_all(data_fd, cdr, len);
  if (slow_us) sleep_until(mono_ns() + slow_us * 1000);
}

// drain takes what the reader holds. Returns the number of samples.
static int drain(struct input *in) {
  static uint8_t *scratch;
  static uint32_t room;
  struct ddsi_serdata *sd[BATCH];
  dds_sample_info_t info[BATCH];
  int n = dds_takecdr(in->reader, sd, BATCH, info, DDS_ANY_STATE);
  if (n < 0) must(n, in->name);
  int64_t wall = wall_ns(), mono = mono_ns();
  for (int i = 0; i < n; i++) {
    if (info[i].valid_data) {
      uint32_t len = ddsi_serdata_size(sd[i]);
      if (len > room) {
        free(scratch);
        room = len + len / 4;
        scratch = malloc(room);
        if (!scratch) abort();
      }
      ddsi_serdata_to_ser(sd[i], 0, len, scratch);
      if (len >= 4) take_one(in, scratch, len, info[i].source_timestamp, wall, mono);
    }
    ddsi_serdata_unref(sd[i]);
  }
  return n;
}

// note_changes tells of writers that came, went, fell silent or do not fit.
static void note_changes(struct input *in) {
  dds_subscription_matched_status_t m;
  must(dds_get_subscription_matched_status(in->reader, &m), "matched status");
  if (m.current_count != in->matched)
    printf("{\"event\":\"%s\",\"topic\":\"%s\",\"writers\":%" PRIu32 ",\"mono_ns\":%" PRId64 "}\n",
           m.current_count > in->matched ? "matched" : "unmatched", in->name, m.current_count, mono_ns());
  in->matched = m.current_count;
  dds_liveliness_changed_status_t l;
  must(dds_get_liveliness_changed_status(in->reader, &l), "liveliness status");
  if (l.alive_count != in->alive)
    printf("{\"event\":\"%s\",\"topic\":\"%s\",\"writers\":%" PRIu32 ",\"mono_ns\":%" PRId64 "}\n",
           l.alive_count > in->alive ? "alive" : "not_alive", in->name, l.alive_count, mono_ns());
  in->alive = l.alive_count;
  dds_requested_incompatible_qos_status_t q;
  must(dds_get_requested_incompatible_qos_status(in->reader, &q), "incompatible status");
  if (q.total_count != in->incompatible)
    printf("{\"event\":\"incompatible\",\"topic\":\"%s\",\"policy\":%" PRIu32 "}\n", in->name, q.last_policy_id);
  in->incompatible = q.total_count;
}

static void report(const struct input *in) {
  printf("{\"event\":\"topic\",\"topic\":\"%s\",\"got\":%" PRIu64 ",\"first\":%" PRId64 ",\"last\":%" PRId64
         ",\"gaps\":%" PRIu64 ",\"disorder\":%" PRIu64 ",\"odd\":%" PRIu64 ",\"bytes\":%" PRIu64 "}\n",
         in->name, in->got, in->first, in->last, in->gaps, in->disorder, in->odd, in->bytes);
}

static void usage(void) {
  fprintf(stderr, "usage: cy_sub [--seconds S] [--idle S] [--expect N] [--slow-us US] [--log FILE] [--dump FILE] "
                  "[--data FILE] -t SPEC …\n");
  exit(2);
}

static FILE *must_open(const char *path) {
  FILE *f = fopen(path, "w");
  if (!f) { perror(path); exit(1); }
  setvbuf(f, NULL, _IOFBF, 1 << 20);
  return f;
}

int main(int argc, char **argv) {
  enum { MAX_INPUTS = 1024, MAX_SPECS = 32 };
  static struct input inputs[MAX_INPUTS];
  static struct spec specs[MAX_SPECS];
  int n = 0, n_specs = 0;
  double seconds = 0, idle = 0;
  uint64_t expect = 0;
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 >= argc) usage();
    const char *key = argv[i], *value = argv[i + 1];
    if (!strcmp(key, "-t") && n_specs < MAX_SPECS) spec_parse(&specs[n_specs++], value);
    else if (!strcmp(key, "--seconds")) seconds = atof(value);
    else if (!strcmp(key, "--idle")) idle = atof(value);
    else if (!strcmp(key, "--expect")) expect = strtoull(value, NULL, 10);
    else if (!strcmp(key, "--slow-us")) slow_us = atoll(value);
    else if (!strcmp(key, "--log")) arrivals = must_open(value);
    else if (!strcmp(key, "--dump")) dump = must_open(value);
    else if (!strcmp(key, "--data")) {
      data_fd = open(value, O_WRONLY | O_CREAT | O_TRUNC, 0644);
      if (data_fd < 0) { perror(value); return 1; }
    } else usage();
  }
  if (!n_specs) usage();
  signal(SIGINT, on_signal);
  signal(SIGTERM, on_signal);
  setvbuf(stdout, NULL, _IOLBF, 0);

  dds_entity_t participant = join();
  dds_entity_t waitset = must(dds_create_waitset(participant), "waitset");
  for (int s = 0; s < n_specs; s++) {
    dds_qos_t *q = spec_qos(&specs[s], false);
    for (int i = 0; i < (specs[s].n > 0 ? specs[s].n : 1) && n < MAX_INPUTS; i++, n++) {
      struct input *in = &inputs[n];
      in->kind = specs[s].kind;
      in->first = in->last = -1;
      dds_entity_t t = spec_topic(participant, &specs[s], i, in->name, sizeof in->name);
      in->reader = must(dds_create_reader(participant, t, q, NULL), in->name);
      must(dds_set_status_mask(in->reader, DDS_DATA_AVAILABLE_STATUS), "status mask");
      must(dds_waitset_attach(waitset, in->reader, n), "attach");
    }
    dds_delete_qos(q);
  }
  printf("{\"event\":\"ready\",\"mono_ns\":%" PRId64 "}\n", mono_ns());

  int64_t until = seconds > 0 ? mono_ns() + (int64_t)(seconds * 1e9) : INT64_MAX;
  int64_t look = 0; // when to look at the writers again
  static dds_attach_t ready[MAX_INPUTS];
  while (!stopping && mono_ns() < until && !(expect && total >= expect)) {
    int k = dds_waitset_wait(waitset, ready, (size_t)n, DDS_MSECS(50));
    if (mono_ns() >= look) {
      for (int i = 0; i < n; i++) note_changes(&inputs[i]);
      look = mono_ns() + 5000000;
    }
    if (k > n) k = n;
    for (int i = 0; i < k; i++)
      while (drain(&inputs[ready[i]]) == BATCH && !stopping) {}
    if (k == 0 && arrivals) fflush(arrivals);
    if (idle > 0 && total && mono_ns() - last_arrival > (int64_t)(idle * 1e9)) break;
  }
  for (int i = 0; i < n; i++) report(&inputs[i]);
  printf("{\"event\":\"done\",\"total\":%" PRIu64 "}\n", total);
  if ((arrivals && fclose(arrivals)) || (dump && fclose(dump)) || (data_fd >= 0 && close(data_fd))) {
    perror("close");
    return 1;
  }
  dds_delete(participant);
  return 0;
}
