#include "tools/plan_schema.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "chorale/plan.hpp"

namespace chorale::tools {
namespace {

using Json = nlohmann::ordered_json;

Json reference(const char* name) { return {{"$ref", std::string("#/$defs/") + name}}; }

Json list_of(Json items) { return {{"type", "array"}, {"items", std::move(items)}}; }

Json pair_of(const Json& item) {
  return {{"type", "array"}, {"items", item}, {"minItems", 2}, {"maxItems", 2}};
}

Json words(std::span<const std::string_view> known) { return {{"enum", known}}; }

Json channel_types(std::span<const ChannelType> types) {
  std::vector<std::string_view> known;
  for (const ChannelType type : types) known.push_back(channel_type_names[size_t(type)]);
  return words(known);
}

/// Returns the schema of an object. It must have all of `properties`, except those named in `optional`, and
/// may have others.
Json object(Json properties, const std::vector<std::string>& optional = {}) {
  Json required = Json::array();
  for (const auto& [key, _] : properties.items()) {
    if (std::find(optional.begin(), optional.end(), key) == optional.end()) required.push_back(key);
  }
  return {{"type", "object"}, {"required", std::move(required)}, {"properties", std::move(properties)}};
}

const char* operand_of(Role role) {
  if (is_remote(role)) return "at_peer";
  return is_switched(role) ? "at_switch" : "here";
}

/// Returns the schema of an operation's "src_buff" or "dst_buff"; null if it has none.
Json operands(const OpInfo& op, bool in_dst) {
  Json first = Json::array(), rest = false;
  size_t least = 0;
  for (const Field& field : op.fields) {
    if (!is_operand(field.role) || field.in_dst != in_dst) continue;
    ++least;
    const Json item = reference(operand_of(field.role));
    if (field.many) {
      rest = item;  // such a field is always the last one
    } else {
      first.push_back(item);
    }
  }
  if (least == 0) return nullptr;
  Json list = {{"type", "array"}};
  if (!first.empty()) list["prefixItems"] = std::move(first);
  list["items"] = std::move(rest);
  list["minItems"] = least;
  return list;
}

/// Adds the properties that one role of an operation requires. A role without a row stops the build.
void add_attribute(Role role, Json& properties) {
  switch (role) {
    case Role::Channels:
    case Role::Post:
    case Role::PostRelaxed:
    case Role::Await:
    case Role::AwaitRelaxed:
    case Role::Drain:
      properties["channel_ids"] = list_of(reference("count"));
      return;
    case Role::Acquire:
    case Role::Release:
      properties["semaphore_ids"] = list_of(reference("count"));
      return;
    case Role::Arrive:
      properties["barrier_id"] = reference("count");
      properties["num_threadblocks"] = reference("count");
      return;
    case Role::Loop:
      properties["iter_context"] =
          object({{"unit_size", reference("count")}, {"num_chunks", reference("count")}});
      properties["ops"] = list_of(reference("operation"));
      return;
    case Role::Via:  // it is optional, and is in the schema of all operations
    case Role::PortChannels:
    case Role::Reduce:
    case Role::Sliced:
    case Role::Read:
    case Role::Write:
    case Role::PacketRead:
    case Role::PacketWrite:
    case Role::RemoteRead:
    case Role::RemoteWrite:
    case Role::RemotePacketWrite:
    case Role::SwitchRead:
    case Role::SwitchWrite:
    case Role::SwitchPacketWrite:
      return;
  }
}

Json body_of(const OpInfo& op) {
  Json properties = Json::object();
  for (const bool in_dst : {false, true}) {
    Json list = operands(op, in_dst);
    if (!list.is_null()) properties[in_dst ? "dst_buff" : "src_buff"] = std::move(list);
  }
  for (const Field& field : op.fields) add_attribute(field.role, properties);
  Json body = object(std::move(properties));
  body.erase("type");
  if (!op.has(Role::SwitchRead)) return body;
  // MSCCL++ writes a reduction from a switch in this form.
  const Json region = {{"required", {"channel_ids", "buffer_type", "buffer_offset", "size", "dst_chunk"}}};
  return {{"anyOf", {std::move(body), region}}};
}

Json operation() {
  Json names = Json::array(), cases = Json::array();
  for (const OpInfo& op : op_table()) {
    names.push_back(op.mnemonic);
    Json body = body_of(op);
    if (body.contains("required") && body["required"].empty()) continue;
    cases.push_back(
        {{"if", {{"properties", {{"name", {{"const", op.mnemonic}}}}}}}, {"then", std::move(body)}});
  }
  Json all = object({{"name", {{"enum", std::move(names)}}},
                     {"channel_type", reference("channel_type")},
                     {"reduce_op", words(reduce_op_names)},
                     {"tbg_info", object({{"tb_id", reference("count")}, {"tbg_size", reference("count")}})}},
                    {"channel_type", "reduce_op", "tbg_info"});
  all["allOf"] = std::move(cases);
  return all;
}

Json channel() {
  const Json group = object({{"size", reference("count")}, {"ranks", list_of(reference("count"))}});
  return {
      {"type", "object"},
      {"required", {"channel_type"}},
      {"properties", {{"channel_type", reference("channel_type")}}},
      {"if",
       {{"properties", {{"channel_type", {{"const", channel_type_names[size_t(ChannelType::switched)]}}}}}}},
      {"then",
       {{"required", {"rank_groups"}},
        {"properties", {{"buffer_type", reference("buffer")}, {"rank_groups", list_of(group)}}}}},
      {"else",
       {{"required", {"connected_to"}}, {"properties", {{"connected_to", list_of(reference("count"))}}}}}};
}

Json thread_block() {
  return object(
      {{"id", reference("count")},
       {"ops", list_of(reference("operation"))},
       {"channels", list_of(object({{"channel_type", reference("channel_type")},
                                    {"channel_ids", list_of(reference("count"))}}))},
       {"remote_buffer_refs", list_of(object({{"access_channel_type", reference("point_to_point")},
                                              {"remote_buffer_ids", list_of(reference("count"))}}))}},
      {"remote_buffer_refs"});
}

Json rank() {
  return object(
      {{"id", reference("count")},
       {"input_chunks", reference("count")},
       {"output_chunks", reference("count")},
       {"scratch_chunks", reference("count")},
       {"threadblocks", list_of(thread_block())},
       {"channels", list_of(channel())},
       {"remote_buffers", list_of(object({{"rank", reference("count")},
                                          {"type", reference("buffer")},
                                          {"access_channel_types", list_of(reference("point_to_point"))}}))},
       {"semaphores", list_of(object({{"init_value", reference("count")}}))}},
      {"semaphores"});
}

Json codec() {
  Json formats = Json::array(), blocks = Json::array();
  for (const CodecFormat format : all_codec_formats) formats.push_back(codec_format_name(format));
  for (uint32_t block = Codec::least_block; block <= Codec::most_block; block *= 2) blocks.push_back(block);
  return object({{"format", {{"enum", std::move(formats)}}},
                 {"block", {{"enum", std::move(blocks)}}},
                 {"scale", {{"const", "f32"}}}},
                {"scale"});
}

/// Returns the schema of the extension, which holds the parts that MSCCL++ lacks.
Json extension() {
  return object({{"version", {{"const", "1.0"}}},
                 {"requires", list_of(words(known_requirements))},
                 {"root", reference("count")},
                 {"segments", pair_of(reference("count"))},
                 {"post", list_of(list_of(list_of(pair_of(reference("count")))))},
                 {"bounded_proof", {{"type", "boolean"}}},
                 {"codecs", list_of(codec())},
                 {"source", list_of({{"type", "string"}})},
                 {"host", {{"type", "object"}}}},
                {"requires", "root", "segments", "post", "bounded_proof", "codecs", "source", "host"});
}

Json definitions() {
  const Json place = {{"index", reference("count")}, {"size", reference("count")}};
  const auto operand = [&](const char* key, Json what) {
    Json properties = {{key, std::move(what)}};
    properties.update(place);
    properties["codec"] = reference("count");
    return object(std::move(properties), {"codec"});
  };
  return {{"count", {{"type", "integer"}, {"minimum", 0}}},
          {"buffer", {{"enum", {"i", "o", "s"}}}},
          {"point_to_point", channel_types(signalled_types)},
          {"channel_type", channel_types(all_channel_types)},
          {"here", operand("type", reference("buffer"))},
          {"at_peer", operand("buffer_id", reference("count"))},
          {"at_switch", operand("switch_channel_id", reference("count"))},
          {"operation", operation()}};
}

}  // namespace

std::string plan_schema() {
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", "A plan of Chorale"}};
  schema.update(object({{"name", {{"type", "string"}}},
                        {"collective", {{"type", "string"}}},
                        {"protocol", {{"enum", {"Simple", "LL"}}}},
                        {"inplace", {{"type", "boolean"}}},
                        {"reuse_resources", {{"type", "boolean"}}},
                        {"gpus", list_of(rank())},
                        {"num_threads_per_block", reference("count")},
                        {"use_double_scratch_buffer", {{"type", "boolean"}}},
                        {"buffer_alignment", reference("count")},
                        {"min_message_size", reference("count")},
                        {"max_message_size", reference("count")},
                        {"chorale", extension()}},
                       {"reuse_resources", "num_threads_per_block", "use_double_scratch_buffer",
                        "buffer_alignment", "min_message_size", "max_message_size", "chorale"}));
  schema["$defs"] = definitions();
  return schema.dump(1) + "\n";
}

}  // namespace chorale::tools
