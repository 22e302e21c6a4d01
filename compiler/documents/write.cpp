// This file writes plans as canonical JSON text, with a fixed order of keys and one operation per line.

#include <ios>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>

#include "chorale/collective.hpp"
#include "chorale/json.hpp"
#include "compiler/json/json.hpp"
#include "compiler/plan/roles.hpp"
#include "compiler/schedule/json.hpp"

namespace chorale {
namespace {

using json::put;
using json::quote;
using std::string_view;

string_view letter(uint32_t buffer) { return buffer < 3 ? buffer_letters[buffer] : string_view("?"); }
string_view name_of(ChannelType type) { return channel_type_names[size_t(type)]; }
string_view word(bool value) { return value ? "true" : "false"; }

class Writer {
 public:
  Writer(const Plan& plan, bool line_numbers, std::ostream* stream = nullptr)
      : plan_(plan), line_numbers_(line_numbers), stream_(stream) {}

  std::string text;  ///< the whole text if there is no stream

  /// Passes the text so far to the stream.
  void flush() {
    if (!stream_) return;
    stream_->write(text.data(), std::streamsize(text.size()));
    text.clear();
  }

  /// Writes the plan, and with `ranks` also the list of ranks.
  void whole(bool ranks = true);
  void gpu(const Gpu&);

  /// Writes operation `at` with its body, and returns the position after it. `indent` is the indent of its
  /// line. If it is empty, the body is on the same line.
  uint32_t operation(const ThreadBlock&, const Op* ops, uint32_t at, uint32_t end, uint32_t rank,
                     const char* indent);

 private:
  void block(const ThreadBlock&, uint32_t rank);
  void channel(const ChannelRecord&);
  void extension();
  void post();
  void operands(const Op&, std::span<const Operand>, bool in_dst, uint32_t rank);
  void body(const ThreadBlock&, const Op* ops, uint32_t at, uint32_t end, uint32_t rank, const char* indent);

  /// Writes a list on one line.
  template <class Range, class Each>
  void list(const Range& items, Each&& each) {
    text += '[';
    bool first = true;
    for (const auto& item : items) {
      if (!std::exchange(first, false)) text += ',';
      each(item);
    }
    text += ']';
  }

  template <class Range>
  void numbers(const Range& values) {
    list(values, [&](const auto value) { json::append(text, uint64_t(value)); });
  }

  /// Writes each of `items` on a separate line.
  template <class Range, class Each>
  void lines(const Range& items, string_view indent, Each&& each) {
    text += '[';
    bool first = true;
    for (const auto& item : items) {
      put(text, first ? "\n" : ",\n", indent, "  ");
      first = false;
      each(item);
    }
    if (!first) put(text, "\n", indent);
    text += ']';
  }

  /// Writes unknown keys of a one-line object, after its known ones.
  void extra(uint32_t position) {
    if (position) put(text, ",", plan_.extras[position - 1]);
  }

  /// Writes unknown keys of an object that has one line per key.
  void extra_line(uint32_t position, string_view indent) {
    if (position) put(text, ",\n", indent, plan_.extras[position - 1]);
  }

