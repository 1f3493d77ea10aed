#include "sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STRING_MIN = 11, STRING_SPREAD = 37 };

void sample_init(struct sample *s, const struct spec *spec) {
  memset(s, 0, sizeof *s);
  s->kind = spec->kind;
  s->size = spec->size;
  s->grow = spec->grow;
  size_t room = spec->size + (size_t)spec->grow * spec->count + STRING_MIN + STRING_SPREAD + 8;
  s->buffer = calloc(1, room);
  if (!s->buffer) {
    fprintf(stderr, "out of memory: %zu bytes\n", room);
    exit(1);
  }
  switch (s->kind) {
    case KIND_STRING:
      s->as.string.data_ = (char *)s->buffer;
      break;
    case KIND_IMU:
      s->as.imu.header_.frame_id_ = "imu_link";
      break;
    case KIND_IMAGE:
      s->as.image.header_.frame_id_ = "camera";
      s->as.image.encoding_ = "mono8";
      s->as.image.width_ = s->as.image.step_ = 1024;
      s->as.image.height_ = s->size / 1024;
      s->as.image.data_._buffer = s->buffer;
      s->as.image.data_._length = s->as.image.data_._maximum = s->size;
      break;
    case KIND_BLOB:
      s->as.blob.data_._buffer = s->buffer;
      s->as.blob.data_._length = s->as.blob.data_._maximum = s->size;
      break;
    case KIND_KEYED:
      break;
    case KIND_READING:
      s->as.reading.header_.frame_id_ = "meter";
      s->as.reading.label_ = (char *)s->buffer;
      s->as.reading.samples_._buffer = s->samples;
      s->as.reading.samples_._maximum = sizeof s->samples / sizeof *s->samples;
      break;
  }
}

// fill writes a pattern of 32-bit words of which every one depends on n.
static void fill(uint8_t *p, size_t len, uint32_t n) {
  uint32_t word = n * 2654435761u + 12345u;
  for (size_t i = 0; i + 4 <= len; i += 4, word += 0x9e3779b1u) memcpy(p + i, &word, 4);
  for (size_t i = len & ~(size_t)3; i < len; i++) p[i] = (uint8_t)(n + i);
}

// set_string: the number in ten digits, a blank, letters. Without a wanted size the length varies with the number, so
// that every padding occurs.
static void set_string(struct sample *s, uint32_t n) {
  size_t len = s->size > STRING_MIN ? s->size : STRING_MIN + n % STRING_SPREAD;
  sprintf((char *)s->buffer, "%010u ", n);
  for (size_t i = STRING_MIN; i < len; i++) s->buffer[i] = (uint8_t)('a' + (n + i) % 26);
  s->buffer[len] = 0;
}

static void set_header(std_msgs_msg_dds__Header_ *h, uint32_t n) {
  h->stamp_.sec_ = (int32_t)n;
  h->stamp_.nanosec_ = n % 1000 * 1000000;
}

// set_imu uses products with powers of two only: exact in every language.
static void set_imu(sensor_msgs_msg_dds__Imu_ *m, uint32_t n) {
  set_header(&m->header_, n);
  m->orientation_.x_ = n * 0.5;
  m->orientation_.y_ = n * -0.25;
  m->orientation_.z_ = n * 0.125;
  m->orientation_.w_ = 1;
  m->angular_velocity_.x_ = n * 2.0;
  m->angular_velocity_.y_ = n * 4.0;
  m->angular_velocity_.z_ = n * -8.0;
  m->linear_acceleration_.x_ = n * 0.0625;
  m->linear_acceleration_.y_ = n * 0.03125;
  m->linear_acceleration_.z_ = n * -0.015625;
  for (int i = 0; i < 9; i++) {
    m->orientation_covariance_[i] = (double)n + i;
    m->angular_velocity_covariance_[i] = (double)n - i;
    m->linear_acceleration_covariance_[i] = (double)n * (i + 1);
  }
}

// set_reading: as many samples as the number has over when divided by four; values that are exact in every language.
static void set_reading(struct sample *s, uint32_t n) {
  static char *const units[] = {"A", "volt"};
  secret_msgs_msg_dds__Reading_ *m = &s->as.reading;
  set_header(&m->header_, n);
  sprintf(m->label_, "reading %u", n);
  m->samples_._length = n % 4;
  for (uint32_t k = 0; k < m->samples_._length; k++)
    s->samples[k] = (secret_msgs_msg_dds__Sample_){.channel_ = (uint8_t)k, .value_ = n * 0.25 - k, .unit_ = units[k % 2]};
  for (int i = 0; i < 3; i++) m->scale_[i] = (float)(n % 1000) * 0.5f + (float)i;
  m->number_ = (uint64_t)n << 32 | n;
  m->valid_ = n % 2 == 0;
}

void sample_set(struct sample *s, uint32_t n, uint32_t instance, uint64_t intended_ns) {
  switch (s->kind) {
    case KIND_STRING:
      set_string(s, n);
      break;
    case KIND_IMU:
      set_imu(&s->as.imu, n);
      break;
    case KIND_IMAGE:
      set_header(&s->as.image.header_, n);
      fill(s->buffer, s->size, n);
      break;
    case KIND_BLOB:
      s->as.blob.instance_ = instance;
      s->as.blob.number_ = n;
      s->as.blob.intended_ns_ = intended_ns;
      s->as.blob.data_._length = s->as.blob.data_._maximum = s->size + s->grow * n;
      fill(s->buffer, s->as.blob.data_._length, n);
      break;
    case KIND_KEYED:
      s->as.keyed.key_ = (int32_t)(n % 3);
      s->as.keyed.number_ = n;
      break;
    case KIND_READING:
      set_reading(s, n);
      break;
  }
}

int64_t cdr_number(enum kind kind, const uint8_t *cdr, size_t len) {
  uint32_t n;
  switch (kind) {
    case KIND_STRING: {
      if (len < 8 + STRING_MIN) return -1;
      int64_t v = 0;
      for (int i = 0; i < 10; i++) {
        uint8_t c = cdr[8 + i];
        if (c < '0' || c > '9') return -1;
        v = v * 10 + (c - '0');
      }
      return v;
    }
    case KIND_IMU:
    case KIND_IMAGE:
    case KIND_READING:
      if (len < 12) return -1;
      memcpy(&n, cdr + 4, 4);
      return n;
    case KIND_BLOB:
    case KIND_KEYED:
      if (len < 12) return -1;
      memcpy(&n, cdr + 8, 4);
      return n;
  }
  return -1;
}

uint64_t fnv1a(const uint8_t *p, size_t n) {
  uint64_t h = 14695981039346656037ull;
  for (size_t i = 0; i < n; i++) h = (h ^ p[i]) * 1099511628211ull;
  return h;
}
