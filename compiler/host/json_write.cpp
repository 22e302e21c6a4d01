// This file writes a host schedule: keys in the order of the tables, one operation per line.

#include "compiler/json/json.hpp"
#include "json.hpp"

namespace chorale::host {
namespace {

using json::put;
using json::quote;

class Writer {
 public:
  Writer(std::string& out, const Schedule& schedule) : text_(out), s_(schedule) {}

  void whole(const std::string& indent);

 private:
  void expr(Expr);
  void view(const View&);
  void views(const std::vector<View>&);
  void lane(const Lane&);
  void lanes(const std::vector<Lane>&);
  void members(const Transfer&);
  void key(std::string_view name) { put(text_, ",\"", name, "\":"); }
  void at(uint32_t line) {
    if (line) put(text_, ",\"at\":", uint64_t(line - 1));
  }
  void body(const std::vector<Op>&, const std::string& indent);
  void field(Field, const Op&, const std::string& indent);
  void operation(const Op&, const std::string& indent);
  void tensor(const Tensor&);

  template <class List, class Each>
  void list(const List& items, Each&& each) {
    text_ += '[';
    const char* comma = "";
    for (const auto& item : items) {
      text_ += comma;
      comma = ",";
      each(item);
    }
    text_ += ']';
  }
  template <class List, class Each>
  void lines(std::string_view name, const List& items, const std::string& indent, Each&& each) {
    if (items.empty()) return;
    put(text_, ",\n", indent, "\"", name, "\": [");
    const char* comma = "\n";
    for (const auto& item : items) {
      put(text_, comma, indent, "  ");
      comma = ",\n";
      each(item);
    }
    put(text_, "\n", indent, "]");
  }

