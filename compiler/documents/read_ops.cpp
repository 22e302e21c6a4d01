// This file reads operations. The roles of an operation say which keys it may and must have.

#include "chorale/did_you_mean.hpp"
#include "chorale/json.hpp"
#include "compiler/json/reader.hpp"
#include "compiler/plan/roles.hpp"

namespace chorale::json {
namespace {

Opcode opcode(const Node& node) {
  const std::string& word = node.text();
  const int code = find_opcode(word);
  if (code >= 0 && info(Opcode(code)).mnemonic == word) return Opcode(code);
  if (code >= 0) node.refuse("the mnemonic '" + std::string(info(Opcode(code)).mnemonic) + "'");
  std::vector<std::string_view> known;
  for (const OpInfo& row : op_table()) known.push_back(row.mnemonic);
  node.refuse("an operation" + (word.size() < 60 ? did_you_mean(word, known) : ""));
}

/// Reads the operations of one thread block.
class OpReader {
 public:
  OpReader(Plan& plan, ThreadBlock& block, uint32_t rank) : plan_(plan), block_(block), rank_(rank) {}

  void list(const Node& node) {
    const size_t count = node.items();
    for (size_t position = 0; position < count; ++position) one(node.item(position));
  }

 private:
  void one(const Node& node) {
    Fields fields(node);
    Op op;
    op.code = opcode(fields.at("name"));
    const Shape& row = shape(op.code);
    foreign(fields, node, op, row);
    op.first_operand = uint32_t(block_.operands.size());
    if (row.has(Role::SwitchRead) && !fields.has("src_buff") && fields.has("buffer_offset")) {
      op.sources = op.destinations = switch_region(fields, node);
    } else {
      if (!row.sources.empty()) op.sources = operands(fields, row, false);
      if (!row.dests.empty()) op.destinations = operands(fields, row, true);
    }
    attributes(fields, op, row);
    const size_t position = block_.ops.size();
    block_.ops.push_back(op);
    if (row.has(Role::Loop)) list(fields.at("ops"));
    block_.ops[position].body = uint32_t(block_.ops.size() - position - 1);
    block_.ops[position].extra = fields.rest(plan_);
  }

  uint16_t operands(Fields& fields, const Shape& row, bool in_dst) {
    const Node list = fields.at(in_dst ? "dst_buff" : "src_buff");
    const bool with_rank = !in_dst && row.has_any(switched_roles);
    const size_t count = list.items();
    if (count > max_list) list.refuse("at most " + std::to_string(max_list) + " elements");
    for (size_t position = 0; position < count; ++position) {
      block_.operands.push_back(operand(list.item(position), row.field(in_dst, position)->role, with_rank));
    }
    return uint16_t(count);
  }

  Operand operand(const Node& node, Role role, bool with_rank) {
    Fields fields(node);
    Operand operand;
    if (is_remote(role)) {
      operand.ref = fields.at("buffer_id").number32();
    } else if (is_switched(role)) {
      operand.ref = fields.at("switch_channel_id").number32();
    } else {
      operand.ref = uint32_t(buffer_kind(fields.at("type")));
      if (with_rank) {
        // Another rank here would mean something that the operation does not do.
        const std::optional<Node> rank = fields.find("rank");
        if (rank && rank->number() != rank_)
          rank->refuse(std::to_string(rank_) + ", the rank that runs the operation");
      }
    }
    operand.index = fields.at("index").number();
    operand.size = fields.at("size").number();
    // Without a table of codecs, "codec" is not our key.
    if (!plan_.extension.codecs.empty()) {
      if (const std::optional<Node> codec = fields.find("codec"))
        operand.codec = uint32_t(codec->number(plan_.extension.codecs.size() - 1)) + 1;
    }
    const uint32_t extra = fields.rest(plan_);
    if (extra > most_operand_extra) node.refuse("fewer objects with unknown keys in the plan");
    operand.extra = extra;
    return operand;
  }

