#pragma once
/// \file
/// These codecs are for operations and the other parts of a host schedule. codecs.hpp says what a codec is.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codecs.hpp"

namespace chorale::schedule::codec {

struct Allocated : NameOf<&Schedule::tensors> {
  static std::string text(Dump& to, uint32_t tensor) { return allocation(to, to.schedule.tensors[tensor]); }
};

/// Dumps the results of a layout's operation. For a temporary, this also says what it is, because nothing
/// else does.
struct Results : ListOf<OneView> {
  static std::string text(Dump& to, const std::vector<View>& views) {
    const Tensor* const only = views.size() == 1 ? &to.schedule.tensors[views[0].tensor] : nullptr;
    return only && only->role == Role::temp ? declaration(to, *only) : ListOf::text(to, views);
  }
};

// Operations

struct Operation {
  static void read(Schedule& s, const Node& node, Op& op) {
    std::vector<std::string_view> words;
    for (const OpInfo& info : op_table()) words.push_back(info.name);
    Fields fields(node);
    op.kind = OpKind(fields.at("op").choice(words));
    read(s, fields, rows(op.kind), op);
  }
  static void read(Schedule& s, Fields& fields, std::span<const Row<Op>> rows, Op& op) {
    read_rows(s, fields, rows, op);
    for (Transfer& one : op.transfers)
      if (!one.at) one.at = op.at;
    refuse_others(fields, rows, {"op"});
  }
  static std::string json(const Writer& to, const Op& op) {
    return fmt::format("{{\"op\":\"{}\"{}}}", info(op.kind).name, write_rows(to, rows(op.kind), op, ",\""));
  }
};

/// Writes a body after the author's line, which would otherwise stand far from its operation.
struct Body : LinesOf<Operation> {
  static std::string text(Dump& to, const std::vector<Op>& ops) {
    ++to.indent;
    to.operations(ops);
    --to.indent;
    return {};
  }
};

struct ElseBody : Body {
  static std::string text(Dump& to, const std::vector<Op>& ops) {
    if (!ops.empty()) to.line("ELSE:");
    return Body::text(to, ops);
  }
};

/// Dumps the body of a loop. A turn begins on the stream on which the turn before it ended.
struct LoopBody : Body {
  static std::string text(Dump& to, const std::vector<Op>& ops) {
    to.stream.clear();
    Body::text(to, ops);
    to.stream.clear();
    return {};
  }
};

/// Reads the view of a transfer, and records that it is a send.
struct SentView {
  static void read(Schedule& s, const Node& node, Transfer& transfer) {
    transfer.is_send = true;
    OneView::read(s, node, transfer.view);
  }
  static std::string json(const Writer& to, const Transfer& one) { return OneView::json(to, one.view); }
  static std::string text(Dump& to, const Transfer& one) { return OneView::text(to, one.view); }
};

/// Reads the transfers of a group. They are operations `send` and `recv` without a stream.
struct Transfers {
  static void read(Schedule& s, const Node& list, Op& group) {
    for (size_t k = 0; k < list.items(); ++k) {
      constexpr std::string_view words[] = {"send", "recv"};
      const Node node = list.item(k);
      Fields fields(node);
      Op op;
      op.kind = fields.at("op").choice(words) == 0 ? OpKind::send : OpKind::recv;
      Operation::read(s, fields, rows(op.kind).subspan(1), op);
      group.transfers.push_back(op.transfers[0]);
    }
  }
  static std::string json(const Writer& to, const Op& group) {
    return ListOf<Operation>::json(to, operations(group));
  }
  static std::string text(Dump& to, const Op& group) {
    std::vector<std::string> lines;
    for (const Op& op : operations(group)) lines.push_back(to.filled(info(op.kind).text, op));
    to.line("GroupBegin");
    for (const std::string& line : lines) to.line("  " + line);
    return {};
  }

