// The node of this process on ros_discovery_info, on Fast DDS: see graph.h.
#pragma once
#include "fa.h"

extern const char fa_graph_type[], fa_graph_hash[];

// fa_graph_open names the node: "/namespace/name" with ":16" (Iron and later) or ":24" (Humble) for the size of an id behind it.
void fa_graph_open(eprosima::fastdds::dds::DomainParticipant *participant, const std::string &node);

// fa_graph_name returns the name without what is behind the colon.
const std::string &fa_graph_name();

// fa_graph_add says that a reader or writer belongs to the node. Others hear of it with the next fa_graph_say.
void fa_graph_add(const eprosima::fastrtps::rtps::GUID_t &endpoint);

// fa_graph_say publishes the node with all its endpoints.
void fa_graph_say();
