// What a node answers on <node>/get_type_description (ROS 2 from Iron on): types with their descriptions and the texts of
// their files, read from a folder. The same for the peers of every vendor.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The options of a publisher that serves the types of its topics:
//   --definitions DIR  serve them; needs --node
//   --late S           the service appears so many seconds after the topics
//   --refuse 1         every answer is a refusal
//   --silent 1         no answer at all
//   --wrong-text 1     the text of every type has a field too many
//   --wrong-fields 1   the description of every type has a field too many
//   --names 0          nothing is said on ros_discovery_info
//   --decoy 1          another node of the process, /lab/decoy, has the service too and knows no type; it is not in
//                      ros_discovery_info
struct describe_options {
  const char *definitions;
  double late;
  bool refuse, silent, wrong_text, wrong_fields, nameless, decoy;
};

// describe_option takes an option and reports whether it was one of these.
bool describe_option(struct describe_options *o, const char *key, const char *value);

// type_description_interfaces/msg/Field
struct member {
  char *name;
  uint8_t type_id;
  uint64_t capacity, string_capacity;
  char *nested;  // name of the type of a nested message, else ""
  char *initial; // default value, else ""
};

// A type. One without a hash is only part of others: the node has no endpoint of it.
struct described {
  char *name, *hash;
  struct member *members;
  size_t n_members;
  char *text; // of its .msg file, as rosidl compiles it in
};

struct catalog {
  struct described *types; // by name
  size_t n;
  char *service_hash; // of the service itself; NULL = unknown
  bool refuse;
};

// catalog_load reads DIR/index and DIR/NAME.msg of every type in it, served as it is, or ends the program. Lines of the index:
//   service HASH
//   type NAME HASH|-
//   member NAME TYPE_ID CAPACITY STRING_CAPACITY NESTED|- [DEFAULT]   (of the type above it)
void catalog_load(struct catalog *c, const struct describe_options *o);

enum { MAX_ANSWER = 64 };

// What is to be answered.
struct answer {
  const char *failure;                       // NULL = successful
  const struct described *types[MAX_ANSWER]; // the type, then all it refers to by name
  size_t n;
};

// catalog_answer looks up a type as rcl does: by its hash alone. A catalog without types knows none.
void catalog_answer(const struct catalog *c, const char *type_hash, struct answer *a);

// The node of --decoy.
#define DECOY "/lab/decoy"

// describe_event prints which node was asked for what, and how it was answered.
void describe_event(const char *node, const char *type_name, const char *type_hash, bool sources, const char *result);

#ifdef __cplusplus
}
#endif
