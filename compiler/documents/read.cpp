// This file reads a plan, except its operations.

#include <functional>

#include "chorale/json.hpp"
#include "chorale/read_file.hpp"
#include "compiler/json/cbor.hpp"
#include "compiler/json/reader.hpp"
#include "compiler/schedule/json.hpp"

namespace chorale {
namespace json {
namespace {

constexpr std::string_view version = "1.0";

/// Calls each(item, node) for every item of a list, with a new last element of `out`.
template <class T, class Each>
void read_list(const Node& list, std::vector<T>& out, Each&& each) {
  const size_t count = list.items();
  out.reserve(count);
  for (size_t position = 0; position < count; ++position) each(out.emplace_back(), list.item(position));
}

void read_rank_group(std::vector<uint32_t>& ranks, const Node& node) {
  constexpr std::string_view known[] = {"size", "ranks"};
  Fields fields(node);
  const Node list = fields.at("ranks");
  ranks = list.numbers();
  const Node size = fields.at("size");
  if (size.number() != ranks.size()) size.refuse(std::to_string(ranks.size()) + ", the number of its ranks");
  fields.none(known);
}

void read_channel(Plan& plan, ChannelRecord& record, const Node& node) {
  Fields fields(node);
  record.type = channel_type(fields.at("channel_type"));
  if (is_switched(record.type)) {
    // Older files call it "buff".
    record.buffer = buffer_kind(fields.at(fields.has("buffer_type") ? "buffer_type" : "buff"));
    read_list(fields.at("rank_groups"), record.rank_groups, read_rank_group);
  } else {
    record.connected_to = fields.at("connected_to").numbers();
  }
  record.extra = fields.rest(plan);
}

void read_remote_buffer(Plan& plan, RemoteBuffer& buffer, const Node& node) {
  Fields fields(node);
  buffer.rank = fields.at("rank").number32();
  buffer.buffer = buffer_kind(fields.at("type"));
  read_list(fields.at("access_channel_types"), buffer.access,
            [](ChannelType& type, const Node& word) { type = signalled_type(word); });
  buffer.extra = fields.rest(plan);
}

void read_block(Plan& plan, ThreadBlock& block, const Node& node, uint32_t rank) {
  Fields fields(node);
  block.id = fields.at("id").number32();
  read_list(fields.at("channels"), block.channels, [&](ChannelRefs& refs, const Node& item) {
    Fields keys(item);
    refs.type = channel_type(keys.at("channel_type"));
    refs.ids = keys.at("channel_ids").numbers();
    refs.extra = keys.rest(plan);
  });
  if (const std::optional<Node> list = fields.find("remote_buffer_refs")) {
    read_list(*list, block.remote_buffers, [&](RemoteBufferRefs& refs, const Node& item) {
      Fields keys(item);
      refs.type = signalled_type(keys.at("access_channel_type"));
      refs.ids = keys.at("remote_buffer_ids").numbers();
      refs.extra = keys.rest(plan);
    });
  }
  read_ops(fields.at("ops"), plan, block, rank);
  block.extra = fields.rest(plan);
}

void read_gpu(Plan& plan, Gpu& gpu, const Node& node) {
  Fields fields(node);
  const Node id = fields.at("id");
  gpu.id = uint32_t(node.index);
  if (id.number() != gpu.id) id.refuse(std::to_string(gpu.id) + ", because an id is a position in the list");
  gpu.chunks[0] = fields.at("input_chunks").number();
  gpu.chunks[1] = fields.at("output_chunks").number();
  gpu.chunks[2] = fields.at("scratch_chunks").number();
  const Node blocks = fields.at("threadblocks");
  if (!plan.only_rank || *plan.only_rank == gpu.id) {
    read_list(blocks, gpu.threadblocks, [&](ThreadBlock& block, const Node& item) {
      read_block(plan, block, item, gpu.id);
      if (gpu.threadblocks.size() < 2) return;
      // MSCCL++ finds operations by position and channels by id, so it would mix them up in any other order.
      const uint32_t before = gpu.threadblocks[gpu.threadblocks.size() - 2].id;
      if (block.id > before) return;
      throw PlanError(item.path() + "/id", std::to_string(block.id) + " after the thread block with id " +
                                               std::to_string(before) + ", expected ascending ids");
    });
  }
  read_list(fields.at("channels"), gpu.channels,
            [&](ChannelRecord& record, const Node& item) { read_channel(plan, record, item); });
  read_list(fields.at("remote_buffers"), gpu.remote_buffers,
            [&](RemoteBuffer& buffer, const Node& item) { read_remote_buffer(plan, buffer, item); });
  if (const std::optional<Node> list = fields.find("semaphores")) {
    read_list(*list, gpu.semaphores, [](int64_t& value, const Node& item) {
      constexpr std::string_view known[] = {"init_value"};
      Fields keys(item);
      value = int64_t(keys.at("init_value").number(INT64_MAX));
      keys.none(known);
    });
  }
  gpu.extra = fields.rest(plan);
}

void read_contribution(Contribution& part, const Node& node) {
  if (node.items() != 2) node.refuse("a pair of rank and chunk");
  part.rank = node.item(0).number32();
  part.chunk = node.item(1).number();
}

void read_codec(Codec& codec, const Node& node) {
  static constexpr auto formats = [] {
    std::array<std::string_view, codec_format_count> all;
    for (size_t at = 0; at < all.size(); ++at) all[at] = codec_format_name(all_codec_formats[at]);
    return all;
  }();
  constexpr std::string_view known[] = {"format", "block", "scale"}, scales[] = {"f32"};
  Fields fields(node);
  codec.format = all_codec_formats[fields.at("format").choice(formats)];
  const Node block = fields.at("block");
  codec.block = block.number32();
  if (!codec.is_valid())
    block.refuse("a power of two from " + std::to_string(Codec::least_block) + " to " +
                 std::to_string(Codec::most_block));
  if (const std::optional<Node> scale = fields.find("scale")) scale->choice(scales);
  fields.none(known);
}

void read_extension(Plan& plan, const Node& node) {
  Extension& own = plan.extension;
  Fields fields(node);
  const Node number = fields.at("version");
  if (number.text() != version) number.refuse("the version \"" + std::string(version) + "\"");
  if (const std::optional<Node> list = fields.find("requires")) {
    read_list(*list, own.requirements, [](std::string& feature, const Node& item) {
      feature = known_requirements[item.choice(known_requirements)];
    });
  }
  if (const std::optional<Node> root = fields.find("root")) own.root = root->number32();
  if (const std::optional<Node> pair = fields.find("segments")) {
    if (pair->items() != 2) pair->refuse("a pair of input and output segments");
    own.input_segments = pair->item(0).number();
    own.output_segments = pair->item(1).number();
  }
  if (const std::optional<Node> ranks = fields.find("post")) {
    read_list(*ranks, own.post, [](auto& segments, const Node& rank) {
      read_list(rank, segments,
                [](auto& parts, const Node& segment) { read_list(segment, parts, read_contribution); });
    });
  }
  if (const std::optional<Node> bounded = fields.find("bounded_proof"))
    own.bounded_proof = bounded->boolean();
  if (const std::optional<Node> list = fields.find("codecs")) {
    if (list->items() > most_codecs) list->refuse("at most " + std::to_string(most_codecs) + " codecs");
    read_list(*list, own.codecs, read_codec);
  }
  if (const std::optional<Node> lines = fields.find("source"))
    read_list(*lines, plan.source, [](SourceLine& line, const Node& item) { line = source_line(item); });
  if (const std::optional<Node> kept = fields.find("verified")) dump(own.verified, kept->value);
  if (const std::optional<Node> schedule = fields.find("host"))
    own.schedule = std::make_shared<schedule::Schedule>(schedule::read_schedule(*schedule));
  own.extra = fields.rest(plan);
}

/// Returns the keys that an object lacks, such as "a" and "b"; "" if it has them all.
std::string lacking(const Value& object, std::span<const std::string_view> keys) {
  std::string list;
  for (const std::string_view key : keys) {
    if (!object.find(key)) list += (list.empty() ? "\"" : ", \"") + std::string(key) + "\"";
  }
  return list;
}

/// Recognises plans for MSCCL++ before August 2025, whose gpus have "inputChunks". Other plans may just lack
/// a key.
/// \throws PlanError if the plan is such an older one
void refuse_older(const Node& plan) {
  constexpr std::string_view of_plans[] = {"name", "collective", "protocol", "inplace"};
  constexpr std::string_view of_gpus[] = {"input_chunks", "output_chunks", "scratch_chunks",
                                          "remote_buffers"};
  if (plan.value.kind != Value::Kind::object) return;
  const Value* const gpus = plan.value.find("gpus");
  if (!gpus || gpus->kind != Value::Kind::array || gpus->items.empty()) return;
  const Value& gpu = gpus->items[0];
  if (gpu.kind != Value::Kind::object || !gpu.find("inputChunks") || gpu.find("input_chunks")) return;
  const std::string top = lacking(plan.value, of_plans);
  throw PlanError(
      "/gpus/0",
      "\"inputChunks\" is a key of an older format, of MSCCL++ before August 2025, which is not read: " +
          (top.empty() ? "" : "the plan lacks " + top + ", ") + "its gpus lack " + lacking(gpu, of_gpus) +
          ", and its operations name buffers by \"i_buff\" and \"o_buff\"\n" +
          "help: make the plan anew with today's mscclpp.language, from the program that made it");
}

void read_plan(Plan& plan, const Node& node) {
  constexpr std::string_view protocols[] = {"Simple", "LL"};
  refuse_older(node);
  Fields fields(node);
  // The extension is read first, because operations refer to its table of lines.
  if (const std::optional<Node> extension = fields.find("chorale")) read_extension(plan, *extension);
  plan.name = fields.at("name").text();
  plan.collective = fields.at("collective").text();
  plan.protocol = Protocol(fields.at("protocol").choice(protocols));
  plan.inplace = fields.at("inplace").boolean();
  const auto boolean = [&](std::string_view key, bool& out) {
    if (const std::optional<Node> value = fields.find(key)) out = value->boolean();
  };
  const auto number = [&](std::string_view key, uint64_t& out) {
    if (const std::optional<Node> value = fields.find(key)) out = value->number();
  };
  boolean("reuse_resources", plan.reuse_resources);
  boolean("use_double_scratch_buffer", plan.use_double_scratch_buffer);
  number("num_threads_per_block", plan.threads_per_block);
  number("buffer_alignment", plan.buffer_alignment);
  number("min_message_size", plan.min_message_size);
  number("max_message_size", plan.max_message_size);
  const Node gpus = fields.at("gpus");
  read_list(gpus, plan.gpus, [&](Gpu& gpu, const Node& item) { read_gpu(plan, gpu, item); });
  plan.extra = fields.rest(plan);
}

}  // namespace
}  // namespace json

namespace {

Plan read(std::string_view bytes, std::optional<uint32_t> rank) {
  const bool binary = json::cbor::recognised(bytes);
  const json::Value tree = binary ? json::cbor::parse(bytes, rank) : json::parse(bytes);
  Plan plan;
  plan.only_rank = rank;
  json::read_plan(plan, json::Node{.value = tree, .up = nullptr, .key = {}, .index = 0});
  if (!rank) return plan;
  if (*rank >= plan.ranks())
    throw PlanError("/gpus", "the list has " + std::to_string(plan.ranks()) +
                                 " ranks, and none of them has id " + std::to_string(*rank));
  plan.digest = std::hash<std::string_view>{}(bytes);
  return plan;
}

Plan load(const std::string& path, std::optional<uint32_t> rank) {
  try {
    return read(path == "-" ? read_standard_input() : read_file(path), rank);
  } catch (const PlanError& error) {
    throw PlanError(path == "-" ? "standard input" : path, error);
  }
}

}  // namespace

Plan read(std::string_view bytes) { return read(bytes, std::nullopt); }
Plan read(std::string_view bytes, uint32_t rank) { return read(bytes, std::optional(rank)); }
Plan load(const std::string& path) { return load(path, std::nullopt); }
Plan load(const std::string& path, uint32_t rank) { return load(path, std::optional(rank)); }

}  // namespace chorale
