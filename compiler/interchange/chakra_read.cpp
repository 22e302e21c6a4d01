// This file shares no code with chakra_write.cpp, so that a test which reads what was written checks both.
// Unknown fields are skipped, as protobuf does.

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "chorale/interchange.hpp"
#include "chorale/usage_error.hpp"

namespace chorale {
namespace {

/// Reads the fields of one message.
class FieldReader {
 public:
  /// \param offset  of the message in its file, for messages of errors
  FieldReader(std::string_view bytes, uint32_t rank, size_t offset)
      : bytes_(bytes), rank_(rank), offset_(offset) {}

  bool next() {
    if (at_ == bytes_.size()) return false;
    const uint64_t key = varint();
    field = uint32_t(key >> 3);
    switch (key & 7) {
      case 0:
        value = varint();
        break;
      case 1:
        skip(8);
        break;
      case 2: {
        const uint64_t size = varint();
        begin_ = offset_ + at_;
        text = skip(size);
        break;
      }
      case 5:
        skip(4);
        break;
      default:
        fail("a field has the wire type " + std::to_string(key & 7));
    }
    return true;
  }

  uint64_t varint() {
    uint64_t result = 0;
    for (uint32_t shift = 0; shift < 64; shift += 7) {
      if (at_ == bytes_.size()) fail("the trace ends within a number");
      const uint8_t byte = uint8_t(bytes_[at_++]);
      result |= uint64_t(byte & 0x7f) << shift;
      if (byte < 0x80) return result;
    }
    fail("a number has more than 64 bits");
  }

  std::string_view skip(uint64_t size) {
    if (size > bytes_.size() - at_) fail("the trace ends within a message");
    const std::string_view skipped = bytes_.substr(at_, size);
    at_ += size;
    return skipped;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw UsageError("the trace of rank " + std::to_string(rank_) + " is wrong at byte " +
                     std::to_string(offset_ + at_) + ": " + what);
  }

  /// Returns a reader of the message that the current field holds.
  FieldReader inner() const { return {text, rank_, begin_}; }
  bool done() const { return at_ == bytes_.size(); }
  size_t position() const { return offset_ + at_; }

  uint32_t field = 0;
  uint64_t value = 0;     ///< of a number
  std::string_view text;  ///< of a string, a message or a packed list

 private:
  std::string_view bytes_;
  uint32_t rank_;
  size_t offset_, at_ = 0, begin_ = 0;
};

struct Attributes {
  std::map<std::string, uint64_t, std::less<>> numbers;
  std::map<std::string, std::string, std::less<>> texts;

  void add(FieldReader reader) {
    std::string name;
    std::optional<uint64_t> number;
    std::optional<std::string> text;
    while (reader.next()) {
      if (reader.field == 1) name = reader.text;
      if (reader.field == 29) text = reader.text;
      // int32, int64, uint64 and bool
      if (reader.field == 7 || reader.field == 9 || reader.field == 13 || reader.field == 27)
        number = reader.value;
    }
    if (number) numbers[name] = *number;
    if (text) texts[name] = *text;
  }

  uint64_t number(std::string_view name, const FieldReader& at) const {
    const auto found = numbers.find(name);
    if (found == numbers.end()) at.fail("the node has no attribute '" + std::string(name) + "'");
    return found->second;
  }
  uint64_t number_or_0(std::string_view name) const {
    const auto found = numbers.find(name);
    return found == numbers.end() ? 0 : found->second;
  }
};

GraphNode read_node(FieldReader reader, uint32_t rank, uint64_t expected_id) {
  uint64_t id = 0, type = 0, micros = 0;
  GraphNode node;
  Attributes attributes;
  while (reader.next()) {
    if (reader.field == 1) id = reader.value;
    if (reader.field == 2) node.name = reader.text;
    if (reader.field == 3) type = reader.value;
    if (reader.field == 5) {
      for (FieldReader list = reader.inner(); !list.done();) node.after.push_back(uint32_t(list.varint()));
    }
    if (reader.field == 7) micros = reader.value;
    if (reader.field == 10) attributes.add(reader.inner());
  }
  if (id != expected_id)
    reader.fail("node " + std::to_string(id) + " is at the place of node " + std::to_string(expected_id));
  std::sort(node.after.begin(), node.after.end());
  node.block = uint32_t(attributes.number_or_0("chorale_thread_block"));
  if (type == 4) {
    node.kind = GraphNode::Kind::work;
    node.operations = attributes.number_or_0("num_ops");
    node.bytes = attributes.number_or_0("tensor_size");
    const auto ns = attributes.numbers.find("chorale_ns");
    node.ns = ns == attributes.numbers.end() ? micros * 1000 : ns->second;
    return node;
  }
  if (type != 5 && type != 6) reader.fail("a node has the type " + std::to_string(type));
  const bool sends = type == 5;
  node.kind = sends ? GraphNode::Kind::send : GraphNode::Kind::receive;
  node.bytes = attributes.number("comm_size", reader);
  node.tag = uint32_t(attributes.number("comm_tag", reader));
  node.peer = uint32_t(attributes.number(sends ? "comm_dst" : "comm_src", reader));
  if (attributes.number(sends ? "comm_src" : "comm_dst", reader) != rank)
    reader.fail(std::string("a message is ") + (sends ? "sent by" : "for") + " another rank");
  node.signal = attributes.number_or_0("chorale_signal") != 0;
  return node;
}

}  // namespace

MessageGraph read_chakra(const std::vector<std::string>& traces) {
  MessageGraph graph;
  graph.ranks.resize(traces.size());
  for (uint32_t rank = 0; rank < traces.size(); ++rank) {
    FieldReader trace(traces[rank], rank, 0);
    if (trace.done()) trace.fail("it has no metadata");
    for (bool first = true; !trace.done(); first = false) {
      const uint64_t size = trace.varint();
      const size_t offset = trace.position();
      FieldReader message(trace.skip(size), rank, offset);
      if (!first) {
        graph.ranks[rank].push_back(read_node(message, rank, graph.ranks[rank].size()));
        continue;
      }
      Attributes attributes;
      while (message.next()) {
        if (message.field == 2) attributes.add(message.inner());
      }
      const auto plan = attributes.texts.find("plan");
      if (plan != attributes.texts.end()) graph.plan = plan->second;
    }
    const std::vector<GraphNode>& nodes = graph.ranks[rank];
    for (size_t id = 0; id < nodes.size(); ++id) {
      if (!nodes[id].after.empty() && nodes[id].after.back() >= nodes.size())
        trace.fail("node " + std::to_string(id) + " waits for node " +
                   std::to_string(nodes[id].after.back()) + ", and there are " +
                   std::to_string(nodes.size()));
      if (nodes[id].peer >= traces.size())
        trace.fail("node " + std::to_string(id) + " has a message of rank " + std::to_string(nodes[id].peer) +
                   ", and there are " + std::to_string(traces.size()));
    }
  }
  return graph;
}

}  // namespace chorale
