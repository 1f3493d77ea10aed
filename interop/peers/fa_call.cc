// fa_call is cy_call on Fast DDS: it calls a service once, as a client of rmw_fastrtps_cpp does.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include "clock.h"
#include "fa.h"
#include "fa_raw.h"

using namespace eprosima::fastdds::dds;
using eprosima::fastrtps::rtps::WriteParams;

// matched waits until both endpoints have found the server's.
static bool matched(DataWriter *w, DataReader *r) {
  for (int i = 0; i < 1000; i++, sleep_ms(10)) {
    PublicationMatchedStatus ws;
    SubscriptionMatchedStatus rs;
    w->get_publication_matched_status(ws);
    r->get_subscription_matched_status(rs);
    if (ws.current_count && rs.current_count) return true;
  }
  return false;
}

// take prints a reply to the call and reports whether there was one.
static bool take(DataReader *r, DataWriter *w) {
  payload reply;
  SampleInfo info;
  if (r->take_next_sample(&reply, &info) != ReturnCode_t::RETCODE_OK || !info.valid_data) return false;
  auto to = info.related_sample_identity.writer_guid();
  if ((to != r->guid() && to != w->guid()) || info.related_sample_identity.sequence_number().to64long() != 1) return false;
  printf("{\"event\":\"reply\",\"data\":\"");
  for (size_t i = 4; i < reply.size(); i++) printf("%02x", reply[i]);
  printf("\"}\n");
  return true;
}

int main(int argc, char **argv) {
  std::string service, type, value;
  fa_options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!strcmp(argv[i], "--service")) service = argv[i + 1];
    else if (!strcmp(argv[i], "--type")) type = argv[i + 1];
    else if (!strcmp(argv[i], "--value")) value = argv[i + 1];
    else if (!options.take(argv[i], argv[i + 1])) service.clear();
  }
  if (service.empty() || type.empty()) {
    fprintf(stderr, "usage: fa_call --service NAME --type PACKAGE::srv::dds_::TYPE [--value HEX] [options of fa.h]\n");
    return 2;
  }
  setvbuf(stdout, nullptr, _IOLBF, 0);
  DomainParticipant *p = fa_join(options);
  Subscriber *subscriber = p->create_subscriber(SUBSCRIBER_QOS_DEFAULT);
  fa_must(subscriber, "subscriber");
  DataReaderQos rq = subscriber->get_default_datareader_qos();
  raw_qos(rq, false, 10, "");
  DataReader *reader = subscriber->create_datareader(raw_topic(p, "rr" + service + "Reply", (type + "_Response_").c_str()), rq);
  fa_must(reader, "reader");
  Publisher *publisher = p->create_publisher(PUBLISHER_QOS_DEFAULT);
  fa_must(publisher, "publisher");
  DataWriterQos wq = publisher->get_default_datawriter_qos();
  raw_qos(wq, false, 10, "");
  DataWriter *writer = publisher->create_datawriter(raw_topic(p, "rq" + service + "Request", (type + "_Request_").c_str()), wq);
  fa_must(writer, "writer");
  int code = 4;
  if (!matched(writer, reader)) {
    printf("{\"event\":\"nobody\"}\n");
    code = 3;
  } else {
    payload request = {0, 1, 0, 0};
    for (size_t i = 0; i + 1 < value.size(); i += 2) request.push_back((uint8_t)strtoul(value.substr(i, 2).c_str(), nullptr, 16));
    request.resize(std::max<size_t>(request.size(), 8));
    WriteParams params;
    params.related_sample_identity().writer_guid(reader->guid());
    fa_must(writer->write(&request, params), "request");
    for (int i = 0; i < 1000 && code; i++, sleep_ms(5))
      if (take(reader, writer)) code = 0;
    if (code) printf("{\"event\":\"silence\"}\n");
  }
  fa_leave(p);
  return code;
}
