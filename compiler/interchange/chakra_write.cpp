// The schema is that of MLCommons (schema/protobuf/et_def.proto of github.com/mlcommons/chakra), and the
// numbers of fields below are its numbers. A trace has a GlobalMetadata and then Nodes, each one after its
// length, as Chakra's own src/third_party/utils/protolib.py writes them. The types of attributes are those
// that its feeder reads (src/feeder/et_feeder_node.cpp).

#include <cmath>
#include <string>
#include <string_view>

#include "chorale/interchange.hpp"

namespace chorale {
namespace {

using Kind = GraphNode::Kind;

/// Writes the wire format of protobuf. As proto3 says, a number of 0 is left out, except in a oneof.
class Record {
 public:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += char(value | 0x80);
    bytes_ += char(value);
  }
  void number(uint32_t field, uint64_t value) {
    if (value) chosen(field, value);
  }
  void chosen(uint32_t field, uint64_t value) {
    varint(uint64_t(field) << 3);
    varint(value);
  }
  void text(uint32_t field, std::string_view text) {
    varint(uint64_t(field) << 3 | 2);
    varint(text.size());
    bytes_ += text;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Fields of AttributeProto.
enum Value : uint32_t {
  int32_value = 7,
  int64_value = 9,
  uint64_value = 13,
  bool_value = 27,
  string_value = 29
};

void attribute(Record& record, uint32_t field, std::string_view name, Value type, uint64_t value) {
  Record made;
  made.text(1, name);
  made.chosen(type, value);
  record.text(field, made.bytes());
}

void attribute(Record& record, uint32_t field, std::string_view name, std::string_view value) {
  Record made;
  made.text(1, name);
  made.text(string_value, value);
  record.text(field, made.bytes());
}

std::string metadata(const MessageGraph& graph) {
  Record record;
  record.text(1, "1.0.0");
  attribute(record, 2, "plan", graph.plan);
  attribute(record, 2, "producer", "chorale");
  return record.bytes();
}

std::string node_record(const GraphNode& node, uint32_t rank, uint64_t id) {
  enum NodeType : uint32_t { comp = 4, send = 5, receive = 6 };
  constexpr uint32_t attr = 10;
  Record record;
  record.number(1, id);
  record.text(2, node.name);
  record.number(3, node.kind == Kind::work ? comp : node.kind == Kind::send ? send : receive);
  if (!node.after.empty()) {
    Record list;
    for (const uint32_t before : node.after) list.varint(before);
    record.text(5, list.bytes());
  }
  if (node.kind == Kind::work) record.number(7, uint64_t(std::llround(double(node.ns) / 1000)));
  attribute(record, attr, "is_cpu_op", bool_value, 0);
  if (node.kind == Kind::work) {
    attribute(record, attr, "num_ops", int64_value, node.operations);
    attribute(record, attr, "tensor_size", uint64_value, node.bytes);
    attribute(record, attr, "chorale_ns", uint64_value, node.ns);
  } else {
    const bool sends = node.kind == Kind::send;
    attribute(record, attr, "comm_size", int64_value, node.bytes);
    attribute(record, attr, "comm_src", int32_value, sends ? rank : node.peer);
    attribute(record, attr, "comm_dst", int32_value, sends ? node.peer : rank);
    attribute(record, attr, "comm_tag", int32_value, node.tag);
    if (node.signal) attribute(record, attr, "chorale_signal", bool_value, 1);
  }
  attribute(record, attr, "chorale_thread_block", int32_value, node.block);
  return record.bytes();
}

}  // namespace

std::string write_chakra(const MessageGraph& graph, uint32_t rank) {
  std::string text;
  const auto append = [&](const std::string& message) {
    Record length;
    length.varint(message.size());
    text += length.bytes() + message;
  };
  append(metadata(graph));
  const std::vector<GraphNode>& nodes = graph.ranks[rank];
  for (size_t id = 0; id < nodes.size(); ++id) append(node_record(nodes[id], rank, id));
  return text;
}

}  // namespace chorale
