#define _GNU_SOURCE
#include "cy_describe.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "clock.h"
#include "graph.h"
#include "ros.h"
#include "spec.h"

typedef type_description_interfaces_srv_dds__GetTypeDescription_Request_ request;
typedef type_description_interfaces_srv_dds__GetTypeDescription_Response_ response;
typedef type_description_interfaces_msg_dds__IndividualTypeDescription_ description;
typedef type_description_interfaces_msg_dds__Field_ field;
typedef type_description_interfaces_msg_dds__TypeSource_ source;

// The service of one node.
struct service {
  const char *node;
  const struct catalog *catalog;
  dds_entity_t reader, writer;
};

static struct {
  const struct describe_options *options;
  struct catalog catalog, empty;
  dds_entity_t participant;
  struct service services[2];
  int n; // services that are there
  pthread_t thread;
  bool running;
  atomic_bool stop;
} server;

static void *room(size_t n, size_t size) {
  void *p = calloc(n + 1, size);
  if (!p) abort();
  return p;
}

// service_qos is that of rmw_qos_profile_services_default, with the id of the service and the hash of its type. Services and
// clients of a participant are numbered.
static dds_qos_t *service_qos(uint8_t number) {
  dds_guid_t g;
  must(dds_get_guid(server.participant, &g), "guid");
  memcpy(g.v + 12, (uint8_t[]){0, 0, 0, number}, 4);
  char data[256];
  int n = snprintf(data, sizeof data, "serviceid=%x", g.v[0]);
  for (int i = 1; i < 16; i++) n += snprintf(data + n, sizeof data - (size_t)n, ".%x", g.v[i]);
  n += snprintf(data + n, sizeof data - (size_t)n, ";");
  if (server.catalog.service_hash)
    n += snprintf(data + n, sizeof data - (size_t)n, "typehash=%s;", server.catalog.service_hash);
  dds_qos_t *q = dds_create_qos();
  dds_qset_reliability(q, DDS_RELIABILITY_RELIABLE, DDS_SECS(1));
  dds_qset_history(q, DDS_HISTORY_KEEP_LAST, 10);
  dds_qset_userdata(q, data, (size_t)n);
  return q;
}

static struct service *open_service(const char *node, const struct catalog *c) {
  struct service *s = &server.services[server.n++];
  *s = (struct service){.node = node, .catalog = c};
  char name[256];
  dds_qos_t *q = service_qos((uint8_t)server.n);
  snprintf(name, sizeof name, "rq%s/get_type_descriptionRequest", node);
  dds_entity_t t = must(dds_create_topic(server.participant, &type_description_interfaces_srv_dds__GetTypeDescription_Request__desc,
                                         name, NULL, NULL), name);
  s->reader = must(dds_create_reader(server.participant, t, q, NULL), name);
  snprintf(name, sizeof name, "rr%s/get_type_descriptionReply", node);
  t = must(dds_create_topic(server.participant, &type_description_interfaces_srv_dds__GetTypeDescription_Response__desc, name, NULL,
                            NULL), name);
  s->writer = must(dds_create_writer(server.participant, t, q, NULL), name);
  dds_delete_qos(q);
  return s;
}

static void open_services(void) {
  if (server.options->decoy) open_service(DECOY, &server.empty);
  struct service *s = open_service(graph_name(), &server.catalog);
  graph_add(s->reader);
  graph_add(s->writer);
  if (!server.options->nameless) graph_say();
  printf("{\"event\":\"serving\",\"mono_ns\":%lld}\n", (long long)mono_ns());
}

// client_id copies the value of clientid= in the USER_DATA of an endpoint, "" where there is none.
static void client_id(const dds_builtintopic_endpoint_t *e, char *id, size_t cap) {
  void *data = NULL;
  size_t n = 0;
  id[0] = 0;
  if (!dds_qget_userdata(e->qos, &data, &n) || !data) return;
  char text[512];
  snprintf(text, sizeof text, "%.*s", (int)n, (const char *)data);
  dds_free(data);
  char *at = strstr(text, "clientid=");
  if (at) snprintf(id, cap, "%.*s", (int)strcspn(at + 9, ";"), at + 9);
}

static bool reader_of(const struct service *s, const char *want) {
  dds_instance_handle_t readers[64];
  int n = dds_get_matched_subscriptions(s->writer, readers, 64);
  for (int i = 0; i < n && i < 64; i++) {
    dds_builtintopic_endpoint_t *e = dds_get_matched_subscription_data(s->writer, readers[i]);
    if (!e) continue;
    char id[128];
    client_id(e, id, sizeof id);
    dds_builtintopic_free_endpoint(e);
    if (!strcmp(id, want)) return true;
  }
  return false;
}