  std::string& text_;
  const Schedule& s_;
};

void Writer::expr(Expr expr) {
  const ExprNode& node = s_.exprs[expr];
  if (node.kind == ExprKind::constant) {
    text_ += std::to_string(node.value);
  } else if (node.kind == ExprKind::symbol) {
    quote(text_, s_.exprs.symbols()[size_t(node.value)]);
  } else {
    put(text_, "[\"", mnemonic(node.kind), "\",");
    this->expr(node.left);
    text_ += ',';
    this->expr(node.right);
    text_ += ']';
  }
}

void Writer::view(const View& view) {
  text_ += '[';
  quote(text_, s_.tensors[view.tensor].name);
  for (const Select& select : view.selects) {
    put(text_, ",[", uint64_t(select.axis), ",");
    expr(select.lo);
    if (select.len) {
      text_ += ',';
      expr(*select.len);
    }
    text_ += ']';
  }
  text_ += ']';
}

void Writer::views(const std::vector<View>& items) {
  list(items, [&](const View& one) { view(one); });
}

void Writer::lane(const Lane& lane) {
  switch (lane.kind) {
    case Lane::Kind::main:
      text_ += "\"main\"";
      return;
    case Lane::Kind::named:
      return quote(text_, s_.lanes[lane.name]);
    case Lane::Kind::pool:
      text_ += "[\"pool\",";
      expr(lane.index);
      text_ += ']';
  }
}

void Writer::lanes(const std::vector<Lane>& items) {
  list(items, [&](const Lane& one) { lane(one); });
}

/// Writes all of a transfer but its direction.
void Writer::members(const Transfer& one) {
  key(one.is_send ? "src" : "dst");
  view(one.view);
  key("peer");
  expr(one.peer);
  if (one.tag) key("tag"), json::append(text_, uint64_t(one.tag));
  if (one.mover != Mover::automatic) put(text_, ",\"via\":\"", mover_names[size_t(one.mover)], "\"");
}

void Writer::body(const std::vector<Op>& ops, const std::string& indent) {
  text_ += '[';
  const char* comma = "\n";
  for (const Op& op : ops) {
    put(text_, comma, indent, "  ");
    comma = ",\n";
    operation(op, indent + "  ");
  }
  if (!ops.empty()) put(text_, "\n", indent);
  text_ += ']';
}

void Writer::field(Field field, const Op& op, const std::string& indent) {
  const bool is_transfer = op.kind == OpKind::send || op.kind == OpKind::recv;
  const std::string_view name = field_keys[size_t(field)];
  const Expr zero{};
  const auto number = [&](Expr value, bool always) {
    if (!always && value == zero) return;
    key(name);
    expr(value);
  };
  switch (field) {
    case Field::Lane:
      if (op.lane == Lane{}) return;
      key(name);
      return lane(op.lane);
    case Field::Tensor:
      key(name);
      return quote(text_, s_.tensors[op.writes[0].tensor].name);
    case Field::Dst:
      if (is_transfer) return members(op.transfers[0]);
      key(name);
      return view(op.writes[0]);
    case Field::Src:
      if (is_transfer) return members(op.transfers[0]);
      key(name);
      return view(op.reads[0]);
    case Field::Writes:
      key(name);
      return views(op.writes);
    case Field::Reads:
      key(name);
      return views(op.reads);
    case Field::Peer:
      if (!is_transfer) number(op.peer, true);
      return;
    case Field::Tag:
    case Field::Via:
      return;  // written with the view
    case Field::Transfers:
      key(name);
      return list(op.transfers, [&](const Transfer& one) {
        put(text_, "{\"op\":\"", one.is_send ? "send" : "recv", "\"");
        members(one);
        if (one.at != op.at) at(one.at);
        text_ += '}';
      });
    case Field::Token:
      key(name);
      if (op.index == zero) return json::append(text_, uint64_t(op.token));
      put(text_, "[", uint64_t(op.token), ",");
      expr(op.index);
      text_ += ']';
      return;
    case Field::Root:
      return number(op.peer, false);
    case Field::Reduce:
      if (op.reduce != ReduceOp::sum)
        put(text_, ",\"reduce\":\"", std::string_view(reduce_op_name(op.reduce)), "\"");
      return;
    case Field::Collective:
    case Field::Plan:
    case Field::Function:
    case Field::Variable:
    case Field::Text:
      key(name);
      return quote(text_, op.name);
    case Field::Attributes: {
      if (op.attributes.empty()) return;
      key(name);
      const char* comma = "{";
      for (const auto& [word, value] : op.attributes) {
        text_ += comma;
        comma = ",";
        quote(text_, word);
        text_ += ':';
        expr(value);
      }
      text_ += '}';
      return;
    }
    case Field::Value:
    case Field::Predicate:
      return number(op.value, true);
    case Field::On:
    case Field::Lanes:
      key(name);
      return lanes(op.lanes);
    case Field::Lo:
      return number(op.lo, true);
    case Field::Hi:
      return number(op.hi, true);
    case Field::Body:
    case Field::Then:
      at(op.at);
      key(name);
      return body(op.body, indent);
    case Field::Else:
      if (op.orelse.empty()) return;
      key(name);
      return body(op.orelse, indent);
    case Field::Flag:
      key(name);
      return quote(text_, s_.flags[op.flag].name);
    case Field::Index:
      return number(op.index, false);
  }
}

void Writer::operation(const Op& op, const std::string& indent) {
  const OpInfo& row = info(op.kind);
  put(text_, "{\"op\":\"", row.name, "\"");
  for (const Field one : row.fields) field(one, op, indent);
  // A line after a long body would be far from its operation. It then stands in front of the body.
  if (!row.has(Field::Body) && !row.has(Field::Then)) at(op.at);
  text_ += '}';
}

void Writer::tensor(const Tensor& tensor) {
  put(text_, "{\"name\":\"", tensor.name, "\",\"dtype\":\"", std::string_view(dtype_name(tensor.dtype)),
      "\",\"shape\":");
  list(tensor.axes, [&](const Axis& axis) { expr(axis.extent); });
  bool tagged = false;
  for (const Axis& axis : tensor.axes) tagged |= axis.tag != Tag::whole;
  if (tagged) {
    key("tags");
    list(tensor.axes, [&](const Axis& axis) {
      axis.tag == Tag::whole ? put(text_, "null") : put(text_, "\"", tag_names[size_t(axis.tag)], "\"");
    });
  }
  put(text_, ",\"role\":\"", role_names[size_t(tensor.role)], "\"");
  if (tensor.space != Space::local) put(text_, ",\"space\":\"", space_names[size_t(tensor.space)], "\"");
  if (tensor.zero) put(text_, ",\"zero\":true");
  at(tensor.at);
  text_ += '}';
}

void Writer::whole(const std::string& indent) {
  const std::string inner = indent + "  ";
  put(text_, "{\n", inner, "\"params\": {");
  const char* comma = "";
  for (const Param& param : s_.params) {
    text_ += comma;
    comma = ",";
    quote(text_, param.name);
    put(text_, ":", param.value ? std::to_string(*param.value) : std::string("null"));
  }
  text_ += '}';
  const auto begin = [&](std::string_view name) { put(text_, ",\n", inner, "\"", name, "\": "); };
  if (!s_.ranks.empty()) {
    begin("ranks");
    list(s_.ranks, [&](uint32_t ranks) { json::append(text_, uint64_t(ranks)); });
  }
  if (!s_.lanes.empty()) {
    begin("lanes");
    list(s_.lanes, [&](const std::string& name) { quote(text_, name); });
  }
  if (s_.pool != Expr{}) {
    begin("pool");
    expr(s_.pool);
  }
  if (!s_.made_with.empty()) {
    begin("made_with");
    comma = "{";
    for (const auto& [word, value] : s_.made_with) {
      text_ += comma;
      comma = ",";
      quote(text_, word);
      text_ += ':';
      quote(text_, value);
    }
    text_ += '}';
  }
  lines("flags", s_.flags, inner, [&](const Flag& flag) {
    put(text_, "{\"name\":\"", flag.name, "\",\"kind\":\"", flag_kind_names[size_t(flag.kind)], "\"");
    at(flag.at);
    text_ += '}';
  });
  begin("tensors");
  put(text_, "[");
  comma = "\n";
  for (const Tensor& one : s_.tensors) {
    put(text_, comma, inner, "  ");
    comma = ",\n";
    tensor(one);
  }
  put(text_, s_.tensors.empty() ? "]" : "\n" + inner + "]");
  lines("functions", s_.functions, inner, [&](const Function& function) {
    put(text_, "{\"name\":\"", function.name, "\",\"writes\":", uint64_t(function.writes),
        ",\"reads\":", uint64_t(function.reads), "}");
  });
  if (!s_.layout.empty()) {
    begin("layout");
    body(s_.layout, inner);
  }
  begin("body");
  body(s_.body, inner);
  lines("source", s_.source, inner,
        [&](const SourceLine& line) { quote(text_, line.file + ":" + std::to_string(line.line)); });
  put(text_, "\n", indent, "}");
}

}  // namespace

void write_schedule(std::string& out, const Schedule& schedule, const std::string& indent) {
  Writer(out, schedule).whole(indent);
}

}  // namespace chorale::host
