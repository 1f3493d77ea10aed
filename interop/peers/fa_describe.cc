#include "fa_describe.h"

#include <atomic>
#include <deque>
#include <fastcdr/Cdr.h>
#include <fastcdr/FastBuffer.h>
#include <fastdds/dds/publisher/DataWriterListener.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <mutex>
#include <set>
#include <thread>
#include "clock.h"
#include "fa_graph.h"
#include "fa_raw.h"

using namespace eprosima::fastdds::dds;
using eprosima::fastcdr::Cdr;
using eprosima::fastcdr::FastBuffer;
using eprosima::fastrtps::rtps::GUID_t;
using eprosima::fastrtps::rtps::iHandle2GUID;
using eprosima::fastrtps::rtps::SampleIdentity;
using eprosima::fastrtps::rtps::WriteParams;

// The readers that the response writer is matched with.
class matched_readers : public DataWriterListener {
 public:
  void on_publication_matched(DataWriter *, const PublicationMatchedStatus &s) override {
    std::lock_guard<std::mutex> hold(lock_);
    if (s.current_count_change > 0) readers_.insert(iHandle2GUID(s.last_subscription_handle));
    else readers_.erase(iHandle2GUID(s.last_subscription_handle));
  }
  bool has(const GUID_t &reader) {
    std::lock_guard<std::mutex> hold(lock_);
    return readers_.count(reader) > 0;
  }

 private:
  std::mutex lock_;
  std::set<GUID_t> readers_;
};

// The service of one node.
class describe_service {
 public:
  describe_service(DomainParticipant *p, const std::string &node, const catalog &c, const describe_options &o);
  ~describe_service() { writer_->set_listener(nullptr); }
  bool take_one();
  GUID_t reader() const { return reader_->guid(); }
  GUID_t writer() const { return writer_->guid(); }

 private:
  void serve_one(const payload &request, const SampleInfo &info);
  bool heard(const GUID_t &client);

  std::string node_;
  const catalog &catalog_;
  const describe_options &options_;
  matched_readers matched_;
  DataReader *reader_;
  DataWriter *writer_;
};

describe_service::describe_service(DomainParticipant *p, const std::string &node, const catalog &c, const describe_options &o)
    : node_(node), catalog_(c), options_(o) {
  std::string user_data, service = node + "/get_type_description";
  if (c.service_hash) user_data = "typehash=" + std::string(c.service_hash) + ";";
  Subscriber *subscriber = p->create_subscriber(SUBSCRIBER_QOS_DEFAULT);
  fa_must(subscriber, "service subscriber");
  DataReaderQos rq = subscriber->get_default_datareader_qos();
  raw_qos(rq, false, 10, user_data);
  reader_ = subscriber->create_datareader(
      raw_topic(p, "rq" + service + "Request", "type_description_interfaces::srv::dds_::GetTypeDescription_Request_"), rq);
  fa_must(reader_, "request reader");
  Publisher *publisher = p->create_publisher(PUBLISHER_QOS_DEFAULT);
  fa_must(publisher, "service publisher");
  DataWriterQos wq = publisher->get_default_datawriter_qos();
  raw_qos(wq, false, 10, user_data);
  writer_ = publisher->create_datawriter(
      raw_topic(p, "rr" + service + "Reply", "type_description_interfaces::srv::dds_::GetTypeDescription_Response_"), wq, &matched_,
      StatusMask::publication_matched());
  fa_must(writer_, "response writer");
}

// heard reports whether the client is matched, after at most 100 ms, as rmw_fastrtps_cpp does it where the client said which
// reader is its own. Of one that did not, it believes so.
bool describe_service::heard(const GUID_t &client) {
  if (!(client.entityId.value[3] & 0x04)) return true; // the request's writer
  for (int i = 0; i < 100 && !matched_.has(client); i++) sleep_ms(1);
  return matched_.has(client);
}

static void write_description(Cdr &c, const described *t) {
  c << (t ? t->name : "") << (uint32_t)(t ? t->n_members : 0);
  for (size_t i = 0; t && i < t->n_members; i++) {
    const member &m = t->members[i];
    c << m.name << m.type_id << m.capacity << m.string_capacity << m.nested << m.initial;
  }
}

