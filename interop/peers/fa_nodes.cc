// fa_nodes is cy_nodes on Fast DDS: the same events, and the same command line with the options of fa.h on top.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fastdds/dds/domain/DomainParticipantListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <fastdds/rtps/participant/ParticipantDiscoveryInfo.h>
#include <fastdds/rtps/reader/ReaderDiscoveryInfo.h>
#include <fastdds/rtps/writer/WriterDiscoveryInfo.h>
#include <mutex>
#include "clock.h"
#include "fa.h"
#include "fa_graph.h"
#include "fa_raw.h"
#include "nodes.h"

using namespace eprosima::fastdds::dds;
using namespace eprosima::fastrtps::rtps;

static volatile sig_atomic_t stopping;
static void on_signal(int) { stopping = 1; }

static std::mutex printing; // an event is more than one call

struct id {
  uint8_t v[16];
  explicit id(const GUID_t &g) {
    memcpy(v, g.guidPrefix.value, 12);
    memcpy(v + 12, g.entityId.value, 4);
  }
};

class watcher : public DomainParticipantListener {
 public:
  void on_participant_discovery(DomainParticipant *, ParticipantDiscoveryInfo &&i) override {
    bool alive = i.status == ParticipantDiscoveryInfo::DISCOVERED_PARTICIPANT ||
                 i.status == ParticipantDiscoveryInfo::CHANGED_QOS_PARTICIPANT;
    std::lock_guard<std::mutex> hold(printing);
    nodes_participant(id(i.info.m_guid).v, alive, i.info.m_userData.data(), i.info.m_userData.size());
  }
  void on_subscriber_discovery(DomainParticipant *, ReaderDiscoveryInfo &&i) override {
    endpoint(i.info, i.status != ReaderDiscoveryInfo::REMOVED_READER, false);
  }
  void on_publisher_discovery(DomainParticipant *, WriterDiscoveryInfo &&i) override {
    endpoint(i.info, i.status != WriterDiscoveryInfo::REMOVED_WRITER, true);
  }

 private:
  template <class Data>
  void endpoint(Data &e, bool alive, bool writer) {
    std::lock_guard<std::mutex> hold(printing);
    nodes_endpoint(id(e.guid()).v, alive, writer, e.topicName().c_str(), e.typeName().c_str(), e.m_qos.m_userData.data(),
                   e.m_qos.m_userData.size());
  }
};

int main(int argc, char **argv) {
  double seconds = 0;
  std::string node = "/lab/watcher:16";
  fa_options options;
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 < argc && !strcmp(argv[i], "--seconds")) seconds = atof(argv[i + 1]);
    else if (i + 1 < argc && !strcmp(argv[i], "--node")) node = argv[i + 1];
    else if (i + 1 >= argc || !options.take(argv[i], argv[i + 1])) {
      fprintf(stderr, "usage: fa_nodes [--seconds S] [--node /NAMESPACE/NAME:16|24] [options of fa.h]\n");
      return 2;
    }
  }
  signal(SIGINT, on_signal);
  signal(SIGTERM, on_signal);
  setvbuf(stdout, nullptr, _IOLBF, 0);

  watcher w;
  DomainParticipant *participant = fa_join(options, &w);
  fa_graph_open(participant, node);
  bool humble = node.find(":24") != std::string::npos;
  Subscriber *subscriber = participant->create_subscriber(SUBSCRIBER_QOS_DEFAULT);
  fa_must(subscriber, "subscriber");
  DataReaderQos q = subscriber->get_default_datareader_qos();
  raw_qos(q, true, 0, humble ? "" : fa_graph_hash);
  DataReader *reader = subscriber->create_datareader(raw_topic(participant, "ros_discovery_info", fa_graph_type), q);
  fa_must(reader, "graph reader");
  fa_graph_say();
  {
    std::lock_guard<std::mutex> hold(printing);
    nodes_ready(id(participant->guid()).v);
  }

  int64_t until = seconds > 0 ? mono_ns() + (int64_t)(seconds * 1e9) : INT64_MAX;
  payload cdr;
  SampleInfo info;
  while (!stopping && mono_ns() < until) {
    if (reader->take_next_sample(&cdr, &info) != ReturnCode_t::RETCODE_OK) {
      sleep_ms(10);
      continue;
    }
    std::lock_guard<std::mutex> hold(printing);
    if (info.valid_data) nodes_sample(cdr.data(), cdr.size(), humble ? 24 : 16);
  }
  {
    std::lock_guard<std::mutex> hold(printing);
    printf("{\"event\":\"done\"}\n");
  }
  participant->set_listener(nullptr);
  fa_leave(participant);
  return 0;
}
