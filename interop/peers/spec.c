#include "spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ros.h"

static void bad(const char *text, const char *why) {
  fprintf(stderr, "topic %s: %s\n", text, why);
  exit(2);
}

static void copy(char *dst, size_t cap, const char *value, const char *text) {
  if (strlen(value) >= cap) bad(text, "value too long");
  strcpy(dst, value);
}

static bool choose(const char *value, const char *no, const char *yes, const char *text) {
  if (strcmp(value, yes) == 0) return true;
  if (strcmp(value, no) != 0) bad(text, "unknown value");
  return false;
}

static enum kind parse_kind(const char *value, const char *text) {
  static const char *names[] = {"string", "imu", "image", "blob"};
  for (int i = 0; i < 4; i++)
    if (strcmp(value, names[i]) == 0) return (enum kind)i;
  bad(text, "type is string, imu, image or blob");
  return KIND_STRING;
}

void spec_parse(struct spec *s, const char *text) {
  *s = (struct spec){.n = 0, .hz = 10, .reliable = true, .block_ms = 10000};
  char *all = strdup(text);
  for (char *save, *field = strtok_r(all, ",", &save); field; field = strtok_r(NULL, ",", &save)) {
    char *value = strchr(field, '=');
    if (!value) bad(text, "expected key=value");
    *value++ = 0;
    if (!strcmp(field, "type")) s->kind = parse_kind(value, text);
    else if (!strcmp(field, "topic")) copy(s->topic, sizeof s->topic, value, text);
    else if (!strcmp(field, "n")) s->n = atoi(value);
    else if (!strcmp(field, "hz")) s->hz = atof(value);
    else if (!strcmp(field, "count")) s->count = (uint32_t)strtoul(value, NULL, 10);
    else if (!strcmp(field, "size")) s->size = (uint32_t)strtoul(value, NULL, 10);
    else if (!strcmp(field, "rel")) s->reliable = choose(value, "best_effort", "reliable", text);
    else if (!strcmp(field, "dur")) s->transient_local = choose(value, "volatile", "transient_local", text);
    else if (!strcmp(field, "depth")) s->depth = atoi(value);
    else if (!strcmp(field, "block_ms")) s->block_ms = atoi(value);
    else if (!strcmp(field, "early")) s->early = atoi(value) != 0;
    else if (!strcmp(field, "hash")) copy(s->hash, sizeof s->hash, value, text);
    else if (!strcmp(field, "part")) copy(s->part, sizeof s->part, value, text);
    else bad(text, "unknown key");
  }
  free(all);
  if (s->topic[0] != '/') bad(text, "topic must begin with /");
}

dds_qos_t *spec_qos(const struct spec *s, bool writer) {
  dds_qos_t *q = dds_create_qos();
  dds_history_kind_t history = s->depth > 0 ? DDS_HISTORY_KEEP_LAST : DDS_HISTORY_KEEP_ALL;
  dds_qset_history(q, history, s->depth > 0 ? s->depth : 1);
  dds_qset_reliability(q, s->reliable ? DDS_RELIABILITY_RELIABLE : DDS_RELIABILITY_BEST_EFFORT, DDS_MSECS(s->block_ms));
  dds_qset_durability(q, s->transient_local ? DDS_DURABILITY_TRANSIENT_LOCAL : DDS_DURABILITY_VOLATILE);
  // Cyclone serves late joiners the depth of durability_service, which is 1 unless said otherwise.
  if (writer && s->transient_local)
    dds_qset_durability_service(q, 0, history, s->depth > 0 ? s->depth : 1, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED,
                                DDS_LENGTH_UNLIMITED);
  if (s->hash[0]) {
    char user_data[160];
    int len = snprintf(user_data, sizeof user_data, "typehash=%s;", s->hash);
    dds_qset_userdata(q, user_data, (size_t)len);
  }
  if (s->part[0]) dds_qset_partition1(q, s->part);
  return q;
}

dds_entity_t spec_topic(dds_entity_t participant, const struct spec *s, int i, char *name, size_t cap) {
  static const dds_topic_descriptor_t *const types[] = {
      &std_msgs_msg_dds__String__desc, &sensor_msgs_msg_dds__Imu__desc, &sensor_msgs_msg_dds__Image__desc,
      &load_msgs_msg_dds__Blob__desc};
  char mangled[192];
  if (s->n > 0) snprintf(name, cap, "%s_%d", s->topic, i);
  else snprintf(name, cap, "%s", s->topic);
  snprintf(mangled, sizeof mangled, "rt%s", name);
  return must(dds_create_topic(participant, types[s->kind], mangled, NULL, NULL), mangled);
}

dds_entity_t join(void) {
  const char *domain = getenv("ROS_DOMAIN_ID");
  return must(dds_create_participant(domain ? (dds_domainid_t)atoi(domain) : 0, NULL, NULL), "participant");
}

dds_entity_t must(dds_entity_t r, const char *what) {
  if (r < 0) {
    fprintf(stderr, "%s: %s\n", what, dds_strretcode(-r));
    exit(1);
  }
  return r;
}