 private:
  static std::vector<Op> operations(const Op& group) {
    std::vector<Op> ops;
    for (const Transfer& one : group.transfers) {
      Op& op = ops.emplace_back();
      op.kind = one.is_send ? OpKind::send : OpKind::recv;
      op.transfers = {one};
      op.at = one.at == group.at ? 0 : one.at;
    }
    return ops;
  }
};

/// Reads a token: its number, or [number, index] if each turn of a loop has one.
struct TakenToken {
  static void read(Schedule& s, const Node& node, Op& op) {
    const bool has_index = node.value.kind == Kind::array;
    if (has_index && node.items() != 2) node.refuse("a number or [number, index]");
    op.token = (has_index ? node.item(0) : node).number32();
    if (has_index) Number::read(s, node.item(1), op.index);
  }
  static std::string json(const Writer& to, const Op& op) {
    const std::string token = std::to_string(op.token);
    return op.index == Expr{} ? token : fmt::format("[{},{}]", token, Number::json(to, op.index));
  }
  static std::string text(Dump& to, const Op& op) {
    const auto known = to.tokens.find(op.token);
    const std::string number = fmt::format("#{}", known == to.tokens.end() ? op.token : known->second);
    return op.index == Expr{} ? number : fmt::format("{}[{}]", number, Number::text(to, op.index));
  }
};

struct MadeToken : TakenToken {
  static std::string text(Dump& to, const Op& op) {
    to.tokens[op.token] = ++to.numbers;
    return TakenToken::text(to, op);
  }
};

// Parts of the schedule

struct Extents {
  static void read(Schedule& s, const Node& node, std::vector<Axis>& axes) {
    if (node.items() > 16) node.refuse("at most 16 axes");
    axes.resize(node.items());
    for (size_t axis = 0; axis < axes.size(); ++axis) Number::read(s, node.item(axis), axes[axis].extent);
  }
  static std::string json(const Writer& to, const std::vector<Axis>& axes) {
    return "[" + joined(",", axes, [&](const Axis& axis) { return Number::json(to, axis.extent); }) + "]";
  }
};

/// Reads how the axes are spread. An axis that is not spread has null.
struct Tags {
  static void read(Schedule&, const Node& node, std::vector<Axis>& axes) {
    constexpr std::string_view words[] = {"ranks", "lanes"};
    if (node.items() != axes.size()) node.refuse(fmt::format("{} tags, one for each axis", axes.size()));
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      const Node tag = node.item(axis);
      if (tag.value.kind != Kind::null) axes[axis].tag = Tag(1 + tag.choice(words));
    }
  }
  static std::string json(const Writer&, const std::vector<Axis>& axes) {
    const auto tag = [](const Axis& axis) {
      return axis.tag == Tag::whole ? "null" : in_quotes(tag_names[size_t(axis.tag)]);
    };
    return "[" + joined(",", axes, tag) + "]";
  }
  static bool left_out(const std::vector<Axis>& axes) {
    return std::all_of(axes.begin(), axes.end(), [](const Axis& axis) { return axis.tag == Tag::whole; });
  }
};

/// Reads the kind of a flag, which is always written.
struct FlagKind : Choice<flag_kind_names> {
  static bool left_out(Flag::Kind) { return false; }
};

/// Reads the parameters with their values, or null for a parameter without a value. They are always written.
struct Params {
  static void read(Schedule&, const Node& node, std::vector<Param>& params) {
    const Fields object(node);
    for (size_t k = 0; k < node.value.keys.size(); ++k) {
      const Node value{node.value.items[k], &node, node.value.keys[k]};
      Param& param = params.emplace_back();
      param.name = node.value.keys[k];
      if (!is_word(param.name)) node.refuse("parameters with " + std::string(a_word));
      if (is_own_symbol(param.name))
        node.refuse("parameters with names other than " + param.name +
                    ", but expressions use this name for one of their own values");
      if (value.value.kind != Kind::null) param.value = integer(value);
    }
  }
  static std::string json(const Writer&, const std::vector<Param>& params) {
    const auto pair = [](const Param& param) {
      return in_quotes(param.name) + ":" + (param.value ? std::to_string(*param.value) : "null");
    };
    return "{" + joined(",", params, pair) + "}";
  }
  static bool left_out(const std::vector<Param>&) { return false; }
};

/// Reads an object by its rows.
struct Record {
  template <class Of>
  static void read(Schedule& s, const Node& node, Of& of) {
    Fields fields(node);
    read_rows(s, fields, rows<Of>(), of);
    refuse_others(fields, rows<Of>(), {});
  }
  template <class Of>
  static std::string json(const Writer& to, const Of& of) {
    return "{" + write_rows(to, rows<Of>(), of, ",\"").substr(1) + "}";
  }
};

}  // namespace chorale::schedule::codec
