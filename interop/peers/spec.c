#include "spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ros.h"

static dds_duration_t duration(int ms) { return ms > 0 ? DDS_MSECS(ms) : DDS_INFINITY; }

dds_qos_t *spec_qos(const struct spec *s, bool writer) {
  static const dds_liveliness_kind_t lives[] = {DDS_LIVELINESS_AUTOMATIC, DDS_LIVELINESS_MANUAL_BY_PARTICIPANT,
                                                DDS_LIVELINESS_MANUAL_BY_TOPIC};
  dds_qos_t *q = dds_create_qos();
  dds_history_kind_t history = s->depth > 0 ? DDS_HISTORY_KEEP_LAST : DDS_HISTORY_KEEP_ALL;
  dds_qset_history(q, history, s->depth > 0 ? s->depth : 1);
  dds_qset_reliability(q, s->reliable ? DDS_RELIABILITY_RELIABLE : DDS_RELIABILITY_BEST_EFFORT, DDS_MSECS(s->block_ms));
  dds_qset_durability(q, s->transient_local ? DDS_DURABILITY_TRANSIENT_LOCAL : DDS_DURABILITY_VOLATILE);
  // Cyclone serves late joiners the depth of durability_service, which is 1 unless said otherwise.
  if (writer && s->transient_local)
    dds_qset_durability_service(q, 0, history, s->depth > 0 ? s->depth : 1, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED,
                                DDS_LENGTH_UNLIMITED);
  if (s->deadline_ms) dds_qset_deadline(q, duration(s->deadline_ms));
  if (s->latency_ms) dds_qset_latency_budget(q, duration(s->latency_ms));
  if (s->live != LIVE_AUTOMATIC || s->lease_ms) dds_qset_liveliness(q, lives[s->live], duration(s->lease_ms));
  if (s->exclusive) dds_qset_ownership(q, DDS_OWNERSHIP_EXCLUSIVE);
  if (s->source_order) dds_qset_destination_order(q, DDS_DESTINATIONORDER_BY_SOURCE_TIMESTAMP);
  if (s->xcdr2) dds_qset_data_representation(q, 1, (dds_data_representation_id_t[]){DDS_DATA_REPRESENTATION_XCDR2});
  char user_data[160];
  size_t len = spec_user_data(s, user_data, sizeof user_data);
  if (len) dds_qset_userdata(q, user_data, len);
  if (s->part[0]) dds_qset_partition1(q, s->part);
  return q;
}

dds_entity_t spec_topic(dds_entity_t participant, const struct spec *s, int i, char *name, size_t cap) {
  static const dds_topic_descriptor_t *const types[] = {
      &std_msgs_msg_dds__String__desc, &sensor_msgs_msg_dds__Imu__desc, &sensor_msgs_msg_dds__Image__desc,
      &load_msgs_msg_dds__Blob__desc, &load_msgs_msg_dds__Keyed__desc, &secret_msgs_msg_dds__Reading__desc};
  const dds_topic_descriptor_t *type = types[s->kind];
  if (s->as[0]) { // never freed: it must outlive the topic
    dds_topic_descriptor_t *renamed = malloc(sizeof *renamed);
    memcpy(renamed, type, sizeof *renamed);
    *(const char **)&renamed->m_typename = strdup(s->as);
    type = renamed;
  }
  char mangled[192];
  if (cap > sizeof mangled) cap = sizeof mangled;
  spec_names(s, i, name, mangled, cap);
  return must(dds_create_topic(participant, type, mangled, NULL, NULL), mangled);
}

dds_entity_t join(void) {
  const char *domain = getenv("ROS_DOMAIN_ID");
  static const char enclave[] = "enclave=/;"; // what makes it a participant of ROS nodes
  dds_qos_t *q = dds_create_qos();
  dds_qset_userdata(q, enclave, sizeof enclave - 1);
  dds_entity_t participant = must(dds_create_participant(domain ? (dds_domainid_t)atoi(domain) : 0, q, NULL), "participant");
  dds_delete_qos(q);
  return participant;
}

dds_entity_t must(dds_entity_t r, const char *what) {
  if (r < 0) {
    fprintf(stderr, "%s: %s\n", what, dds_strretcode(-r));
    exit(1);
  }
  return r;
}
