// The topic of a command line: -t type=imu,topic=/imu,hz=1000,...
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "dds/dds.h"

enum kind { KIND_STRING, KIND_IMU, KIND_IMAGE, KIND_BLOB };

// One -t argument. Keys: type=string|imu|image|blob, topic=/name, n= (topics /name_0…, default one without suffix),
// hz= (0 = at once), count= (0 = no end), size= (payload bytes of string, image and blob; string 0 = varying),
// rel=reliable|best_effort, dur=volatile|transient_local, depth= (0 = KEEP_ALL), block_ms= (longest blocking of a write),
// early=1 (write before anybody is matched), hash=RIHS01_… (put into USER_DATA as ROS does), part=NAME (partition).
struct spec {
  enum kind kind;
  char topic[128];
  int n;
  double hz;
  uint32_t count;
  uint32_t size;
  bool reliable;
  bool transient_local;
  int depth;
  int block_ms;
  bool early;
  char hash[128];
  char part[64];
};

// spec_parse fills s from text, or prints what is wrong and exits with 2.
void spec_parse(struct spec *s, const char *text);

// spec_qos makes the QoS of a writer or reader of s. The caller deletes it.
dds_qos_t *spec_qos(const struct spec *s, bool writer);

// spec_topic creates instance i of the topic of s with its ROS name mangled, and writes the ROS name to name.
dds_entity_t spec_topic(dds_entity_t participant, const struct spec *s, int i, char *name, size_t cap);

// join creates a participant in the domain of ROS_DOMAIN_ID, 0 where it is not set.
dds_entity_t join(void);

// must ends the program with a message when a DDS call failed.
dds_entity_t must(dds_entity_t r, const char *what);
