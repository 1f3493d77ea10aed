// The service <node>/get_type_description of this process's node, on Cyclone DDS, in the form of rmw_cyclonedds_cpp.
#pragma once
#include "dds/dds.h"
#include "describe.h"

// cy_describe serves it in a thread of its own until cy_describe_end. The node must have a name (graph_open); its endpoints
// are added to the node, and said unless it is nameless. The options must stay.
void cy_describe(dds_entity_t participant, const struct describe_options *o);

// cy_describe_end ends the thread. Without one it does nothing.
void cy_describe_end(void);
