// A type of Fast DDS whose samples are payloads: the serialized bytes, encapsulation header included, in and out.
#pragma once
#include <cstring>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include "fa.h"

class raw_type : public eprosima::fastdds::dds::TopicDataType {
 public:
  explicit raw_type(const char *name) {
    setName(name);
    m_typeSize = 4096; // the history grows what is larger
    m_isGetKeyDefined = false;
    auto_fill_type_object(false);
    auto_fill_type_information(false);
  }
  bool serialize(void *data, eprosima::fastrtps::rtps::SerializedPayload_t *out) override {
    auto bytes = static_cast<const payload *>(data);
    if (bytes->size() > out->max_size) return false;
    memcpy(out->data, bytes->data(), bytes->size());
    out->length = (uint32_t)bytes->size();
    out->encapsulation = CDR_LE;
    return true;
  }
  bool deserialize(eprosima::fastrtps::rtps::SerializedPayload_t *in, void *data) override {
    static_cast<payload *>(data)->assign(in->data, in->data + in->length);
    return true;
  }
  std::function<uint32_t()> getSerializedSizeProvider(void *data) override {
    uint32_t size = (uint32_t) static_cast<const payload *>(data)->size();
    return [size] { return size; };
  }
  void *createData() override { return new payload; }
  void deleteData(void *data) override { delete static_cast<payload *>(data); }
  bool getKey(void *, eprosima::fastrtps::rtps::InstanceHandle_t *, bool) override { return false; }
};

// raw_topic creates a topic of payloads.
inline eprosima::fastdds::dds::Topic *raw_topic(eprosima::fastdds::dds::DomainParticipant *p, const std::string &name,
                                                const char *type) {
  using eprosima::fastdds::dds::Topic;
  if (auto known = p->lookup_topicdescription(name)) return static_cast<Topic *>(known);
  eprosima::fastdds::dds::TypeSupport support(new raw_type(type));
  if (p->find_type(type).empty()) fa_must(support.register_type(p) == ReturnCode_t::RETCODE_OK, type);
  Topic *t = p->create_topic(name, type, eprosima::fastdds::dds::TOPIC_QOS_DEFAULT);
  fa_must(t, name.c_str());
  return t;
}

// raw_qos sets what readers and writers of payloads share: reliable, the last depth samples (0 = all), USER_DATA.
template <class Q>
void raw_qos(Q &q, bool transient_local, int depth, const std::string &user_data) {
  using namespace eprosima::fastdds::dds;
  q.reliability().kind = RELIABLE_RELIABILITY_QOS;
  q.durability().kind = transient_local ? TRANSIENT_LOCAL_DURABILITY_QOS : VOLATILE_DURABILITY_QOS;
  q.history().kind = depth ? KEEP_LAST_HISTORY_QOS : KEEP_ALL_HISTORY_QOS;
  if (depth) q.history().depth = depth;
  q.endpoint().history_memory_policy = eprosima::fastrtps::rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
  q.data_sharing().off(); // as ROS 2 has it
  q.user_data().assign(user_data.begin(), user_data.end());
}
