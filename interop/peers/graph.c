#include "graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ros.h"
#include "spec.h"

static const char typename[] = "rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_";

static dds_entity_t make_writer(dds_entity_t participant, const dds_topic_descriptor_t *type) {
  dds_topic_descriptor_t *renamed = malloc(sizeof *renamed); // never freed: it must outlive the topic
  memcpy(renamed, type, sizeof *renamed);
  *(const char **)&renamed->m_typename = typename;
  dds_entity_t topic = must(dds_create_topic(participant, renamed, "ros_discovery_info", NULL, NULL), "graph topic");
  dds_qos_t *q = dds_create_qos();
  dds_qset_reliability(q, DDS_RELIABILITY_RELIABLE, DDS_SECS(1));
  dds_qset_durability(q, DDS_DURABILITY_TRANSIENT_LOCAL);
  dds_qset_history(q, DDS_HISTORY_KEEP_LAST, 1);
  dds_qset_durability_service(q, 0, DDS_HISTORY_KEEP_LAST, 1, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED);
  dds_entity_t writer = must(dds_create_writer(participant, topic, q, NULL), "graph writer");
  dds_delete_qos(q);
  return writer;
}

// PUBLISH defines a function that writes the sample with ids of SIZE bytes.
#define PUBLISH(SIZE)                                                                                                       \
  static void publish##SIZE(dds_entity_t participant, const char *space, const char *name, const dds_entity_t *writers,    \
                            size_t n) {                                                                                     \
    rmw_dds_common_msg_dds__Gid##SIZE##_ *ids = calloc(n + 1, sizeof *ids);                                                 \
    dds_guid_t g;                                                                                                           \
    for (size_t i = 0; i < n; i++) {                                                                                        \
      must(dds_get_guid(writers[i], &g), "guid");                                                                           \
      memcpy(ids[i].data_, g.v, sizeof g.v);                                                                                \
    }                                                                                                                       \
    rmw_dds_common_msg_dds__Node##SIZE##_ node = {.namespace_ = (char *)space, .name_ = (char *)name};                      \
    node.writers_._buffer = ids;                                                                                            \
    node.writers_._length = node.writers_._maximum = (uint32_t)n;                                                           \
    rmw_dds_common_msg_dds__Info##SIZE##_ info = {0};                                                                       \
    must(dds_get_guid(participant, &g), "guid");                                                                            \
    memcpy(info.gid_.data_, g.v, sizeof g.v);                                                                               \
    info.nodes_._buffer = &node;                                                                                            \
    info.nodes_._length = info.nodes_._maximum = 1;                                                                         \
    must(dds_write(make_writer(participant, &rmw_dds_common_msg_dds__Info##SIZE##__desc), &info), "graph");                 \
    free(ids);                                                                                                              \
  }

PUBLISH(16)
PUBLISH(24)

void graph_publish(dds_entity_t participant, const char *node, const dds_entity_t *writers, size_t n) {
  char space[128];
  snprintf(space, sizeof space, "%s", node);
  char *size = strchr(space, ':'), *name = strrchr(space, '/');
  if (!size || !name) {
    fprintf(stderr, "node %s: expected /namespace/name:16 or :24\n", node);
    exit(2);
  }
  *size++ = *name++ = 0;
  (strcmp(size, "24") ? publish16 : publish24)(participant, space[0] ? space : "/", name, writers, n);
}
