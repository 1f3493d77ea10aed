// QoS and topics of a command line in terms of Cyclone DDS.
#pragma once
#include "dds/dds.h"
#include "topic.h"

// spec_qos makes the QoS of a writer or reader of s. The caller deletes it.
dds_qos_t *spec_qos(const struct spec *s, bool writer);

// spec_topic creates instance i of the topic of s with its ROS name mangled, and writes the ROS name to name.
dds_entity_t spec_topic(dds_entity_t participant, const struct spec *s, int i, char *name, size_t cap);

// join creates a participant in the domain of ROS_DOMAIN_ID, 0 where it is not set.
dds_entity_t join(void);

// must ends the program with a message when a DDS call failed.
dds_entity_t must(dds_entity_t r, const char *what);
