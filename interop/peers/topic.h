// The topic of a command line: -t type=imu,topic=/imu,hz=1000,... The same for the peers of every vendor.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum kind { KIND_STRING, KIND_IMU, KIND_IMAGE, KIND_BLOB, KIND_KEYED, KIND_READING };

enum liveliness { LIVE_AUTOMATIC, LIVE_MANUAL_PARTICIPANT, LIVE_MANUAL_TOPIC };

// One -t argument. Keys: type=string|imu|image|blob|keyed|reading, topic=/name, n= (topics /name_0…, default one without
// suffix), hz= (0 = at once), count= (0 = no end), size= (payload bytes of string, image and blob; string 0 = varying),
// grow= (bytes by which every sample of a blob is larger than the one before), early=1 (write before anybody is matched),
// as=TYPE (another type name on the wire).
// QoS: rel=reliable|best_effort, dur=volatile|transient_local, depth= (0 = KEEP_ALL), block_ms= (longest blocking of a
// write), deadline_ms=, latency_ms=, lease_ms= (0 = none), live=automatic|manual_participant|manual_topic,
// own=shared|exclusive, order=reception|source, repr=xcdr1|xcdr2, hash=RIHS01_… (put into USER_DATA as ROS does),
// part=NAME (partition).
struct spec {
  enum kind kind;
  char topic[128];
  int n;
  double hz;
  uint32_t count;
  uint32_t size;
  uint32_t grow;
  bool early;
  char as[96];

  bool reliable;
  bool transient_local;
  int depth;
  int block_ms;
  int deadline_ms;
  int latency_ms;
  int lease_ms;
  enum liveliness live;
  bool exclusive;
  bool source_order;
  bool xcdr2;
  char hash[128];
  char part[64];
};

// spec_parse fills s from text, or prints what is wrong and exits with 2.
void spec_parse(struct spec *s, const char *text);

// spec_names writes the ROS name of instance i of the topic of s, and its name on the wire.
void spec_names(const struct spec *s, int i, char *name, char *mangled, size_t cap);

// spec_user_data writes the USER_DATA of an endpoint of s and returns its length, 0 = none.
size_t spec_user_data(const struct spec *s, char *buffer, size_t cap);

#ifdef __cplusplus
}
#endif
