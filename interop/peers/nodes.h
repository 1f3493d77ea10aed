// What a node sees of the others, as JSON lines: the same for the peers of every vendor. Ids are in hexadecimal, USER_DATA
// with a question mark for what is not printable ASCII.
//   {"event":"participant","id":…,"alive":true,"user_data":…}
//   {"event":"endpoint","id":…,"alive":true,"writer":…,"topic":…,"type":…,"user_data":…}   gone: "alive":false, no more keys
//   {"event":"nodes","id":…,"nodes":[{"name":…,"readers":[…],"writers":[…]}]}   a whole sample of ros_discovery_info
//   {"event":"odd","length":…,"data":…}   a sample that does not have the expected form
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// nodes_ready says that the node is there, and the id of its participant: {"event":"ready","id":…}
void nodes_ready(const uint8_t id[16]);

void nodes_participant(const uint8_t id[16], bool alive, const void *user_data, size_t n);
void nodes_endpoint(const uint8_t id[16], bool alive, bool writer, const char *topic, const char *type, const void *user_data,
                    size_t n);

// nodes_sample takes a sample of ros_discovery_info, encapsulation header included, whose ids should have id_size bytes.
void nodes_sample(const uint8_t *cdr, size_t len, size_t id_size);

#ifdef __cplusplus
}
#endif
