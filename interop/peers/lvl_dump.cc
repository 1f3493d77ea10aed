// Prints a LevelDB database as the C++ library reads it: a line for each key, key and value in hexadecimal, in the
// order of the default comparator. Every checksum is verified, and every key is looked up by itself too. The library
// writes into what it opens, so give it a copy.
#include <leveldb/db.h>
#include <leveldb/options.h>

#include <cstdio>
#include <memory>
#include <string>

namespace {

void print_hex(const leveldb::Slice& s) {
  static const char digits[] = "0123456789abcdef";
  std::string out;
  out.reserve(2 * s.size());
  for (size_t i = 0; i < s.size(); i++) {
    const unsigned char c = static_cast<unsigned char>(s[i]);
    out.push_back(digits[c >> 4]);
    out.push_back(digits[c & 15]);
  }
  fwrite(out.data(), 1, out.size(), stdout);
}

int fail(const char* what, const std::string& why) {
  fprintf(stderr, "%s: %s\n", what, why.c_str());
  return 1;
}

int dump(const char* path) {
  leveldb::Options options;
  options.create_if_missing = false;
  options.paranoid_checks = true;
  leveldb::DB* opened = nullptr;
  leveldb::Status status = leveldb::DB::Open(options, path, &opened);
  if (!status.ok()) return fail("open", status.ToString());
  std::unique_ptr<leveldb::DB> db(opened);

  leveldb::ReadOptions read;
  read.verify_checksums = true;
  std::unique_ptr<leveldb::Iterator> it(db->NewIterator(read));
  std::string value;
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    status = db->Get(read, it->key(), &value);
    if (!status.ok()) return fail("get", status.ToString());
    if (leveldb::Slice(value) != it->value()) return fail("get", "another value than the iterator's");
    print_hex(it->key());
    putchar(' ');
    print_hex(it->value());
    putchar('\n');
  }
  if (!it->status().ok()) return fail("read", it->status().ToString());
  return ferror(stdout) || fflush(stdout) != 0 ? fail("write", "stdout") : 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s DATABASE\n", argv[0]);
    return 2;
  }
  return dump(argv[1]);
}
