// C++ LevelDB as a peer of gobag perf storage. Presets: default (LevelDB's own: 4 MB write buffer, 4 KB blocks, snappy),
// tuned (32 MB write buffer and tables, 64 KB blocks, no compression). Writes are batched as gobag's are. Keys: big-endian
// stamp and number, in LevelDB's own order. Flags and result: bench.h.
#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>
#include <memory>
#include <string>
#include "bench.h"

namespace {

void check(const leveldb::Status &s, const char *what) {
  if (!s.ok()) bench_fail("%s: %s", what, s.ToString().c_str());
}

void put_key(char *key, size_t k) {
  uint64_t stamp = static_cast<uint64_t>(bench_stamp(k)) ^ (1ull << 63), number = k + 1;
  for (int i = 0; i < 8; i++) {
    key[i] = static_cast<char>(stamp >> (56 - 8 * i));
    key[8 + i] = static_cast<char>(number >> (56 - 8 * i));
  }
}

leveldb::Options options(const bench &b) {
  leveldb::Options o;
  o.create_if_missing = o.error_if_exists = b.write;
  const std::string preset = b.preset;
  if (preset == "tuned") {
    o.write_buffer_size = o.max_file_size = 32 << 20;
    o.block_size = 64 << 10;
    o.compression = leveldb::kNoCompression;
  } else if (preset != "default" && preset != "") {
    bench_fail("preset %s: neither default nor tuned", b.preset);
  }
  if (b.buffer) o.write_buffer_size = b.buffer;
  return o;
}

void write_all(bench &b, leveldb::DB *db) {
  leveldb::WriteBatch batch;
  char key[16];
  for (size_t i = 0; i < b.count;) {
    size_t n = bench_batch(&b, i);
    batch.Clear();
    for (size_t k = i; k < i + n; k++) {
      put_key(key, bench_key(&b, k));
      batch.Put(leveldb::Slice(key, sizeof key),
                leveldb::Slice(reinterpret_cast<const char *>(bench_data(&b, bench_key(&b, k))), b.size));
    }
    check(db->Write(leveldb::WriteOptions(), &batch), "write");
    bench_wrote(&b, i, n);
    i += n;
  }
}

void read_all(bench &b, leveldb::DB *db) {
  if (b.order == BENCH_SEQ) {
    std::unique_ptr<leveldb::Iterator> it(db->NewIterator(leveldb::ReadOptions()));
    for (it->SeekToFirst(); it->Valid(); it->Next()) bench_read_one(&b, it->value().data(), it->value().size());
    check(it->status(), "read");
    return;
  }
  char key[16];
  std::string value;
  for (size_t i = 0; i < b.count; i++) {
    put_key(key, bench_key(&b, i));
    check(db->Get(leveldb::ReadOptions(), leveldb::Slice(key, sizeof key), &value), "get");
    bench_read_one(&b, value.data(), value.size());
  }
}

}  // namespace

int main(int argc, char **argv) {
  bench b;
  bench_parse(&b, argc, argv);
  leveldb::DB *raw = nullptr;
  if (b.write) bench_start(&b);  // opening is part of a write
  check(leveldb::DB::Open(options(b), b.path, &raw), "open");
  std::unique_ptr<leveldb::DB> db(raw);
  if (b.write) {
    write_all(b, db.get());
    db.reset();  // and closing
    bench_stop(&b);
  } else {
    bench_start(&b);
    read_all(b, db.get());
    bench_stop(&b);
    db.reset();
  }
  return bench_report(&b);
}
