// cy_nodes is a ROS 2 node on Cyclone DDS that does nothing but look at the others: participants, endpoints, and what is
// said on ros_discovery_info, as the events of nodes.h. It says its own node there, as every node does.
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "clock.h"
#include "dds/dds.h"
#include "dds/ddsi/ddsi_serdata.h"
#include "graph.h"
#include "nodes.h"
#include "ros.h"
#include "spec.h"

static volatile sig_atomic_t stopping;
static void on_signal(int s) { (void)s; stopping = 1; }

static void *user_data(const dds_qos_t *q, size_t *n) {
  void *data = NULL;
  *n = 0;
  if (!q || !dds_qget_userdata(q, &data, n)) return NULL;
  return data;
}

// look takes one sample of a builtin topic and reports whether there was one.
static bool look(dds_entity_t reader, dds_entity_t topic) {
  void *sample = NULL;
  dds_sample_info_t info;
  int n = must(dds_take(reader, &sample, &info, 1, 1), "builtin topic");
  if (n == 0) return false;
  bool alive = info.instance_state == DDS_IST_ALIVE;
  size_t len;
  if (topic == DDS_BUILTIN_TOPIC_DCPSPARTICIPANT) {
    const dds_builtintopic_participant_t *p = sample;
    void *data = user_data(alive ? p->qos : NULL, &len);
    nodes_participant(p->key.v, alive, data, len);
    dds_free(data);
  } else {
    const dds_builtintopic_endpoint_t *e = sample;
    void *data = user_data(alive ? e->qos : NULL, &len);
    nodes_endpoint(e->key.v, alive, topic == DDS_BUILTIN_TOPIC_DCPSPUBLICATION, e->topic_name, e->type_name, data, len);
    dds_free(data);
  }
  must(dds_return_loan(reader, &sample, n), "loan");
  return true;
}

// listen takes one sample of ros_discovery_info as it came and reports whether there was one.
static bool listen_info(dds_entity_t reader, size_t id_size) {
  struct ddsi_serdata *sd;
  dds_sample_info_t info;
  if (must(dds_takecdr(reader, &sd, 1, &info, DDS_ANY_STATE), "ros_discovery_info") == 0) return false;
  if (info.valid_data) {
    uint32_t len = ddsi_serdata_size(sd);
    uint8_t *cdr = malloc(len);
    if (!cdr) abort();
    ddsi_serdata_to_ser(sd, 0, len, cdr);
    nodes_sample(cdr, len, id_size);
    free(cdr);
  }
  ddsi_serdata_unref(sd);
  return true;
}

int main(int argc, char **argv) {
  double seconds = 0;
  const char *node = "/lab/watcher:16";
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 < argc && !strcmp(argv[i], "--seconds")) seconds = atof(argv[i + 1]);
    else if (i + 1 < argc && !strcmp(argv[i], "--node")) node = argv[i + 1];
    else {
      fprintf(stderr, "usage: cy_nodes [--seconds S] [--node /NAMESPACE/NAME:16|24]\n");
      return 2;
    }
  }
  signal(SIGINT, on_signal);
  signal(SIGTERM, on_signal);
  setvbuf(stdout, NULL, _IOLBF, 0);

  dds_entity_t participant = join();
  graph_open(participant, node);
  bool humble = strstr(node, ":24") != NULL;
  static const dds_entity_t topics[] = {DDS_BUILTIN_TOPIC_DCPSPARTICIPANT, DDS_BUILTIN_TOPIC_DCPSPUBLICATION,
                                        DDS_BUILTIN_TOPIC_DCPSSUBSCRIPTION};
  dds_entity_t readers[3];
  for (int i = 0; i < 3; i++) readers[i] = must(dds_create_reader(participant, topics[i], NULL, NULL), "builtin reader");
  dds_qos_t *q = graph_qos(false, !humble);
  dds_entity_t topic = graph_topic(participant, &rmw_dds_common_msg_dds__InfoHead__desc);
  dds_entity_t info = must(dds_create_reader(participant, topic, q, NULL), "graph reader");
  dds_delete_qos(q);
  graph_say();
  dds_guid_t own;
  must(dds_get_guid(participant, &own), "guid");
  nodes_ready(own.v);

  int64_t until = seconds > 0 ? mono_ns() + (int64_t)(seconds * 1e9) : INT64_MAX;
  while (!stopping && mono_ns() < until) {
    bool more = listen_info(info, humble ? 24 : 16);
    for (int i = 0; i < 3; i++) more = look(readers[i], topics[i]) || more;
    if (!more) sleep_ms(10);
  }
  printf("{\"event\":\"done\"}\n");
  dds_delete(participant);
  return 0;
}