static payload make_response(const answer &a, bool sources) {
  FastBuffer buffer;
  Cdr c(buffer, Cdr::LITTLE_ENDIANNESS, Cdr::DDS_CDR);
  c.serialize_encapsulation();
  size_t n = a.failure ? 0 : a.n;
  c << !a.failure << (a.failure ? a.failure : "");
  write_description(c, n ? a.types[0] : nullptr);
  c << (uint32_t)(n ? n - 1 : 0);
  for (size_t i = 1; i < n; i++) write_description(c, a.types[i]);
  c << (uint32_t)(sources ? n : 0);
  for (size_t i = 0; sources && i < n; i++) c << a.types[i]->name << "msg" << a.types[i]->text;
  c << (uint32_t)0; // extra_information
  return payload(buffer.getBuffer(), buffer.getBuffer() + c.getSerializedDataLength());
}

void describe_service::serve_one(const payload &request, const SampleInfo &info) {
  std::string name, hash;
  bool sources = false;
  try {
    FastBuffer buffer(reinterpret_cast<char *>(const_cast<uint8_t *>(request.data())), request.size());
    Cdr c(buffer, Cdr::DEFAULT_ENDIAN, Cdr::DDS_CDR);
    c.read_encapsulation();
    c >> name >> hash >> sources;
  } catch (eprosima::fastcdr::exception::Exception &e) {
    describe_event(node_.c_str(), "", "", false, "a request that cannot be read");
    return;
  }
  // The client is known by the reader that it waits with, where the request says that, else by the request's writer.
  SampleIdentity to = info.sample_identity;
  if (info.related_sample_identity.writer_guid() != GUID_t::unknown())
    to.writer_guid() = info.related_sample_identity.writer_guid();
  answer a;
  catalog_answer(&catalog_, hash.c_str(), &a);
  const char *result = a.failure ? a.failure : "served";
  if (options_.silent) result = "silence";
  else if (!heard(to.writer_guid())) result = "nobody to answer";
  else {
    WriteParams params;
    params.related_sample_identity(to);
    payload response = make_response(a, sources);
    fa_must(writer_->write(&response, params), "response");
  }
  describe_event(node_.c_str(), name.c_str(), hash.c_str(), sources, result);
}

bool describe_service::take_one() {
  payload request;
  SampleInfo info;
  if (reader_->take_next_sample(&request, &info) != ReturnCode_t::RETCODE_OK) return false;
  if (info.valid_data) serve_one(request, info);
  return true;
}

class describe_server {
 public:
  describe_server(DomainParticipant *p, const describe_options &o) : participant_(p), options_(o) {
    catalog_load(&catalog_, &options_);
    if (o.late <= 0) open();
    thread_ = std::thread(&describe_server::serve, this);
  }
  ~describe_server() {
    stop_ = true;
    thread_.join();
  }

 private:
  void open();
  void serve();

  DomainParticipant *participant_;
  describe_options options_;
  catalog catalog_{}, empty_{};
  std::deque<describe_service> services_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

void describe_server::open() {
  if (options_.decoy) services_.emplace_back(participant_, DECOY, empty_, options_);
  services_.emplace_back(participant_, fa_graph_name(), catalog_, options_);
  fa_graph_add(services_.back().reader());
  fa_graph_add(services_.back().writer());
  if (!options_.nameless) fa_graph_say();
  printf("{\"event\":\"serving\",\"mono_ns\":%lld}\n", (long long)mono_ns());
}

void describe_server::serve() {
  int64_t begin = mono_ns() + (int64_t)(options_.late * 1e9);
  while (!stop_ && mono_ns() < begin) sleep_ms(5);
  if (services_.empty() && !stop_) open();
  while (!stop_) {
    bool more = false;
    for (describe_service &s : services_) more = s.take_one() || more;
    if (!more) sleep_ms(5);
  }
}

static describe_server *server;

void fa_describe(DomainParticipant *participant, const describe_options &o) { server = new describe_server(participant, o); }

void fa_describe_end() {
  delete server;
  server = nullptr;
}