// heard reports whether the reader of the client that wrote a request is matched, after at most 100 ms, as
// rmw_cyclonedds_cpp does it: client's endpoints have the same clientid= in their USER_DATA. Of one without, it believes so.
static bool heard(const struct service *s, dds_instance_handle_t request_writer) {
  dds_builtintopic_endpoint_t *e = dds_get_matched_publication_data(s->reader, request_writer);
  if (!e) return false; // gone
  char id[128];
  client_id(e, id, sizeof id);
  dds_builtintopic_free_endpoint(e);
  if (!id[0]) return true;
  for (int i = 0; i < 10; i++, sleep_ms(10))
    if (reader_of(s, id)) return true;
  return reader_of(s, id);
}

static void fill(description *d, const struct described *t) {
  field *f = room(t->n_members, sizeof *f);
  for (size_t i = 0; i < t->n_members; i++) {
    const struct member *m = &t->members[i];
    f[i] = (field){.name_ = m->name, .default_value_ = m->initial, .type_ = {.type_id_ = m->type_id, .capacity_ = m->capacity,
      .string_capacity_ = m->string_capacity, .nested_type_name_ = m->nested}};
  }
  d->type_name_ = t->name;
  d->fields_._buffer = f;
  d->fields_._length = d->fields_._maximum = (uint32_t)t->n_members;
}

static void respond(const struct service *s, const request *q, const struct answer *a) {
  size_t others = a->failure ? 0 : a->n - 1, files = a->failure || !q->include_type_sources_ ? 0 : a->n;
  response r = {.client_ = q->client_, .sequence_ = q->sequence_, .successful_ = !a->failure,
    .failure_reason_ = (char *)(a->failure ? a->failure : "")};
  description *referenced = room(others, sizeof *referenced);
  source *sources = room(files, sizeof *sources);
  r.type_description_.type_description_.type_name_ = "";
  if (!a->failure) fill(&r.type_description_.type_description_, a->types[0]);
  for (size_t i = 0; i < others; i++) fill(&referenced[i], a->types[i + 1]);
  for (size_t i = 0; i < files; i++)
    sources[i] = (source){.type_name_ = a->types[i]->name, .encoding_ = "msg", .raw_file_contents_ = a->types[i]->text};
  r.type_description_.referenced_type_descriptions_._buffer = referenced;
  r.type_description_.referenced_type_descriptions_._length = r.type_description_.referenced_type_descriptions_._maximum = (uint32_t)others;
  r.type_sources_._buffer = sources;
  r.type_sources_._length = r.type_sources_._maximum = (uint32_t)files;
  must(dds_write(s->writer, &r), "response");
  free(r.type_description_.type_description_.fields_._buffer);
  for (size_t i = 0; i < others; i++) free(referenced[i].fields_._buffer);
  free(referenced);
  free(sources);
}

static void serve_one(const struct service *s, const request *q, dds_instance_handle_t from) {
  struct answer a;
  catalog_answer(s->catalog, q->type_hash_, &a);
  const char *result = a.failure ? a.failure : "served";
  if (server.options->silent) result = "silence";
  else if (!heard(s, from)) result = "nobody to answer";
  else respond(s, q, &a);
  describe_event(s->node, q->type_name_, q->type_hash_, q->include_type_sources_, result);
}

// take_one serves a request and reports whether there was one.
static bool take_one(const struct service *s) {
  void *sample = NULL;
  dds_sample_info_t info;
  int n = must(dds_take(s->reader, &sample, &info, 1, 1), "request");
  if (n == 0) return false;
  if (info.valid_data) serve_one(s, sample, info.publication_handle);
  must(dds_return_loan(s->reader, &sample, n), "loan");
  return true;
}

static void *serve(void *unused) {
  int64_t begin = mono_ns() + (int64_t)(server.options->late * 1e9);
  while (!server.stop && mono_ns() < begin) sleep_ms(5);
  if (!server.n && !server.stop) open_services();
  while (!server.stop) {
    bool more = false;
    for (int i = 0; i < server.n; i++) more = take_one(&server.services[i]) || more;
    if (!more) sleep_ms(5);
  }
  return unused;
}

void cy_describe(dds_entity_t participant, const struct describe_options *o) {
  server.options = o;
  server.participant = participant;
  catalog_load(&server.catalog, o);
  if (o->late <= 0) open_services();
  server.running = true;
  if (pthread_create(&server.thread, NULL, serve, NULL)) abort();
}

void cy_describe_end(void) {
  if (!server.running) return;
  server.stop = true;
  pthread_join(server.thread, NULL);
  server.running = false;
}
