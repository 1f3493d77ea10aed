// The service <node>/get_type_description of this process's node, on Fast DDS, in the form of rmw_fastrtps_cpp.
#pragma once
#include "describe.h"
#include "fa.h"

// fa_describe serves it in a thread of its own until fa_describe_end: see cy_describe.h.
void fa_describe(eprosima::fastdds::dds::DomainParticipant *participant, const describe_options &o);
void fa_describe_end();
