#include "fa.h"

#include <fastcdr/Cdr.h>
#include <fastcdr/FastBuffer.h>
#include <cstdlib>
#include <cstring>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>

using namespace eprosima::fastdds::dds;
using eprosima::fastcdr::Cdr;
using eprosima::fastcdr::FastBuffer;
using eprosima::fastrtps::rtps::GUID_t;
using eprosima::fastrtps::rtps::InstanceHandle_t;
using eprosima::fastrtps::rtps::SerializedPayload_t;

// The type whose writers take the serialized sample, encapsulation header included.
class graph_type : public TopicDataType {
 public:
  graph_type() {
    setName("rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_");
    m_typeSize = 4096;
    m_isGetKeyDefined = false;
    auto_fill_type_object(false);
    auto_fill_type_information(false);
  }
  bool serialize(void *data, SerializedPayload_t *out) override {
    auto bytes = static_cast<const payload *>(data);
    if (bytes->size() > out->max_size) return false;
    memcpy(out->data, bytes->data(), bytes->size());
    out->length = (uint32_t)bytes->size();
    out->encapsulation = CDR_LE;
    return true;
  }
  bool deserialize(SerializedPayload_t *, void *) override { return false; }
  std::function<uint32_t()> getSerializedSizeProvider(void *data) override {
    uint32_t size = (uint32_t) static_cast<const payload *>(data)->size();
    return [size] { return size; };
  }
  void *createData() override { return new payload; }
  void deleteData(void *data) override { delete static_cast<payload *>(data); }
  bool getKey(void *, InstanceHandle_t *, bool) override { return false; }
};

// write_id appends an id of 16 or 24 bytes.
static void write_id(Cdr &c, const GUID_t &g, int size) {
  uint8_t id[24] = {0};
  memcpy(id, g.guidPrefix.value, 12);
  memcpy(id + 12, g.entityId.value, 4);
  c.serializeArray(id, (size_t)size);
}

void fa_graph(DomainParticipant *p, const std::string &node, const std::vector<DataWriter *> &writers) {
  size_t colon = node.find(':'), slash = node.rfind('/');
  if (colon == std::string::npos || slash == std::string::npos) {
    fprintf(stderr, "node %s: expected /namespace/name:16 or :24\n", node.c_str());
    exit(2);
  }
  int size = node.substr(colon + 1) == "24" ? 24 : 16;
  std::string space = slash ? node.substr(0, slash) : "/", name = node.substr(slash + 1, colon - slash - 1);

  payload bytes(4096 + 24 * writers.size());
  FastBuffer buffer(reinterpret_cast<char *>(bytes.data()), bytes.size());
  Cdr c(buffer, Cdr::LITTLE_ENDIANNESS, Cdr::DDS_CDR);
  c.serialize_encapsulation();
  write_id(c, p->guid(), size);
  c << (uint32_t)1 << space << name << (uint32_t)0 << (uint32_t)writers.size();
  for (DataWriter *w : writers) write_id(c, w->guid(), size);
  bytes.resize(c.getSerializedDataLength());

  TypeSupport type(new graph_type);
  fa_must(type.register_type(p) == ReturnCode_t::RETCODE_OK, "graph type");
  Topic *topic = p->create_topic("ros_discovery_info", type.get_type_name(), TOPIC_QOS_DEFAULT);
  fa_must(topic, "graph topic");
  Publisher *publisher = p->create_publisher(PUBLISHER_QOS_DEFAULT);
  fa_must(publisher, "graph publisher");
  DataWriterQos q = publisher->get_default_datawriter_qos();
  q.reliability().kind = RELIABLE_RELIABILITY_QOS;
  q.durability().kind = TRANSIENT_LOCAL_DURABILITY_QOS;
  q.history().kind = KEEP_LAST_HISTORY_QOS;
  q.history().depth = 1;
  q.endpoint().history_memory_policy = eprosima::fastrtps::rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
  q.data_sharing().off();
  DataWriter *w = publisher->create_datawriter(topic, q);
  fa_must(w && w->write(&bytes), "graph");
}
