// The participant of a ROS node on ros_discovery_info.
#pragma once
#include <stddef.h>
#include "dds/dds.h"

// graph_publish says that the writers belong to the node of that argument, "/namespace/name" with ":16" (Iron and later) or
// ":24" (Humble) for the size of an id behind it.
void graph_publish(dds_entity_t participant, const char *node, const dds_entity_t *writers, size_t n);
