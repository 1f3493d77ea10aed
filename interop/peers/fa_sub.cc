// fa_sub is a Fast DDS subscriber of ROS 2 messages that knows nothing of gobag. Command line, log and events are those
// of cy_sub, with the options of fa.h on top.
#include <cerrno>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fastdds/dds/core/condition/StatusCondition.hpp>
#include <fastdds/dds/core/condition/WaitSet.hpp>
#include <fastdds/dds/core/status/LivelinessChangedStatus.hpp>
#include <fastdds/dds/core/status/SubscriptionMatchedStatus.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fcntl.h>
#include <unistd.h>
#include "clock.h"
#include "fa.h"

using namespace eprosima::fastdds::dds;

static volatile sig_atomic_t stopping;
static void on_signal(int) { stopping = 1; }

// One topic being read.
struct input {
  kind what;
  std::string name;
  DataReader *reader;
  int matched = 0, alive = 0;     // writers
  int incompatible = 0;           // writers refused for their QoS
  uint64_t got = 0, bytes = 0;
  int64_t first = -1, last = -1;  // running numbers; -1 none yet
  uint64_t gaps = 0, disorder = 0, odd = 0; // numbers skipped; not above the last one; without a number

  void take_one(const payload &cdr, int64_t source, int64_t wall, int64_t mono);
  void drain();
  void note_changes();
  void report() const;
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

static void store(const std::string &topic, const payload &cdr) {
  uint16_t name = (uint16_t)topic.size();
  uint32_t len = (uint32_t)cdr.size();
  if (fwrite(&name, 2, 1, dump) != 1 || fwrite(topic.data(), name, 1, dump) != 1 || fwrite(&len, 4, 1, dump) != 1 ||
      fwrite(cdr.data(), len, 1, dump) != 1) {
    perror("dump");
    exit(1);
  }
}

void input::take_one(const payload &cdr, int64_t source, int64_t wall, int64_t mono) {
  int64_t number = cdr_number(what, cdr.data(), cdr.size());
  if (number < 0) odd++;
  else if (last >= 0 && number <= last) disorder++;
  else {
    if (last >= 0) gaps += (uint64_t)(number - last - 1);
    else first = number;
    last = number;
  }
  got++;
  bytes += cdr.size();
  total++;
  last_arrival = mono;
  if (arrivals)
    fprintf(arrivals, "%s %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %02x%02x%02x%02x %zu %016" PRIx64 "\n", name.c_str(),
            number, wall, mono, source, cdr[0], cdr[1], cdr[2], cdr[3], cdr.size(), fnv1a(cdr.data() + 4, cdr.size() - 4));
  if (dump) store(name, cdr);
  if (data_fd >= 0) write_all(data_fd, cdr.data(), cdr.size());
  if (slow_us) sleep_until(mono_ns() + slow_us * 1000);
}

// drain takes what the reader holds.
void input::drain() {
  static payload cdr;
  SampleInfo info;
  while (!stopping && reader->take_next_sample(&cdr, &info) == ReturnCode_t::RETCODE_OK)
    if (info.valid_data && cdr.size() >= 4) take_one(cdr, info.source_timestamp.to_ns(), wall_ns(), mono_ns());
}

// note_changes tells of writers that came, went, fell silent or do not fit.
void input::note_changes() {
  SubscriptionMatchedStatus m;
  reader->get_subscription_matched_status(m);
  if (m.current_count != matched)
    printf("{\"event\":\"%s\",\"topic\":\"%s\",\"writers\":%d,\"mono_ns\":%" PRId64 "}\n",
           m.current_count > matched ? "matched" : "unmatched", name.c_str(), m.current_count, mono_ns());
  matched = m.current_count;
  LivelinessChangedStatus l;
  reader->get_liveliness_changed_status(l);
  if (l.alive_count != alive)
    printf("{\"event\":\"%s\",\"topic\":\"%s\",\"writers\":%d,\"mono_ns\":%" PRId64 "}\n",
           l.alive_count > alive ? "alive" : "not_alive", name.c_str(), l.alive_count, mono_ns());
  alive = l.alive_count;
  RequestedIncompatibleQosStatus q;
  reader->get_requested_incompatible_qos_status(q);
  if ((int)q.total_count != incompatible)
    printf("{\"event\":\"incompatible\",\"topic\":\"%s\",\"policy\":%u}\n", name.c_str(), (unsigned)q.last_policy_id);
  incompatible = (int)q.total_count;
}

void input::report() const {
  printf("{\"event\":\"topic\",\"topic\":\"%s\",\"got\":%" PRIu64 ",\"first\":%" PRId64 ",\"last\":%" PRId64
         ",\"gaps\":%" PRIu64 ",\"disorder\":%" PRIu64 ",\"odd\":%" PRIu64 ",\"bytes\":%" PRIu64 "}\n",
         name.c_str(), got, first, last, gaps, disorder, odd, bytes);
}

[[noreturn]] static void usage() {
  fprintf(stderr, "usage: fa_sub [--seconds S] [--idle S] [--expect N] [--slow-us US] [--log FILE] [--dump FILE] "
                  "[--data FILE] [options of fa.h] -t SPEC …\n");
  exit(2);
}

static FILE *must_open(const char *path) {
  FILE *f = fopen(path, "w");
  if (!f) { perror(path); exit(1); }
  setvbuf(f, nullptr, _IOFBF, 1 << 20);
  return f;
}

int main(int argc, char **argv) {
  std::deque<input> inputs;
  std::vector<spec> specs;
  fa_options options;
  double seconds = 0, idle = 0;
  uint64_t expect = 0;
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 >= argc) usage();
    const char *key = argv[i], *value = argv[i + 1];
    if (!strcmp(key, "-t")) {
      specs.emplace_back();
      spec_parse(&specs.back(), value);
    } else if (!strcmp(key, "--seconds")) seconds = atof(value);
    else if (!strcmp(key, "--idle")) idle = atof(value);
    else if (!strcmp(key, "--expect")) expect = strtoull(value, nullptr, 10);
    else if (!strcmp(key, "--slow-us")) slow_us = atoll(value);
    else if (!strcmp(key, "--log")) arrivals = must_open(value);
    else if (!strcmp(key, "--dump")) dump = must_open(value);
    else if (!strcmp(key, "--data")) {
      data_fd = open(value, O_WRONLY | O_CREAT | O_TRUNC, 0644);
      if (data_fd < 0) { perror(value); return 1; }
    } else if (!options.take(key, value)) usage();
  }
  if (specs.empty()) usage();
  signal(SIGINT, on_signal);
  signal(SIGTERM, on_signal);
  setvbuf(stdout, nullptr, _IOLBF, 0);

  DomainParticipant *participant = fa_join(options);
  WaitSet waitset;
  for (const spec &s : specs) {
    SubscriberQos sq = SUBSCRIBER_QOS_DEFAULT;
    if (s.part[0]) sq.partition().push_back(s.part);
    Subscriber *subscriber = participant->create_subscriber(sq);
    fa_must(subscriber, "subscriber");
    DataReaderQos q = subscriber->get_default_datareader_qos();
    fa_reader_qos(s, q);
    for (int i = 0; i < (s.n > 0 ? s.n : 1); i++) {
      char name[160];
      Topic *t = fa_topic(participant, s, i, name, sizeof name);
      DataReader *r = subscriber->create_datareader(t, q);
      fa_must(r, name);
      r->get_statuscondition().set_enabled_statuses(StatusMask::data_available());
      fa_must(waitset.attach_condition(r->get_statuscondition()) == ReturnCode_t::RETCODE_OK, "attach");
      inputs.push_back({s.kind, name, r});
    }
  }
  printf("{\"event\":\"ready\",\"mono_ns\":%" PRId64 "}\n", mono_ns());

  int64_t until = seconds > 0 ? mono_ns() + (int64_t)(seconds * 1e9) : INT64_MAX;
  int64_t look = 0; // when to look at the writers again
  ConditionSeq ready;
  while (!stopping && mono_ns() < until && !(expect && total >= expect)) {
    ReturnCode_t r = waitset.wait(ready, {0, 50000000});
    if (mono_ns() >= look) {
      for (input &in : inputs) in.note_changes();
      look = mono_ns() + 5000000;
    }
    if (r == ReturnCode_t::RETCODE_OK)
      for (input &in : inputs) in.drain();
    else if (arrivals) fflush(arrivals);
    if (idle > 0 && total && mono_ns() - last_arrival > (int64_t)(idle * 1e9)) break;
  }
  for (const input &in : inputs) in.report();
  printf("{\"event\":\"done\",\"total\":%" PRIu64 "}\n", total);
  if ((arrivals && fclose(arrivals)) || (dump && fclose(dump)) || (data_fd >= 0 && close(data_fd))) {
    perror("close");
    return 1;
  }
  for (input &in : inputs) waitset.detach_condition(in.reader->get_statuscondition());
  fa_leave(participant);
  return 0;
}
