#include "fa.h"

#include <fastcdr/Cdr.h>
#include <fastcdr/FastBuffer.h>
#include <cstdlib>
#include <cstring>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastdds/rtps/transport/test_UDPv4TransportDescriptor.h>
#include <fastrtps/utils/IPLocator.h>

using namespace eprosima::fastdds::dds;
using eprosima::fastcdr::Cdr;
using eprosima::fastcdr::FastBuffer;
using eprosima::fastdds::rtps::UDPv4TransportDescriptor;
using eprosima::fastdds::rtps::test_UDPv4TransportDescriptor;
using eprosima::fastrtps::Duration_t;
using eprosima::fastrtps::rtps::InstanceHandle_t;
using eprosima::fastrtps::rtps::IPLocator;
using eprosima::fastrtps::rtps::Locator_t;
using eprosima::fastrtps::rtps::SerializedPayload_t;

void fa_must(bool ok, const char *what) {
  if (ok) return;
  fprintf(stderr, "%s: failed\n", what);
  exit(1);
}

bool fa_options::take(const char *key, const char *value) {
  if (!strcmp(key, "--transport")) {
    udp = !strcmp(value, "udp");
    if (!udp && strcmp(value, "default")) {
      fprintf(stderr, "--transport is udp or default\n");
      exit(2);
    }
  } else if (!strcmp(key, "--interface")) interface = value;
  else if (!strcmp(key, "--loss")) loss = atoi(value);
  else if (!strcmp(key, "--rcvbuf")) rcvbuf = (uint32_t)strtoul(value, nullptr, 10);
  else if (!strcmp(key, "--sndbuf")) sndbuf = (uint32_t)strtoul(value, nullptr, 10);
  else if (!strcmp(key, "--max-message")) max_message = (uint32_t)strtoul(value, nullptr, 10);
  else if (!strcmp(key, "--peer")) peer = value;
  else if (!strcmp(key, "--lease-ms")) lease_ms = atoi(value);
  else if (!strcmp(key, "--async")) async = atoi(value) != 0;
  else return false;
  return true;
}

// udp_transport makes the descriptor of a transport, one that loses messages where that is asked for.
static std::shared_ptr<eprosima::fastdds::rtps::TransportDescriptorInterface> udp_transport(const fa_options &o) {
  auto set = [&o](auto t) {
    if (!o.interface.empty()) t->interfaceWhiteList.push_back(o.interface);
    if (o.rcvbuf) t->receiveBufferSize = o.rcvbuf;
    if (o.sndbuf) t->sendBufferSize = o.sndbuf;
    if (o.max_message) t->maxMessageSize = o.max_message;
    return t;
  };
  if (!o.loss) return set(std::make_shared<UDPv4TransportDescriptor>());
  auto t = set(std::make_shared<test_UDPv4TransportDescriptor>());
  t->dropDataMessagesPercentage = t->dropDataFragMessagesPercentage = (uint8_t)o.loss;
  t->dropHeartbeatMessagesPercentage = t->dropAckNackMessagesPercentage = (uint8_t)o.loss;
  return t;
}

DomainParticipant *fa_join(const fa_options &options, DomainParticipantListener *listener) {
  fa_options o = options;
  if (const char *loss = getenv("FA_LOSS")) o.loss = atoi(loss);
  const char *domain = getenv("ROS_DOMAIN_ID");
  uint32_t id = domain ? (uint32_t)atoi(domain) : 0;
  auto factory = DomainParticipantFactory::get_instance();
  factory->load_profiles();
  DomainParticipantQos q = factory->get_default_participant_qos();
  q.name("/");
  static const char enclave[] = "enclave=/;";
  q.user_data().assign(enclave, enclave + sizeof enclave - 1);
  auto &discovery = q.wire_protocol().builtin.discovery_config;
  if (o.lease_ms) {
    discovery.leaseDuration = Duration_t(o.lease_ms / 1000, (uint32_t)(o.lease_ms % 1000) * 1000000u);
    int period = o.lease_ms < 4000 ? o.lease_ms / 3 : 1000;
    discovery.leaseDuration_announcementperiod = Duration_t(period / 1000, (uint32_t)(period % 1000) * 1000000u);
  }
  if (o.udp || o.loss) {
    q.transport().use_builtin_transports = false;
    q.transport().user_transports.push_back(udp_transport(o));
  }
  if (!o.peer.empty()) {
    for (uint32_t k = 0; k <= 32; k++) { // the ports of the participants of a host (RTPS 2.5 section 9.6.1.1)
      Locator_t l;
      IPLocator::setIPv4(l, o.peer);
      l.port = 7410 + 250 * id + 2 * k;
      q.wire_protocol().builtin.initialPeersList.push_back(l);
    }
    // A metatraffic unicast locator of our own, and so no multicast one.
    Locator_t any;
    q.wire_protocol().builtin.metatrafficUnicastLocatorList.push_back(any);
  }
  auto p = factory->create_participant(id, q, listener, StatusMask::none());
  fa_must(p, "participant");
  return p;
}

