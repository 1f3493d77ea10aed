// The C++ MCAP library as a peer of gobag perf storage. Presets: default (chunks of 768 KiB with CRC, no compression: what
// rosbag2 writes), fast (no chunk CRC). Flags and result: bench.h.
#define MCAP_IMPLEMENTATION
#define MCAP_COMPRESSION_NO_LZ4
#define MCAP_COMPRESSION_NO_ZSTD
#include <mcap/reader.hpp>
#include <mcap/writer.hpp>
#include <string>
#include "bench.h"

namespace {

constexpr size_t kTopics = 10;

void check(const mcap::Status &s, const char *what) {
  if (!s.ok()) bench_fail("%s: %s", what, s.message.c_str());
}

void write_all(bench &b) {
  mcap::McapWriterOptions o("ros2");
  o.compression = mcap::Compression::None;
  const std::string preset = b.preset;
  if (preset == "fast") {
    o.noChunkCRC = true;
  } else if (preset != "default" && preset != "") {
    bench_fail("preset %s: neither default nor fast", b.preset);
  }
  if (b.buffer) o.chunkSize = static_cast<uint64_t>(b.buffer);
  mcap::McapWriter w;
  check(w.open(b.path, o), "open");
  mcap::Schema schema("a_msgs/msg/B", "ros2msg", "byte[] data\n");
  w.addSchema(schema);
  mcap::ChannelId ids[kTopics];
  for (size_t i = 0; i < kTopics; i++) {
    mcap::Channel c("/perf/t000" + std::to_string(i), "cdr", schema.id);
    w.addChannel(c);
    ids[i] = c.id;
  }
  mcap::Message m;
  for (size_t i = 0; i < b.count;) {
    size_t n = bench_batch(&b, i);
    for (size_t k = i; k < i + n; k++) {
      size_t key = bench_key(&b, k);
      m.channelId = ids[key % kTopics];
      m.sequence = static_cast<uint32_t>(key / kTopics + 1);
      m.logTime = static_cast<mcap::Timestamp>(bench_stamp(key));
      m.publishTime = m.logTime - 150000;
      m.data = reinterpret_cast<const std::byte *>(bench_data(&b, key));
      m.dataSize = b.size;
      check(w.write(m), "write");
    }
    bench_wrote(&b, i, n);
    i += n;
  }
  w.close();
}

void read_all(bench &b, mcap::McapReader &r) {
  auto problem = [](const mcap::Status &s) { bench_fail("read: %s", s.message.c_str()); };
  if (b.order == BENCH_SEQ) {
    for (const auto &view : r.readMessages(problem)) bench_read_one(&b, view.message.data, view.message.dataSize);
    return;
  }
  for (size_t i = 0; i < b.count; i++) {
    auto at = static_cast<mcap::Timestamp>(bench_stamp(bench_key(&b, i)));
    size_t before = b.read;
    for (const auto &view : r.readMessages(problem, at, at + 1)) bench_read_one(&b, view.message.data, view.message.dataSize);
    if (b.read != before + 1) bench_fail("%zu messages at one stamp", b.read - before);
  }
}

}  // namespace

int main(int argc, char **argv) {
  bench b;
  bench_parse(&b, argc, argv);
  if (b.write) {
    bench_start(&b);  // opening is part of a write, and closing
    write_all(b);
    bench_stop(&b);
  } else {
    mcap::McapReader r;
    check(r.open(b.path), "open");
    check(r.readSummary(mcap::ReadSummaryMethod::NoFallbackScan), "summary");
    bench_start(&b);
    read_all(b, r);
    bench_stop(&b);
    r.close();
  }
  return bench_report(&b);
}
