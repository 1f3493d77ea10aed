#include "graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ros.h"
#include "spec.h"

const char graph_type[] = "rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_";
const char graph_hash[] = "typehash=RIHS01_91a0593bacdcc50ea9bdcf849a938b128412cc1ea821245c663bcd26f83c295e;";

enum { MAX_ENDPOINTS = 128 };

static struct {
  dds_entity_t participant, writer;
  char full[160], space[160], name[160];
  bool humble;
  dds_guid_t readers[MAX_ENDPOINTS], writers[MAX_ENDPOINTS];
  size_t n_readers, n_writers;
} node;

dds_entity_t graph_topic(dds_entity_t participant, const dds_topic_descriptor_t *type) {
  dds_topic_descriptor_t *renamed = malloc(sizeof *renamed); // never freed: it must outlive the topic
  if (!renamed) abort();
  memcpy(renamed, type, sizeof *renamed);
  *(const char **)&renamed->m_typename = graph_type;
  return must(dds_create_topic(participant, renamed, "ros_discovery_info", NULL, NULL), "graph topic");
}

dds_qos_t *graph_qos(bool writer, bool typehash) {
  dds_qos_t *q = dds_create_qos();
  dds_qset_reliability(q, DDS_RELIABILITY_RELIABLE, DDS_SECS(1));
  dds_qset_durability(q, DDS_DURABILITY_TRANSIENT_LOCAL);
  dds_qset_history(q, writer ? DDS_HISTORY_KEEP_LAST : DDS_HISTORY_KEEP_ALL, 1);
  if (writer)
    dds_qset_durability_service(q, 0, DDS_HISTORY_KEEP_LAST, 1, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED);
  if (typehash) dds_qset_userdata(q, graph_hash, strlen(graph_hash));
  return q;
}

void graph_open(dds_entity_t participant, const char *argument) {
  snprintf(node.full, sizeof node.full, "%s", argument);
  char *size = strchr(node.full, ':');
  if (!size || node.full[0] != '/') {
    fprintf(stderr, "node %s: expected /namespace/name:16 or :24\n", argument);
    exit(2);
  }
  *size++ = 0;
  node.humble = !strcmp(size, "24");
  const char *slash = strrchr(node.full, '/');
  int above = (int)(slash - node.full);
  snprintf(node.space, sizeof node.space, "%.*s", above ? above : 1, node.full);
  snprintf(node.name, sizeof node.name, "%s", slash + 1);
  node.participant = participant;
}

const char *graph_name(void) { return node.full; }

void graph_add(dds_entity_t endpoint) {
  dds_guid_t g;
  must(dds_get_guid(endpoint, &g), "guid");
  bool reader = (g.v[15] & 0x3f) == 0x04 || (g.v[15] & 0x3f) == 0x07;
  size_t *n = reader ? &node.n_readers : &node.n_writers;
  if (*n == MAX_ENDPOINTS) {
    fprintf(stderr, "node %s: more than %d endpoints\n", node.full, MAX_ENDPOINTS);
    exit(1);
  }
  (reader ? node.readers : node.writers)[(*n)++] = g;
}

// SAY defines a function that writes the sample with ids of SIZE bytes.
#define SAY(SIZE)                                                                                                         \
  static void ids##SIZE(dds_sequence_rmw_dds_common_msg_dds__Gid##SIZE##_ *to, const dds_guid_t *from, size_t n) {        \
    to->_buffer = calloc(n + 1, sizeof *to->_buffer);                                                                     \
    if (!to->_buffer) abort();                                                                                            \
    to->_length = to->_maximum = (uint32_t)n;                                                                             \
    for (size_t i = 0; i < n; i++) memcpy(to->_buffer[i].data_, from[i].v, sizeof from[i].v);                             \
  }                                                                                                                       \
  static void say##SIZE(void) {                                                                                           \
    if (!node.writer) {                                                                                                   \
      dds_qos_t *q = graph_qos(true, SIZE == 16);                                                                         \
      dds_entity_t topic = graph_topic(node.participant, &rmw_dds_common_msg_dds__Info##SIZE##__desc);                    \
      node.writer = must(dds_create_writer(node.participant, topic, q, NULL), "graph writer");                            \
      dds_delete_qos(q);                                                                                                  \
    }                                                                                                                     \
    dds_guid_t g;                                                                                                         \
    must(dds_get_guid(node.participant, &g), "guid");                                                                     \
    rmw_dds_common_msg_dds__Node##SIZE##_ one = {.namespace_ = node.space, .name_ = node.name};                           \
    ids##SIZE(&one.readers_, node.readers, node.n_readers);                                                               \
    ids##SIZE(&one.writers_, node.writers, node.n_writers);                                                               \
    rmw_dds_common_msg_dds__Info##SIZE##_ info = {.nodes_ = {._buffer = &one, ._length = 1, ._maximum = 1}};              \
    memcpy(info.gid_.data_, g.v, sizeof g.v);                                                                             \
    must(dds_write(node.writer, &info), "graph");                                                                         \
    free(one.readers_._buffer);                                                                                           \
    free(one.writers_._buffer);                                                                                           \
  }

SAY(16)
SAY(24)

void graph_say(void) { (node.humble ? say24 : say16)(); }