  /// Reads a switch reduction in the form that MSCCL++ writes when it could not join it with a broadcast.
  /// This form has no operand lists.
  uint16_t switch_region(Fields& fields, const Node& op) {
    const Node channels = fields.at("channel_ids");
    if (channels.items() != 1) channels.refuse("one switch channel");
    buffer_kind(fields.at("buffer_type"));  // the channel's buffer
    block_.operands.push_back(
        {fields.at("buffer_offset").number(), fields.at("size").number(), channels.item(0).number32()});
    const Node chunk = fields.at("dst_chunk");
    if (chunk.value.kind != Value::Kind::object) op.refuse("\"dst_chunk\" to be an object");
    block_.operands.push_back(operand(chunk, Role::Write, true));
    return 1;
  }

  void ids(Fields& fields, Op& op, const Shape& row) {
    op.first_id = uint32_t(block_.ids.size());
    const auto take = [&](const Node& list) {
      const size_t count = list.items();
      if (count > max_list) list.refuse("at most " + std::to_string(max_list) + " elements");
      for (size_t position = 0; position < count; ++position)
        block_.ids.push_back(list.item(position).number32());
    };
    switch (id_kind(row, op.via)) {
      case IdKind::none:
        break;
      case IdKind::channel:
        take(fields.at("channel_ids"));
        break;
      case IdKind::semaphore:
        take(fields.at("semaphore_ids"));
        break;
      case IdKind::barrier:
        block_.ids.push_back(fields.at("barrier_id").number32());
        op.participants = fields.at("num_threadblocks").number16();
    }
    op.ids = uint16_t(block_.ids.size() - op.first_id);
  }

  void attributes(Fields& fields, Op& op, const Shape& row) {
    if (row.has(Role::Via)) {
      if (const std::optional<Node> type = fields.find("channel_type")) op.via = channel_type(*type);
    }
    ids(fields, op, row);
    if (row.has(Role::Sliced)) {
      if (const std::optional<Node> group = fields.find("tbg_info")) {
        constexpr std::string_view known[] = {"tb_id", "tbg_size"};
        Fields slice(*group);
        op.group_index = slice.at("tb_id").number16();
        const Node size = slice.at("tbg_size");
        op.group_size = size.number16();
        if (!op.group_size) size.refuse("at least 1");
        slice.none(known);
      }
    }
    if (row.has(Role::Reduce)) {
      if (const std::optional<Node> reduce = fields.find("reduce_op"))
        op.reduce_op = ReduceOp(reduce->choice(reduce_op_names));
    }
    if (row.has(Role::Loop)) {
      constexpr std::string_view known[] = {"unit_size", "num_chunks"};
      const Node context = fields.at("iter_context");
      Fields loop(context);
      op.unit_bytes = loop.at("unit_size").number32();
      op.chunks = loop.at("num_chunks").number32();
      loop.none(known);
    }
    // Without a table of lines, "at" is not our key.
    if (!plan_.source.empty()) {
      if (const std::optional<Node> at = fields.find("at"))
        op.at = uint32_t(at->number(plan_.source.size() - 1)) + 1;
    }
  }

  /// Refuses keys that the operation cannot have, if ignoring them would change what the plan does.
  void foreign(Fields& fields, const Node& node, const Op& op, const Shape& row) {
    const auto refuse = [&](std::string_view key) {
      if (!fields.has(key)) return;
      node.refuse("no \"" + std::string(key) + "\", which '" + std::string(info(op.code).mnemonic) +
                  "' does not take");
    };
    const auto filled = [&](std::string_view key) {
      const Value* list = node.value.find(key);
      return list && !(list->kind == Value::Kind::array && list->items.empty());
    };
    const IdKind kind = id_kind(row, op.via);
    if (row.sources.empty() && filled("src_buff")) refuse("src_buff");
    if (row.dests.empty() && filled("dst_buff")) refuse("dst_buff");
    if (kind != IdKind::semaphore) refuse("semaphore_ids");
    if (kind != IdKind::barrier) refuse("barrier_id");
    if (!row.has(Role::Sliced)) refuse("tbg_info");
    if (!row.has(Role::Loop)) refuse("iter_context");
    if (!row.has(Role::Loop)) refuse("ops");
  }

  Plan& plan_;
  ThreadBlock& block_;
  uint32_t rank_;
};

}  // namespace

void read_ops(const Node& list, Plan& plan, ThreadBlock& block, uint32_t rank) {
  OpReader(plan, block, rank).list(list);
}

}  // namespace chorale::json
