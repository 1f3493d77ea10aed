#include "nodes.h"

#include <stdio.h>
#include <string.h>

static void print_id(const uint8_t *id) {
  for (int i = 0; i < 16; i++) printf("%02x", id[i]);
}

// print_text prints a JSON string without its quotes.
static void print_text(const void *text, size_t n) {
  for (const uint8_t *p = text, *end = p + n; p < end; p++) {
    if (*p == '"' || *p == '\\') putchar('\\');
    putchar(*p >= 0x20 && *p < 0x7f ? *p : '?');
  }
}

void nodes_ready(const uint8_t id[16]) {
  printf("{\"event\":\"ready\",\"id\":\"");
  print_id(id);
  printf("\"}\n");
}

void nodes_participant(const uint8_t id[16], bool alive, const void *user_data, size_t n) {
  printf("{\"event\":\"participant\",\"id\":\"");
  print_id(id);
  printf("\",\"alive\":%s,\"user_data\":\"", alive ? "true" : "false");
  print_text(user_data, n);
  printf("\"}\n");
}

void nodes_endpoint(const uint8_t id[16], bool alive, bool writer, const char *topic, const char *type, const void *user_data,
                    size_t n) {
  printf("{\"event\":\"endpoint\",\"id\":\"");
  print_id(id);
  if (!alive) {
    printf("\",\"alive\":false}\n");
    return;
  }
  printf("\",\"alive\":true,\"writer\":%s,\"topic\":\"", writer ? "true" : "false");
  print_text(topic, strlen(topic));
  printf("\",\"type\":\"");
  print_text(type, strlen(type));
  printf("\",\"user_data\":\"");
  print_text(user_data, n);
  printf("\"}\n");
}

// A reader of CDR little-endian. What is past the end reads as zero and clears ok.
struct cdr {
  const uint8_t *data;
  size_t at, len;
  bool ok;
};

static const uint8_t *take(struct cdr *c, size_t n) {
  if (n > c->len - c->at) c->ok = false;
  if (!c->ok) return NULL;
  c->at += n;
  return c->data + c->at - n;
}

static uint32_t take_u32(struct cdr *c) {
  size_t pad = (4 - c->at % 4) % 4;
  uint32_t v = 0;
  take(c, pad);
  const uint8_t *p = take(c, 4);
  if (p) memcpy(&v, p, 4);
  return v;
}

// take_text returns the bytes of a string without the NUL.
static const uint8_t *take_text(struct cdr *c, size_t *n) {
  uint32_t len = take_u32(c);
  const uint8_t *p = take(c, len);
  if (!p || len == 0 || p[len - 1]) c->ok = false;
  *n = c->ok ? len - 1 : 0;
  return p;
}

static void ids(struct cdr *c, size_t id_size, bool print) {
  uint32_t n = take_u32(c);
  for (uint32_t i = 0; i < n && c->ok; i++) {
    const uint8_t *id = take(c, id_size);
    if (!id || !print) continue;
    printf("%s\"", i ? "," : "");
    print_id(id);
    printf("\"");
  }
}

// walk goes through a sample and reports whether it has the form; it prints the nodes where told to.
static bool walk(const uint8_t *cdr, size_t len, size_t id_size, bool print) {
  struct cdr c = {.data = cdr + 4, .len = len - 4, .ok = true};
  take(&c, id_size);
  uint32_t n = take_u32(&c);
  for (uint32_t i = 0; i < n && c.ok; i++) {
    size_t space_len, name_len;
    const uint8_t *space = take_text(&c, &space_len), *name = take_text(&c, &name_len);
    if (!c.ok) break;
    if (print) {
      printf("%s{\"name\":\"", i ? "," : "");
      if (space_len > 1) print_text(space, space_len);
      printf("/");
      print_text(name, name_len);
      printf("\",\"readers\":[");
    }
    ids(&c, id_size, print);
    if (print) printf("],\"writers\":[");
    ids(&c, id_size, print);
    if (print) printf("]}");
  }
  return c.ok && c.len - c.at <= 3;
}

void nodes_sample(const uint8_t *cdr, size_t len, size_t id_size) {
  if (len < 8 || cdr[0] != 0 || cdr[1] != 1 || !walk(cdr, len, id_size, false)) {
    printf("{\"event\":\"odd\",\"length\":%zu,\"data\":\"", len);
    for (size_t i = 0; i < len && i < 256; i++) printf("%02x", cdr[i]);
    printf("\"}\n");
    return;
  }
  printf("{\"event\":\"nodes\",\"id\":\"");
  print_id(cdr + 4);
  printf("\",\"nodes\":[");
  walk(cdr, len, id_size, true);
  printf("]}\n");
}