void fa_leave(DomainParticipant *p) {
  p->delete_contained_entities();
  DomainParticipantFactory::get_instance()->delete_participant(p);
}

static Cdr &operator<<(Cdr &c, const std_msgs_msg_dds__Header_ &h) {
  return c << h.stamp_.sec_ << h.stamp_.nanosec_ << h.frame_id_;
}
static Cdr &operator<<(Cdr &c, const geometry_msgs_msg_dds__Vector3_ &v) { return c << v.x_ << v.y_ << v.z_; }
static Cdr &operator<<(Cdr &c, const geometry_msgs_msg_dds__Quaternion_ &v) { return c << v.x_ << v.y_ << v.z_ << v.w_; }
static Cdr &operator<<(Cdr &c, const dds_sequence_octet &s) {
  c << s._length;
  return c.serializeArray(s._buffer, s._length);
}

// write serializes a sample in CDR (XCDR1) little-endian.
static void write(Cdr &c, const sample &s) {
  switch (s.kind) {
    case KIND_STRING:
      c << s.as.string.data_;
      break;
    case KIND_IMU: {
      const auto &m = s.as.imu;
      c << m.header_ << m.orientation_;
      c.serializeArray(m.orientation_covariance_, 9);
      c << m.angular_velocity_;
      c.serializeArray(m.angular_velocity_covariance_, 9);
      c << m.linear_acceleration_;
      c.serializeArray(m.linear_acceleration_covariance_, 9);
      break;
    }
    case KIND_IMAGE: {
      const auto &m = s.as.image;
      c << m.header_ << m.height_ << m.width_ << m.encoding_ << m.is_bigendian_ << m.step_ << m.data_;
      break;
    }
    case KIND_BLOB:
      c << s.as.blob.instance_ << s.as.blob.number_ << s.as.blob.intended_ns_ << s.as.blob.data_;
      break;
    case KIND_KEYED:
      c << s.as.keyed.key_ << s.as.keyed.number_;
      break;
    case KIND_READING: {
      const auto &m = s.as.reading;
      c << m.header_ << m.label_ << m.samples_._length;
      for (uint32_t k = 0; k < m.samples_._length; k++)
        c << m.samples_._buffer[k].channel_ << m.samples_._buffer[k].value_ << m.samples_._buffer[k].unit_;
      c.serializeArray(m.scale_, 3);
      c << m.number_ << m.valid_;
      break;
    }
  }
}

// The type of one kind of sample. Writers hand over a struct sample, readers get a payload.
class bytes_type : public TopicDataType {
 public:
  explicit bytes_type(const spec &s) : kind_(s.kind) {
    static const char *const names[] = {"std_msgs::msg::dds_::String_", "sensor_msgs::msg::dds_::Imu_",
                                        "sensor_msgs::msg::dds_::Image_", "load_msgs::msg::dds_::Blob_",
                                        "load_msgs::msg::dds_::Keyed_", "secret_msgs::msg::dds_::Reading_"};
    setName(s.as[0] ? s.as : names[s.kind]);
    m_typeSize = 512; // the history grows what is larger
    m_isGetKeyDefined = s.kind == KIND_KEYED;
    auto_fill_type_object(false);
    auto_fill_type_information(false);
  }

  bool serialize(void *data, SerializedPayload_t *out) override {
    auto s = static_cast<const sample *>(data);
    if (s->kind == KIND_READING) memset(out->data, 0, out->max_size); // where it pads, Fast CDR leaves what was there
    FastBuffer buffer(reinterpret_cast<char *>(out->data), out->max_size);
    Cdr c(buffer, Cdr::LITTLE_ENDIANNESS, Cdr::DDS_CDR);
    out->encapsulation = CDR_LE;
    try {
      c.serialize_encapsulation();
      write(c, *s);
    } catch (eprosima::fastcdr::exception::Exception &e) {
      fprintf(stderr, "serialize %s: %s\n", getName(), e.what());
      return false;
    }
    out->length = (uint32_t)c.getSerializedDataLength();
    return true;
  }

  bool deserialize(SerializedPayload_t *in, void *data) override {
    static_cast<payload *>(data)->assign(in->data, in->data + in->length);
    return true;
  }

  // At least what serialize will need: everything but text and data fits 1024 bytes.
  std::function<uint32_t()> getSerializedSizeProvider(void *data) override {
    auto s = static_cast<const sample *>(data);
    uint32_t size = 1024;
    if (s->kind == KIND_STRING) size += (uint32_t)strlen(s->as.string.data_);
    if (s->kind == KIND_IMAGE) size += s->as.image.data_._length;
    if (s->kind == KIND_BLOB) size += s->as.blob.data_._length;
    return [size] { return size; };
  }

