#include "describe.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool describe_option(struct describe_options *o, const char *key, const char *value) {
  if (!strcmp(key, "--definitions")) o->definitions = value;
  else if (!strcmp(key, "--late")) o->late = atof(value);
  else if (!strcmp(key, "--refuse")) o->refuse = atoi(value) != 0;
  else if (!strcmp(key, "--silent")) o->silent = atoi(value) != 0;
  else if (!strcmp(key, "--wrong-text")) o->wrong_text = atoi(value) != 0;
  else if (!strcmp(key, "--wrong-fields")) o->wrong_fields = atoi(value) != 0;
  else if (!strcmp(key, "--decoy")) o->decoy = atoi(value) != 0;
  else if (!strcmp(key, "--names")) o->nameless = atoi(value) == 0;
  else return false;
  return true;
}

static void *grow(void *list, size_t n, size_t size) {
  list = realloc(list, (n + 1) * size);
  if (!list) abort();
  return memset((char *)list + n * size, 0, size) - n * size;
}

static char *copy(const char *s) {
  char *c = strdup(s);
  if (!c) abort();
  return c;
}

static void bad(const char *path, const char *why) {
  fprintf(stderr, "%s: %s\n", path, why);
  exit(1);
}

// read_text reads the file of a type and adds to it.
static char *read_text(const char *dir, const char *name, const char *more) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s.msg", dir, name);
  FILE *f = fopen(path, "r");
  if (!f) bad(path, "cannot be opened");
  static char buffer[1 << 20];
  size_t n = fread(buffer, 1, sizeof buffer - 64, f);
  if (ferror(f) || !feof(f)) bad(path, "cannot be read, or is too large");
  fclose(f);
  snprintf(buffer + n, sizeof buffer - n, "%s", more);
  return copy(buffer);
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const struct described *)a)->name, ((const struct described *)b)->name);
}

static void add_member(struct described *t, const char *path, const char *line) {
  char name[256], nested[256];
  unsigned id;
  uint64_t capacity, string_capacity;
  int end;
  if (sscanf(line, "member %255s %u %" SCNu64 " %" SCNu64 " %255s%n", name, &id, &capacity, &string_capacity, nested, &end) != 5)
    bad(path, line);
  t->members = grow(t->members, t->n_members, sizeof *t->members);
  t->members[t->n_members++] = (struct member){.name = copy(name), .type_id = (uint8_t)id, .capacity = capacity,
    .string_capacity = string_capacity, .nested = copy(strcmp(nested, "-") ? nested : ""),
    .initial = copy(line[end] ? line + end + 1 : "")};
}

void catalog_load(struct catalog *c, const struct describe_options *o) {
  *c = (struct catalog){.refuse = o->refuse};
  char path[512], line[1024], name[256], hash[128];
  snprintf(path, sizeof path, "%s/index", o->definitions);
  FILE *f = fopen(path, "r");
  if (!f) bad(path, "cannot be opened");
  while (fgets(line, sizeof line, f)) {
    line[strcspn(line, "\n")] = 0;
    if (sscanf(line, "service %127s", hash) == 1) c->service_hash = copy(hash);
    else if (sscanf(line, "type %255s %127s", name, hash) == 2) {
      c->types = grow(c->types, c->n, sizeof *c->types);
      c->types[c->n++] = (struct described){.name = copy(name), .hash = strcmp(hash, "-") ? copy(hash) : NULL,
        .text = read_text(o->definitions, name, o->wrong_text ? "\nuint8 not_there" : "")};
    } else if (c->n) add_member(&c->types[c->n - 1], path, line);
    else bad(path, line);
  }
  fclose(f);
  if (!c->n) bad(path, "no type");
  for (size_t i = 0; i < c->n && o->wrong_fields; i++) add_member(&c->types[i], path, "member not_there 3 0 0 -");
  qsort(c->types, c->n, sizeof *c->types, by_name);
}

static const struct described *find(const struct catalog *c, const char *name) {
  struct described key = {.name = (char *)name};
  return bsearch(&key, c->types, c->n, sizeof key, by_name);
}

// collect marks t and all it refers to.
static bool collect(const struct catalog *c, const struct described *t, bool *marked) {
  if (!t) return false;
  if (marked[t - c->types]) return true;
  marked[t - c->types] = true;
  for (size_t i = 0; i < t->n_members; i++)
    if (t->members[i].nested[0] && !collect(c, find(c, t->members[i].nested), marked)) return false;
  return true;
}

static bool is_hash(const char *s) {
  return strlen(s) == 71 && !strncmp(s, "RIHS01_", 7) && strspn(s + 7, "0123456789abcdef") == 64;
}

void catalog_answer(const struct catalog *c, const char *type_hash, struct answer *a) {
  *a = (struct answer){0};
  if (c->refuse) {
    a->failure = "Not served today";
    return;
  }
  if (!is_hash(type_hash)) {
    a->failure = "Failed to parse type hash";
    return;
  }
  const struct described *root = NULL;
  for (size_t i = 0; i < c->n && !root; i++)
    if (c->types[i].hash && !strcmp(c->types[i].hash, type_hash)) root = &c->types[i];
  if (!root) {
    a->failure = "Type not currently in use by this node";
    return;
  }
  bool *marked = calloc(c->n, sizeof *marked);
  if (!marked) abort();
  bool whole = collect(c, root, marked);
  a->types[a->n++] = root;
  for (size_t i = 0; i < c->n && whole; i++) {
    if (!marked[i] || &c->types[i] == root) continue;
    whole = a->n < MAX_ANSWER;
    if (whole) a->types[a->n++] = &c->types[i];
  }
  free(marked);
  if (!whole) a->failure = "Failed to populate TypeDescription to response.";
}

void describe_event(const char *node, const char *type_name, const char *type_hash, bool sources, const char *result) {
  printf("{\"event\":\"asked\",\"node\":\"%s\",\"type\":\"%s\",\"hash\":\"%s\",\"sources\":%s,\"result\":\"%s\"}\n", node, type_name,
         type_hash, sources ? "true" : "false", result);
}
