// cy_call calls a service once, as a client of rmw_cyclonedds_cpp does, and prints the reply as an event: its bytes behind the
// header, in hexadecimal.
//
//   cy_call --service /rosbag2_recorder/pause --type rosbag2_interfaces::srv::dds_::Pause [--value HEX]
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "clock.h"
#include "dds/dds.h"
#include "dds/ddsi/ddsi_serdata.h"
#include "ros.h"
#include "spec.h"

static dds_entity_t named_topic(dds_entity_t participant, const dds_topic_descriptor_t *type, const char *kind, const char *of,
                                const char *name) {
  dds_topic_descriptor_t *renamed = malloc(sizeof *renamed); // never freed: it must outlive the topic
  char *type_name = NULL;
  if (!renamed || asprintf(&type_name, "%s_%s_", of, kind) < 0) abort();
  memcpy(renamed, type, sizeof *renamed);
  *(const char **)&renamed->m_typename = type_name;
  return must(dds_create_topic(participant, renamed, name, NULL, NULL), name);
}

static dds_qos_t *client_qos(void) {
  static const char id[] = "clientid=1.2.3.4.5.6.7.8.9.a.b.c.d.e.f.10;";
  dds_qos_t *q = dds_create_qos();
  dds_qset_reliability(q, DDS_RELIABILITY_RELIABLE, DDS_SECS(1));
  dds_qset_history(q, DDS_HISTORY_KEEP_LAST, 10);
  dds_qset_userdata(q, id, sizeof id - 1);
  return q;
}

// matched waits until both endpoints have found the server's, as rmw_service_server_is_available does.
static bool matched(dds_entity_t writer, dds_entity_t reader) {
  for (int i = 0; i < 1000; i++, sleep_ms(10)) {
    dds_publication_matched_status_t w;
    dds_subscription_matched_status_t r;
    must(dds_get_publication_matched_status(writer, &w), "status");
    must(dds_get_subscription_matched_status(reader, &r), "status");
    if (w.current_count && r.current_count) return true;
  }
  return false;
}

// take prints a reply to the call and reports whether there was one.
static bool take(dds_entity_t reader, uint64_t client, int64_t sequence) {
  struct ddsi_serdata *sd;
  dds_sample_info_t info;
  if (must(dds_takecdr(reader, &sd, 1, &info, DDS_ANY_STATE), "reply") == 0) return false;
  bool ours = false;
  if (info.valid_data) {
    uint32_t len = ddsi_serdata_size(sd);
    uint8_t *cdr = malloc(len);
    if (!cdr) abort();
    ddsi_serdata_to_ser(sd, 0, len, cdr);
    ours = len >= 20 && !memcmp(cdr + 4, &client, 8) && !memcmp(cdr + 12, &sequence, 8);
    if (ours) {
      printf("{\"event\":\"reply\",\"data\":\"");
      for (uint32_t i = 20; i < len; i++) printf("%02x", cdr[i]);
      printf("\"}\n");
    }
    free(cdr);
  }
  ddsi_serdata_unref(sd);
  return ours;
}

int main(int argc, char **argv) {
  const char *service = NULL, *type = NULL, *value = "";
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!strcmp(argv[i], "--service")) service = argv[i + 1];
    else if (!strcmp(argv[i], "--type")) type = argv[i + 1];
    else if (!strcmp(argv[i], "--value")) value = argv[i + 1];
  }
  if (!service || !type || strlen(value) > 16) {
    fprintf(stderr, "usage: cy_call --service NAME --type PACKAGE::srv::dds_::TYPE [--value HEX]\n");
    return 2;
  }
  setvbuf(stdout, NULL, _IOLBF, 0);
  const char *domain = getenv("ROS_DOMAIN_ID");
  dds_entity_t p = must(dds_create_participant(domain ? (dds_domainid_t)atoi(domain) : 0, NULL, NULL), "participant");
  char name[300];
  dds_qos_t *q = client_qos();
  snprintf(name, sizeof name, "rr%sReply", service);
  dds_entity_t reader = must(dds_create_reader(p, named_topic(p, &calls_srv_dds__Reply__desc, "Response", type, name), q, NULL), name);
  snprintf(name, sizeof name, "rq%sRequest", service);
  dds_entity_t writer = must(dds_create_writer(p, named_topic(p, &calls_srv_dds__Request__desc, "Request", type, name), q, NULL), name);
  dds_delete_qos(q);
  if (!matched(writer, reader)) {
    printf("{\"event\":\"nobody\"}\n");
    return 3;
  }
  calls_srv_dds__Request_ r = {.client_ = 0x0807060504030201u, .sequence_ = 1};
  for (size_t i = 0; value[2 * i] && value[2 * i + 1]; i++) sscanf(value + 2 * i, "%2hhx", &r.value_[i]);
  must(dds_write(writer, &r), "request");
  for (int i = 0; i < 1000; i++, sleep_ms(5))
    if (take(reader, r.client_, r.sequence_)) {
      must(dds_delete(p), "participant");
      return 0;
    }
  printf("{\"event\":\"silence\"}\n");
  return 4;
}
