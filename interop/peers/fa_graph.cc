#include "fa_graph.h"

#include <fastcdr/Cdr.h>
#include <fastcdr/FastBuffer.h>
#include <cstdlib>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include "fa_raw.h"

using namespace eprosima::fastdds::dds;
using eprosima::fastcdr::Cdr;
using eprosima::fastcdr::FastBuffer;
using eprosima::fastrtps::rtps::GUID_t;

const char fa_graph_type[] = "rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_";
const char fa_graph_hash[] = "typehash=RIHS01_91a0593bacdcc50ea9bdcf849a938b128412cc1ea821245c663bcd26f83c295e;";

static struct {
  DomainParticipant *participant;
  DataWriter *writer;
  std::string full, space, name;
  bool humble;
  std::vector<GUID_t> readers, writers;
} node;

void fa_graph_open(DomainParticipant *p, const std::string &argument) {
  size_t colon = argument.find(':'), slash = argument.rfind('/');
  if (colon == std::string::npos || slash == std::string::npos || argument[0] != '/') {
    fprintf(stderr, "node %s: expected /namespace/name:16 or :24\n", argument.c_str());
    exit(2);
  }
  node.participant = p;
  node.full = argument.substr(0, colon);
  node.space = slash ? argument.substr(0, slash) : "/";
  node.name = argument.substr(slash + 1, colon - slash - 1);
  node.humble = argument.substr(colon + 1) == "24";
}

const std::string &fa_graph_name() { return node.full; }

void fa_graph_add(const GUID_t &endpoint) {
  bool reader = (endpoint.entityId.value[3] & 0x04) != 0;
  (reader ? node.readers : node.writers).push_back(endpoint);
}

// write_id appends an id of 16 or 24 bytes.
static void write_id(Cdr &c, const GUID_t &g) {
  uint8_t id[24] = {0};
  memcpy(id, g.guidPrefix.value, 12);
  memcpy(id + 12, g.entityId.value, 4);
  c.serializeArray(id, node.humble ? 24 : 16);
}

static void open_writer() {
  Topic *topic = raw_topic(node.participant, "ros_discovery_info", fa_graph_type);
  Publisher *publisher = node.participant->create_publisher(PUBLISHER_QOS_DEFAULT);
  fa_must(publisher, "graph publisher");
  DataWriterQos q = publisher->get_default_datawriter_qos();
  raw_qos(q, true, 1, node.humble ? "" : fa_graph_hash);
  node.writer = publisher->create_datawriter(topic, q);
  fa_must(node.writer, "graph writer");
}

void fa_graph_say() {
  if (!node.writer) open_writer();
  FastBuffer buffer;
  Cdr c(buffer, Cdr::LITTLE_ENDIANNESS, Cdr::DDS_CDR);
  c.serialize_encapsulation();
  write_id(c, node.participant->guid());
  c << (uint32_t)1 << node.space << node.name;
  for (auto list : {&node.readers, &node.writers}) {
    c << (uint32_t)list->size();
    for (const GUID_t &g : *list) write_id(c, g);
  }
  payload bytes(buffer.getBuffer(), buffer.getBuffer() + c.getSerializedDataLength());
  fa_must(node.writer->write(&bytes), "graph");
}
