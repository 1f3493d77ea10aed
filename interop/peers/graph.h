// The node of this process on ros_discovery_info.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include "dds/dds.h"

// What is said on ros_discovery_info. The type is the same by name in all versions of ROS 2, the ids in it are not.
extern const char graph_type[], graph_hash[];

// graph_topic makes the topic for samples of the given type, under the name that ROS gives it.
dds_entity_t graph_topic(dds_entity_t participant, const dds_topic_descriptor_t *type);

// graph_qos makes the QoS of a writer or reader of it; typehash says that it is of Iron or later. The caller deletes it.
dds_qos_t *graph_qos(bool writer, bool typehash);

// graph_open names the node: "/namespace/name" with ":16" (Iron and later) or ":24" (Humble) for the size of an id behind it.
void graph_open(dds_entity_t participant, const char *node);

// graph_name returns the name without what is behind the colon.
const char *graph_name(void);

// graph_add says that a reader or writer belongs to the node. Others hear of it with the next graph_say.
void graph_add(dds_entity_t endpoint);

// graph_say publishes the node with all its endpoints.
void graph_say(void);