  const Plan& plan_;
  bool line_numbers_;
  std::ostream* stream_;
};

void Writer::operands(const Op& op, std::span<const Operand> list, bool in_dst, uint32_t rank) {
  const Shape& row = shape(op.code);
  if (!row.field(in_dst, 0)) return;
  // MSCCL++ writes the rank only in the local sources of switch operations.
  const bool with_rank = !in_dst && row.has_any(switched_roles);
  put(text, in_dst ? ",\"dst_buff\":[" : ",\"src_buff\":[");
  for (size_t position = 0; position < list.size(); ++position) {
    const Operand& operand = list[position];
    const Role role = row.field(in_dst, position)->role;
    text += position ? ",{" : "{";
    if (is_remote(role)) {
      put(text, "\"buffer_id\":", uint64_t(operand.ref));
    } else if (is_switched(role)) {
      put(text, "\"switch_channel_id\":", uint64_t(operand.ref));
    } else {
      if (with_rank) put(text, "\"rank\":", uint64_t(rank), ",");
      put(text, "\"type\":\"", letter(operand.ref), "\"");
    }
    put(text, ",\"index\":", operand.index, ",\"size\":", operand.size);
    if (operand.codec) put(text, ",\"codec\":", uint64_t(operand.codec - 1));
    extra(operand.extra);
    text += '}';
  }
  text += ']';
}

void Writer::body(const ThreadBlock& block, const Op* ops, uint32_t at, uint32_t end, uint32_t rank,
                  const char* indent) {
  const std::string inner = indent ? std::string(indent) + "  " : std::string();
  put(text, ",\"ops\":[");
  for (uint32_t first = at; at < end;) {
    if (at != first) text += ',';
    if (indent) put(text, "\n", inner);
    at = operation(block, ops, at, end, rank, indent ? inner.c_str() : nullptr);
    if (at == end && indent) put(text, "\n", indent);
  }
  text += ']';
}

uint32_t Writer::operation(const ThreadBlock& block, const Op* ops, uint32_t at, uint32_t end, uint32_t rank,
                           const char* indent) {
  const Op& op = ops[at++];
  const Shape& row = shape(op.code);
  put(text, "{\"name\":\"", info(op.code).mnemonic, "\"");
  operands(op, block.sources(op), false, rank);
  operands(op, block.dests(op), true, rank);
  const IdKind ids = id_kind(row, op.via);
  if (ids == IdKind::channel) {
    put(text, ",\"channel_ids\":");
    numbers(block.op_ids(op));
  }
  if (row.has(Role::Via) && op.via != ChannelType::none) {
    put(text, ",\"channel_type\":\"", name_of(op.via), "\"");
  }
  if (ids == IdKind::semaphore) {
    put(text, ",\"semaphore_ids\":");
    numbers(block.op_ids(op));
  }
  if (ids == IdKind::barrier) {
    put(text, ",\"barrier_id\":", uint64_t(op.ids ? block.op_ids(op)[0] : 0),
        ",\"num_threadblocks\":", uint64_t(op.participants));
  }
  if (op.group_size) {
    put(text, ",\"tbg_info\":{\"tb_id\":", uint64_t(op.group_index),
        ",\"tbg_size\":", uint64_t(op.group_size), "}");
  }
  if (row.has(Role::Reduce)) {
    put(text, ",\"reduce_op\":\"", reduce_op_name(op.reduce_op), "\"");
  }
  if (row.has(Role::Loop)) {
    put(text, ",\"iter_context\":{\"unit_size\":", uint64_t(op.unit_bytes),
        ",\"num_chunks\":", uint64_t(op.chunks), "}");
    const uint32_t stop = op.body < end - at ? at + op.body : end;
    body(block, ops, at, stop, rank, indent);
    at = stop;
  }
  if (op.at && line_numbers_) put(text, ",\"at\":", uint64_t(plan_.first_at(op) - 1));
  extra(op.extra);
  text += '}';
  return at;
}

void Writer::block(const ThreadBlock& block, uint32_t rank) {
  put(text, "{\n          \"id\": ", uint64_t(block.id), ",\n          \"ops\": [");
  const uint32_t end = uint32_t(block.ops.size());
  for (uint32_t at = 0; at < end;) {
    put(text, at ? ",\n            " : "\n            ");
    at = operation(block, block.ops.data(), at, end, rank, "            ");
    if (text.size() > 1 << 16) flush();
  }
  const auto refs = [&](const auto& each, string_view type, string_view ids) {
    put(text, "{\"", type, "\":\"", name_of(each.type), "\",\"", ids, "\":");
    numbers(each.ids);
    extra(each.extra);
    text += '}';
  };
  put(text, end ? "\n          ],\n          \"channels\": " : "],\n          \"channels\": ");
  list(block.channels, [&](const ChannelRefs& each) { refs(each, "channel_type", "channel_ids"); });
  put(text, ",\n          \"remote_buffer_refs\": ");
  list(block.remote_buffers,
       [&](const RemoteBufferRefs& each) { refs(each, "access_channel_type", "remote_buffer_ids"); });
  extra_line(block.extra, "          ");
  put(text, "\n        }");
}

void Writer::channel(const ChannelRecord& record) {
  put(text, "{\"channel_type\":\"", name_of(record.type), "\"");
  if (is_switched(record.type)) {
    put(text, ",\"buffer_type\":\"", letter(uint32_t(record.buffer)), "\",\"rank_groups\":");
    list(record.rank_groups, [&](const std::vector<uint32_t>& group) {
      put(text, "{\"size\":", uint64_t(group.size()), ",\"ranks\":");
      numbers(group);
      text += '}';
    });
  } else {
    put(text, ",\"connected_to\":");
    numbers(record.connected_to);
  }
  extra(record.extra);
  text += '}';
}

void Writer::gpu(const Gpu& gpu) {
  put(text, "{\n      \"id\": ", uint64_t(gpu.id), ",\n      \"input_chunks\": ", gpu.chunks[0],
      ",\n      \"output_chunks\": ", gpu.chunks[1], ",\n      \"scratch_chunks\": ", gpu.chunks[2],
      ",\n      \"threadblocks\": ");
  lines(gpu.threadblocks, "      ", [&](const ThreadBlock& item) { block(item, gpu.id); });
  put(text, ",\n      \"channels\": ");
  lines(gpu.channels, "      ", [&](const ChannelRecord& record) { channel(record); });
  put(text, ",\n      \"remote_buffers\": ");
  lines(gpu.remote_buffers, "      ", [&](const RemoteBuffer& buffer) {
    put(text, "{\"rank\":", uint64_t(buffer.rank), ",\"type\":\"", letter(uint32_t(buffer.buffer)),
        "\",\"access_channel_types\":");
    list(buffer.access, [&](const ChannelType type) { put(text, "\"", name_of(type), "\""); });
    extra(buffer.extra);
    text += '}';
  });
  put(text, ",\n      \"semaphores\": ");
  list(gpu.semaphores, [&](const int64_t value) { put(text, "{\"init_value\":", uint64_t(value), "}"); });
  extra_line(gpu.extra, "      ");
  put(text, "\n    }");
}

/// Writes one rank per line, as lists of segments, as lists of [rank,chunk].
void Writer::post() {
  put(text, ",\n    \"post\": ");
  lines(plan_.extension.post, "    ", [&](const std::vector<std::vector<Contribution>>& segments) {
    list(segments, [&](const std::vector<Contribution>& segment) {
      list(segment,
           [&](const Contribution& part) { put(text, "[", uint64_t(part.rank), ",", part.chunk, "]"); });
    });
  });
}

void Writer::extension() {
  const Extension& own = plan_.extension;
  const bool rooted = collective_info(plan_.collective).has_root() || own.root;
  const bool segmented = own.input_segments || own.output_segments;
  const bool any = rooted || segmented || !own.requirements.empty() || !own.post.empty() ||
                   !plan_.source.empty() || own.bounded_proof || !own.codecs.empty() ||
                   !own.verified.empty() || own.schedule || own.extra;
  if (!any) return;
  put(text, ",\n  \"chorale\": {\n    \"version\": \"1.0\"");
  if (!own.requirements.empty()) {
    put(text, ",\n    \"requires\": ");
    list(own.requirements, [&](const std::string& feature) { quote(text, feature); });
  }
  if (rooted) put(text, ",\n    \"root\": ", uint64_t(own.root));
  if (segmented) {
    put(text, ",\n    \"segments\": [", own.input_segments, ",", own.output_segments, "]");
  }
  if (!own.post.empty()) post();
  if (own.bounded_proof) put(text, ",\n    \"bounded_proof\": true");
  if (!own.codecs.empty()) {
    put(text, ",\n    \"codecs\": ");
    list(own.codecs, [&](const Codec& codec) {
      put(text, "{\"format\":\"", codec_format_name(codec.format), "\",\"block\":", uint64_t(codec.block),
          ",\"scale\":\"f32\"}");
    });
  }
  if (!plan_.source.empty()) {
    put(text, ",\n    \"source\": ");
    lines(plan_.source, "    ",
          [&](const SourceLine& line) { quote(text, line.file + ":" + std::to_string(line.line)); });
  }
  // It is parsed and written again, so that a second round trip changes nothing.
  if (!own.verified.empty()) {
    put(text, ",\n    \"verified\": ");
    json::dump(text, json::parse(own.verified));
  }
  if (own.schedule) {
    put(text, ",\n    \"host\": ");
    schedule::write_schedule(text, *own.schedule, "    ");
  }
  extra_line(own.extra, "    ");
  put(text, "\n  }");
}

void Writer::whole(bool ranks) {
  if (plan_.only_rank) {
    throw std::invalid_argument("plan '" + plan_.name + "' was loaded for rank " +
                                std::to_string(*plan_.only_rank) +
                                " alone; to write it, load it for all ranks");
  }
  put(text, "{\n  \"name\": ");
  quote(text, plan_.name);
  put(text, ",\n  \"collective\": ");
  quote(text, plan_.collective);
  put(text, ",\n  \"protocol\": \"", string_view(plan_.protocol == Protocol::LL ? "LL" : "Simple"),
      "\",\n  \"inplace\": ", word(plan_.inplace), ",\n  \"reuse_resources\": ", word(plan_.reuse_resources));
  if (ranks) {
    put(text, ",\n  \"gpus\": ");
    lines(plan_.gpus, "  ", [&](const Gpu& item) { gpu(item); });
  }
  put(text, ",\n  \"num_threads_per_block\": ", plan_.threads_per_block,
      ",\n  \"use_double_scratch_buffer\": ", word(plan_.use_double_scratch_buffer),
      ",\n  \"buffer_alignment\": ", plan_.buffer_alignment,
      ",\n  \"min_message_size\": ", plan_.min_message_size,
      ",\n  \"max_message_size\": ", plan_.max_message_size);
  extra_line(plan_.extra, "  ");
  extension();
  put(text, "\n}\n");
}

}  // namespace

std::string json::text_without_gpus(const Plan& plan) {
  Writer writer(plan, true);
  writer.whole(false);
  return std::move(writer.text);
}

std::string json::text_of(const Plan& plan, const Gpu& gpu) {
  Writer writer(plan, true);
  writer.gpu(gpu);
  return std::move(writer.text);
}

std::string write(const Plan& plan) {
  Writer writer(plan, true);
  writer.whole();
  return std::move(writer.text);
}

void write(const Plan& plan, std::ostream& out) {
  Writer writer(plan, true, &out);
  writer.whole();
  writer.flush();
}

std::string write(const Plan& plan, const ThreadBlock& block, const Op& op, uint32_t rank) {
  Writer writer(plan, false);
  // The body of a pipeline follows it in the block. A copy of the operation has no body.
  const bool in_block = &op >= block.ops.data() && &op < block.ops.data() + block.ops.size();
  const uint32_t following = in_block ? uint32_t(block.ops.data() + block.ops.size() - &op) : 1;
  writer.operation(block, &op, 0, following, rank, nullptr);
  return std::move(writer.text);
}

}  // namespace chorale