  void *createData() override { return new payload; }
  void deleteData(void *data) override { delete static_cast<payload *>(data); }

  bool getKey(void *data, InstanceHandle_t *handle, bool) override {
    if (kind_ != KIND_KEYED) return false;
    uint32_t key = (uint32_t) static_cast<const sample *>(data)->as.keyed.key_;
    for (int i = 0; i < 16; i++) handle->value[i] = i < 4 ? (uint8_t)(key >> (24 - 8 * i)) : 0;
    return true;
  }

 private:
  kind kind_;
};

Topic *fa_topic(DomainParticipant *p, const spec &s, int i, char *name, size_t cap) {
  char mangled[192];
  spec_names(&s, i, name, mangled, cap < sizeof mangled ? cap : sizeof mangled);
  if (TopicDescription *known = p->lookup_topicdescription(mangled)) return static_cast<Topic *>(known);
  TypeSupport type(new bytes_type(s));
  if (p->find_type(type.get_type_name()).empty())
    fa_must(type.register_type(p) == ReturnCode_t::RETCODE_OK, type.get_type_name().c_str());
  Topic *t = p->create_topic(mangled, type.get_type_name(), TOPIC_QOS_DEFAULT);
  fa_must(t, mangled);
  return t;
}

static Duration_t duration(int ms) {
  return ms > 0 ? Duration_t(ms / 1000, (uint32_t)(ms % 1000) * 1000000u) : eprosima::fastrtps::c_TimeInfinite;
}

// set gives the policies that writers and readers share.
template <class Q>
static void set(const spec &s, Q &q, int max_samples) {
  static const LivelinessQosPolicyKind lives[] = {AUTOMATIC_LIVELINESS_QOS, MANUAL_BY_PARTICIPANT_LIVELINESS_QOS,
                                                  MANUAL_BY_TOPIC_LIVELINESS_QOS};
  q.reliability().kind = s.reliable ? RELIABLE_RELIABILITY_QOS : BEST_EFFORT_RELIABILITY_QOS;
  q.durability().kind = s.transient_local ? TRANSIENT_LOCAL_DURABILITY_QOS : VOLATILE_DURABILITY_QOS;
  q.history().kind = s.depth > 0 ? KEEP_LAST_HISTORY_QOS : KEEP_ALL_HISTORY_QOS;
  if (s.depth > 0) q.history().depth = s.depth;
  q.resource_limits().max_samples = s.depth > max_samples ? s.depth : max_samples;
  q.resource_limits().max_instances = s.kind == KIND_KEYED ? 10 : 1;
  q.resource_limits().max_samples_per_instance = q.resource_limits().max_samples / q.resource_limits().max_instances;
  q.resource_limits().allocated_samples = 0;
  q.endpoint().history_memory_policy = eprosima::fastrtps::rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
  q.data_sharing().off(); // as ROS 2 has it
  if (s.deadline_ms) q.deadline().period = duration(s.deadline_ms);
  if (s.latency_ms) q.latency_budget().duration = duration(s.latency_ms);
  q.liveliness().kind = lives[s.live];
  q.liveliness().lease_duration = duration(s.lease_ms);
  if (s.lease_ms) q.liveliness().announcement_period = duration(s.lease_ms * 2 / 3);
  q.ownership().kind = s.exclusive ? EXCLUSIVE_OWNERSHIP_QOS : SHARED_OWNERSHIP_QOS;
  if (s.source_order) q.destination_order().kind = BY_SOURCE_TIMESTAMP_DESTINATIONORDER_QOS;
  char user_data[160];
  size_t len = spec_user_data(&s, user_data, sizeof user_data);
  q.user_data().assign(user_data, user_data + len);
}

void fa_writer_qos(const spec &s, const fa_options &o, DataWriterQos &q) {
  // A writer that keeps all blocks when so much is not acknowledged; one that also keeps it for late readers must have
  // room for everything.
  int64_t room = (64 << 20) / (int64_t)(s.size + (uint64_t)s.grow * s.count + 512);
  int max_samples = s.transient_local ? 100000 : (int)(room < 16 ? 16 : room > 5000 ? 5000 : room);
  set(s, q, max_samples);
  q.reliability().max_blocking_time = duration(s.block_ms);
  q.publish_mode().kind = o.async ? ASYNCHRONOUS_PUBLISH_MODE : SYNCHRONOUS_PUBLISH_MODE;
}

void fa_reader_qos(const spec &s, DataReaderQos &q) { set(s, q, 20000); }
