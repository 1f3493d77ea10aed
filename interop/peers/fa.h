// What the Fast DDS peers share: participant, transports, types that are serialized by hand, QoS.
#pragma once
#include <cstdint>
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/qos/DataWriterQos.hpp>
#include <fastdds/dds/subscriber/qos/DataReaderQos.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <string>
#include <vector>
#include "sample.h"

// The options that both programs have beside their own:
//   --transport udp|default  UDP only, or Fast DDS's default (UDP and shared memory)
//   --interface ADDRESS      use this address only (with udp)
//   --loss PERCENT           lose that share of DATA, DATA_FRAG, HEARTBEAT and ACKNACK sent (with udp; FA_LOSS too)
//   --rcvbuf BYTES, --sndbuf BYTES  socket buffers (with udp)
//   --max-message BYTES      largest datagram (with udp)
//   --peer ADDRESS           announce to it by unicast, not by multicast
//   --lease-ms MS            lease of the participant (20 s unless said otherwise)
//   --async 1                publish from a thread of the library
struct fa_options {
  bool udp = false;
  std::string interface;
  int loss = 0;
  uint32_t rcvbuf = 0, sndbuf = 0, max_message = 0;
  std::string peer;
  int lease_ms = 0;
  bool async = false;

  // take consumes an option and reports whether it was one of these.
  bool take(const char *key, const char *value);
};

// fa_join creates a participant in the domain of ROS_DOMAIN_ID, 0 where it is not set, or ends the program. A listener hears of
// discovery only.
eprosima::fastdds::dds::DomainParticipant *fa_join(const fa_options &o,
                                                    eprosima::fastdds::dds::DomainParticipantListener *listener = nullptr);

void fa_leave(eprosima::fastdds::dds::DomainParticipant *participant);

// payload is what a reader takes: the serialized sample as it came, encapsulation header included.
using payload = std::vector<uint8_t>;

// fa_topic creates instance i of the topic of s with its ROS name mangled, and writes the ROS name to name.
// Its writers take a struct sample, its readers give a payload.
eprosima::fastdds::dds::Topic *fa_topic(eprosima::fastdds::dds::DomainParticipant *participant, const spec &s, int i,
                                        char *name, size_t cap);

void fa_writer_qos(const spec &s, const fa_options &o, eprosima::fastdds::dds::DataWriterQos &q);
void fa_reader_qos(const spec &s, eprosima::fastdds::dds::DataReaderQos &q);

// fa_must ends the program with a message unless ok.
void fa_must(bool ok, const char *what);
