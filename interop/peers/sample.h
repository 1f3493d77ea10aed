// What the samples carry: everything in a sample follows from its running number, so that a receiver that knows the
// number can rebuild every byte (interop/lab/sample.go does, from its own code).
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "ros.h"
#include "topic.h"

#ifdef __cplusplus
extern "C" {
#endif

// A reusable sample of one kind.
struct sample {
  enum kind kind;
  uint32_t size;    // payload bytes wanted of the first sample
  uint32_t grow;    // and how many more of every further one
  uint8_t *buffer;  // text or data
  secret_msgs_msg_dds__Sample_ samples[3]; // of a reading
  union {
    std_msgs_msg_dds__String_ string;
    sensor_msgs_msg_dds__Imu_ imu;
    sensor_msgs_msg_dds__Image_ image;
    load_msgs_msg_dds__Blob_ blob;
    load_msgs_msg_dds__Keyed_ keyed;
    secret_msgs_msg_dds__Reading_ reading;
  } as;
};

void sample_init(struct sample *s, const struct spec *spec);

// sample_set gives s the content of running number n. instance and intended_ns go into blobs only.
void sample_set(struct sample *s, uint32_t n, uint32_t instance, uint64_t intended_ns);

// cdr_number reads the running number out of a serialized sample (header included). Returns -1 where it is too short
// or carries none.
int64_t cdr_number(enum kind kind, const uint8_t *cdr, size_t len);

// fnv1a is the 64-bit FNV-1a hash.
uint64_t fnv1a(const uint8_t *p, size_t n);

#ifdef __cplusplus
}
#endif
