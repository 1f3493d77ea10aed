#include "topic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void bad(const char *text, const char *why) {
  fprintf(stderr, "topic %s: %s\n", text, why);
  exit(2);
}

static void copy(char *dst, size_t cap, const char *value, const char *text) {
  if (strlen(value) >= cap) bad(text, "value too long");
  strcpy(dst, value);
}

static int choose(const char *value, const char *const *names, int n, const char *text) {
  for (int i = 0; i < n; i++)
    if (strcmp(value, names[i]) == 0) return i;
  bad(text, "unknown value");
  return 0;
}

void spec_parse(struct spec *s, const char *text) {
  static const char *const kinds[] = {"string", "imu", "image", "blob", "keyed", "reading"};
  static const char *const reliabilities[] = {"best_effort", "reliable"};
  static const char *const durabilities[] = {"volatile", "transient_local"};
  static const char *const lives[] = {"automatic", "manual_participant", "manual_topic"};
  static const char *const owners[] = {"shared", "exclusive"};
  static const char *const orders[] = {"reception", "source"};
  static const char *const representations[] = {"xcdr1", "xcdr2"};
  *s = (struct spec){.n = 0, .hz = 10, .reliable = true, .block_ms = 10000};
  char *all = strdup(text);
  for (char *save, *field = strtok_r(all, ",", &save); field; field = strtok_r(NULL, ",", &save)) {
    char *value = strchr(field, '=');
    if (!value) bad(text, "expected key=value");
    *value++ = 0;
    if (!strcmp(field, "type")) s->kind = (enum kind)choose(value, kinds, 6, text);
    else if (!strcmp(field, "topic")) copy(s->topic, sizeof s->topic, value, text);
    else if (!strcmp(field, "n")) s->n = atoi(value);
    else if (!strcmp(field, "hz")) s->hz = atof(value);
    else if (!strcmp(field, "count")) s->count = (uint32_t)strtoul(value, NULL, 10);
    else if (!strcmp(field, "size")) s->size = (uint32_t)strtoul(value, NULL, 10);
    else if (!strcmp(field, "grow")) s->grow = (uint32_t)strtoul(value, NULL, 10);
    else if (!strcmp(field, "early")) s->early = atoi(value) != 0;
    else if (!strcmp(field, "as")) copy(s->as, sizeof s->as, value, text);
    else if (!strcmp(field, "rel")) s->reliable = choose(value, reliabilities, 2, text);
    else if (!strcmp(field, "dur")) s->transient_local = choose(value, durabilities, 2, text);
    else if (!strcmp(field, "depth")) s->depth = atoi(value);
    else if (!strcmp(field, "block_ms")) s->block_ms = atoi(value);
    else if (!strcmp(field, "deadline_ms")) s->deadline_ms = atoi(value);
    else if (!strcmp(field, "latency_ms")) s->latency_ms = atoi(value);
    else if (!strcmp(field, "lease_ms")) s->lease_ms = atoi(value);
    else if (!strcmp(field, "live")) s->live = (enum liveliness)choose(value, lives, 3, text);
    else if (!strcmp(field, "own")) s->exclusive = choose(value, owners, 2, text);
    else if (!strcmp(field, "order")) s->source_order = choose(value, orders, 2, text);
    else if (!strcmp(field, "repr")) s->xcdr2 = choose(value, representations, 2, text);
    else if (!strcmp(field, "hash")) copy(s->hash, sizeof s->hash, value, text);
    else if (!strcmp(field, "part")) copy(s->part, sizeof s->part, value, text);
    else bad(text, "unknown key");
  }
  free(all);
  if (s->topic[0] != '/') bad(text, "topic must begin with /");
  if (s->grow && (s->kind != KIND_BLOB || !s->count)) bad(text, "grow needs type=blob and count");
}

void spec_names(const struct spec *s, int i, char *name, char *mangled, size_t cap) {
  if (s->n > 0) snprintf(name, cap, "%s_%d", s->topic, i);
  else snprintf(name, cap, "%s", s->topic);
  snprintf(mangled, cap, "rt%s", name);
}

size_t spec_user_data(const struct spec *s, char *buffer, size_t cap) {
  return s->hash[0] ? (size_t)snprintf(buffer, cap, "typehash=%s;", s->hash) : 0;
}
