// fa_pub is a Fast DDS publisher of ROS 2 messages that knows nothing of gobag. Command line and events are those of
// cy_pub, with the options of fa.h on top.
#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fastdds/dds/core/status/PublicationMatchedStatus.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <mutex>
#include <sched.h>
#include <thread>
#include <vector>
#include "clock.h"
#include "fa.h"
#include "fa_describe.h"
#include "fa_graph.h"

using namespace eprosima::fastdds::dds;

static volatile sig_atomic_t stopping;
static void on_signal(int) { stopping = 1; }

static FILE *call_log; // "topic number mono_ns duration_ns result" a write call
static std::mutex log_lock;
static std::atomic<int64_t> run_until{0}; // monotonic ns; 0 = no end

// What one thread publishes.
struct job {
  struct output {
    std::string name;
    DataWriter *writer;
  };
  spec s{};
  std::vector<output> outputs;
  int64_t start = 0, first = 0, last = 0; // monotonic ns
  uint32_t sent = 0;                      // running numbers 0…sent-1 went out on every instance
  uint64_t failed = 0;                    // write calls that returned an error; their number is used again
  int64_t worst_lag = 0;                  // ns behind the schedule
  std::vector<int64_t> calls;             // duration of every write call, ns

  void create(DomainParticipant *participant, const fa_options &o);
  void write_one(output &out, sample &data);
  bool finished() const {
    return stopping || (s.count && sent >= s.count) || (run_until && mono_ns() >= run_until);
  }
  void publish();
  bool wait_matched(int want, int64_t deadline) const;
  void report();
};

void job::create(DomainParticipant *participant, const fa_options &o) {
  PublisherQos pq = PUBLISHER_QOS_DEFAULT;
  if (s.part[0]) pq.partition().push_back(s.part);
  Publisher *publisher = participant->create_publisher(pq);
  fa_must(publisher, "publisher");
  DataWriterQos q = publisher->get_default_datawriter_qos();
  fa_writer_qos(s, o, q);
  for (int i = 0; i < std::max(s.n, 1); i++) {
    char name[160];
    Topic *t = fa_topic(participant, s, i, name, sizeof name);
    DataWriter *w = publisher->create_datawriter(t, q);
    fa_must(w, name);
    outputs.push_back({name, w});
  }
}

void job::write_one(output &out, sample &data) {
  for (;;) {
    int64_t before = mono_ns();
    ReturnCode_t r = out.writer->write(&data, HANDLE_NIL);
    int64_t took = mono_ns() - before;
    calls.push_back(took);
    if (call_log) {
      std::lock_guard<std::mutex> hold(log_lock);
      fprintf(call_log, "%s %" PRIu32 " %" PRId64 " %" PRId64 " %d\n", out.name.c_str(), sent, before, took, (int)r());
    }
    if (r == ReturnCode_t::RETCODE_OK) return;
    failed++;
    fa_must(r == ReturnCode_t::RETCODE_TIMEOUT, "write");
    if (stopping && run_until == 0) return;
  }
}

void job::publish() {
  sample data;
  sample_init(&data, &s);
  int64_t period = s.hz > 0 ? (int64_t)(1e9 / s.hz) : 0;
  for (int64_t tick = 0; !finished(); tick++) {
    int64_t due = start + tick * period, now = mono_ns();
    if (now < due) sleep_until(due);
    else if (period) worst_lag = std::max(worst_lag, now - due);
    if (finished()) break;
    for (size_t i = 0; i < outputs.size(); i++) {
      sample_set(&data, sent, (uint32_t)i, (uint64_t)sent * (uint64_t)period);
      write_one(outputs[i], data);
    }
    last = mono_ns();
    if (!sent) first = last;
    sent++;
  }
}

// wait_matched waits until every writer has want readers, a signal comes or the deadline passes.
bool job::wait_matched(int want, int64_t deadline) const {
  for (const output &out : outputs) {
    for (;;) {
      PublicationMatchedStatus st;
      out.writer->get_publication_matched_status(st);
      if (st.current_count >= want) break;
      if (stopping) return true;
      if (mono_ns() > deadline) return false;
      sleep_ms(2);
    }
  }
  return true;
}

void job::report() {
  std::sort(calls.begin(), calls.end());
  auto quantile = [this](double q) { return calls.empty() ? 0 : calls[(size_t)(q * (double)(calls.size() - 1) + 0.5)]; };
  for (const output &out : outputs)
    printf("{\"event\":\"topic\",\"topic\":\"%s\",\"sent\":%" PRIu32 ",\"failed\":%" PRIu64 ",\"first_ns\":%" PRId64
           ",\"last_ns\":%" PRId64 ",\"lag_ns\":%" PRId64 ",\"p50_ns\":%" PRId64 ",\"p99_ns\":%" PRId64
           ",\"max_ns\":%" PRId64 "}\n",
           out.name.c_str(), sent, failed, first, last, worst_lag, quantile(0.5), quantile(0.99), quantile(1));
}

// set_priority makes this process a real-time one, so that its write calls are not long because others run. Without the
// right to, it stays as it is.
static void set_priority(int priority) {
  sched_param p{};
  p.sched_priority = priority;
  if (sched_setscheduler(0, SCHED_FIFO, &p)) perror("priority");
}

[[noreturn]] static void usage() {
  fprintf(stderr, "usage: fa_pub [--seconds S] [--wait READERS] [--wait-timeout S] [--settle MS] [--linger S] "
                  "[--calls FILE] [--priority N] [--node /NAMESPACE/NAME:16|24] [options of fa.h and describe.h] -t SPEC …\n");
  exit(2);
}

int main(int argc, char **argv) {
  std::vector<job> jobs;
  fa_options options;
  int settle_ms = 200, want = 0;
  double seconds = 0, wait_timeout = 20, linger = 2;
  std::string node;
  describe_options describe{};
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 >= argc) usage();
    const char *key = argv[i], *value = argv[i + 1];
    if (!strcmp(key, "-t")) {
      jobs.emplace_back();
      spec_parse(&jobs.back().s, value);
    } else if (!strcmp(key, "--seconds")) seconds = atof(value);
    else if (!strcmp(key, "--wait")) want = atoi(value);
    else if (!strcmp(key, "--wait-timeout")) wait_timeout = atof(value);
    else if (!strcmp(key, "--settle")) settle_ms = atoi(value);
    else if (!strcmp(key, "--linger")) linger = atof(value);
    else if (!strcmp(key, "--node")) node = value;
    else if (!strcmp(key, "--priority")) set_priority(atoi(value));
    else if (!strcmp(key, "--calls")) {
      if (!(call_log = fopen(value, "w"))) { perror(value); return 1; }
    } else if (!options.take(key, value) && !describe_option(&describe, key, value)) usage();
  }
  if (jobs.empty() || (describe.definitions && node.empty())) usage();
  signal(SIGINT, on_signal);
  signal(SIGTERM, on_signal);
  setvbuf(stdout, nullptr, _IOLBF, 0);

  DomainParticipant *participant = fa_join(options);
  for (job &j : jobs) j.create(participant, options);
  if (!node.empty()) {
    fa_graph_open(participant, node);
    for (job &j : jobs)
      for (auto &out : j.outputs) fa_graph_add(out.writer->guid());
    if (!describe.nameless) fa_graph_say();
    if (describe.definitions) fa_describe(participant, describe);
  }
  printf("{\"event\":\"ready\"}\n");
  std::vector<std::thread> threads;
  auto begin = [&threads](job &j, int64_t at) {
    j.start = at;
    threads.emplace_back(&job::publish, &j);
  };
  for (job &j : jobs)
    if (j.s.early) begin(j, mono_ns());
  bool all = true;
  if (want) {
    int64_t deadline = mono_ns() + (int64_t)(wait_timeout * 1e9);
    for (const job &j : jobs) all = j.wait_matched(want, deadline) && all;
    sleep_ms(settle_ms); // the reader may still be matching us
  }
  if (!all) fprintf(stderr, "fa_pub: not every topic has %d readers after %g s\n", want, wait_timeout);

  int64_t start = mono_ns();
  if (seconds > 0) run_until = start + (int64_t)(seconds * 1e9);
  printf("{\"event\":\"start\",\"mono_ns\":%" PRId64 ",\"wall_ns\":%" PRId64 "}\n", start, wall_ns());
  for (job &j : jobs)
    if (!j.s.early) begin(j, start);
  for (std::thread &t : threads) t.join();
  if (run_until)
    while (!stopping && mono_ns() < run_until) sleep_ms(5); // latched topics stay for the whole run
  for (job &j : jobs)
    for (auto &out : j.outputs)
      if (j.s.reliable) out.writer->wait_for_acknowledgments({(int32_t)linger, (uint32_t)((linger - (int32_t)linger) * 1e9)});
  for (job &j : jobs) j.report();
  printf("{\"event\":\"done\",\"mono_ns\":%" PRId64 "}\n", mono_ns());
  if (call_log && fclose(call_log)) { perror("calls"); return 1; }
  fa_describe_end();
  fa_leave(participant);
  return all ? 0 : 3;
}
