// This file reads a host schedule. The fields of an operation say what it may and must carry. Unknown keys
// are refused, because nobody can run a schedule without understanding all of it.

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "chorale/did_you_mean.hpp"
#include "chorale/host/names.hpp"
#include "chorale/json.hpp"
#include "json.hpp"

namespace chorale::host {
namespace {

using json::Fields;
using json::Node;
using Kind = json::Value::Kind;

class Reader {
 public:
  explicit Reader(Schedule& schedule) : s_(schedule) {}
  void whole(const Node&);

 private:
  Expr expr(const Node&);
  std::string word(const Node&) const;
  uint32_t position(const Node&, const std::vector<std::string_view>& names, const char* what) const;
  uint32_t tensor(const Node&) const;
  uint32_t at(Fields&) const;
  View view(const Node&);
  std::vector<View> views(const Node&);
  Lane lane(const Node&);
  std::vector<Lane> lanes(const Node&);
  Transfer transfer(const Node&, Fields&, bool is_send);
  void transfers(const Node&, std::vector<Transfer>&);
  void token(const Node&, Op&);
  void field(Field, Fields&, Op&);
  void ops(const Node&, std::vector<Op>&);
  void params(const Node&);
  void tensors(const Node&);
  void functions(const Node&);
  void flags(const Node&);

  Schedule& s_;
};

int64_t integer(const Node& node) {
  const json::Value& value = node.value;
  if (value.kind == Kind::other_number) {
    int64_t number = 0;
    const char* const end = value.text.data() + value.text.size();
    const auto [stop, error] = std::from_chars(value.text.data(), end, number);
    if (error == std::errc() && stop == end) return number;
    node.refuse("a 64-bit whole number");
  }
  return int64_t(node.number(INT64_MAX));
}

std::string Reader::word(const Node& node) const {
  const std::string& name = node.text();
  if (!is_word(name)) node.refuse(std::string(a_word));
  return name;
}

Expr Reader::expr(const Node& node) {
  if (node.value.kind == Kind::string) return s_.exprs.symbol(word(node));
  if (node.value.kind != Kind::array) {
    if (node.value.kind != Kind::number && node.value.kind != Kind::other_number)
      node.refuse("an expression: a whole number, a name, or [operator, left, right]");
    return s_.exprs.constant(integer(node));
  }
  if (node.items() != 3) node.refuse("[operator, left, right]");
  static constexpr std::string_view words[] = {
#define CHORALE_EXPR(name, mnemonic) mnemonic,
#include "chorale/host/exprs.def"
  };
  const auto kind = ExprKind(size_t(ExprKind::symbol) + 1 + node.item(0).choice(words));
  const Expr left = expr(node.item(1));
  return s_.exprs.binary(kind, left, expr(node.item(2)));
}

uint32_t Reader::position(const Node& node, const std::vector<std::string_view>& names,
                          const char* what) const {
  const std::string& name = node.text();
  const auto known = std::find(names.begin(), names.end(), name);
  if (known == names.end())
    node.refuse("the name of a " + std::string(what) + (name.size() < 60 ? did_you_mean(name, names) : ""));
  return uint32_t(known - names.begin());
}

template <class List>
std::vector<std::string_view> names_of(const List& list) {
  std::vector<std::string_view> names;
  for (const auto& one : list) names.push_back(one.name);
  return names;
}

void unique(const Node& name, const std::vector<std::string_view>& known, const char* what) {
  if (std::find(known.begin(), known.end(), name.text()) != known.end())
    name.refuse("a name that no other " + std::string(what) + " has");
}

uint32_t Reader::tensor(const Node& node) const { return position(node, names_of(s_.tensors), "tensor"); }

uint32_t Reader::at(Fields& fields) const {
  const std::optional<Node> line = fields.find("at");
  if (!line) return 0;
  if (s_.source.empty()) line->refuse("no line: there is no \"source\"");
  return uint32_t(line->number(s_.source.size() - 1)) + 1;
}

View Reader::view(const Node& node) {
  if (node.items() == 0) node.refuse("[tensor, [axis, index] or [axis, first, length] ...]");
  View view;
  view.tensor = tensor(node.item(0));
  const size_t axes = s_.tensors[view.tensor].axes.size();
  for (size_t k = 1; k < node.items(); ++k) {
    const Node item = node.item(k);
    if (item.items() != 2 && item.items() != 3) item.refuse("[axis, index] or [axis, first, length]");
    Select select;
    if (axes == 0) item.refuse("none: the tensor has no axes");
    select.axis = uint8_t(item.item(0).number(axes - 1));
    if (!view.selects.empty() && view.selects.back().axis >= select.axis)
      item.refuse("axes in ascending order");
    select.lo = expr(item.item(1));
    if (item.items() == 3) select.len = expr(item.item(2));
    view.selects.push_back(select);
  }
  return view;
}

std::vector<View> Reader::views(const Node& node) {
  std::vector<View> list;
  for (size_t k = 0; k < node.items(); ++k) list.push_back(view(node.item(k)));
  return list;
}

Lane Reader::lane(const Node& node) {
  if (node.value.kind == Kind::array) {
    if (node.items() != 2 || node.item(0).text() != "pool") node.refuse("[\"pool\", index]");
    return {.kind = Lane::Kind::pool, .index = expr(node.item(1)), .name = 0};
  }
  if (node.text() == "main") return {};
  return {.kind = Lane::Kind::named,
          .index = {},
          .name = position(node, {s_.lanes.begin(), s_.lanes.end()}, "lane")};
}

std::vector<Lane> Reader::lanes(const Node& node) {
  std::vector<Lane> list;
  for (size_t k = 0; k < node.items(); ++k) list.push_back(lane(node.item(k)));
  return list;
}

Transfer Reader::transfer(const Node&, Fields& fields, bool is_send) {
  Transfer one;
  one.is_send = is_send;
  one.view = view(fields.at(is_send ? "src" : "dst"));
  one.peer = expr(fields.at("peer"));
  if (const std::optional<Node> tag = fields.find("tag")) one.tag = uint32_t(tag->number(most_tag));
  if (const std::optional<Node> via = fields.find("via")) one.mover = Mover(via->choice(mover_names));
  return one;
}

void Reader::transfers(const Node& list, std::vector<Transfer>& out) {
  constexpr std::string_view words[] = {"send", "recv"};
  constexpr std::string_view known[] = {"op", "src", "dst", "peer", "tag", "via", "at"};
  for (size_t k = 0; k < list.items(); ++k) {
    const Node node = list.item(k);
    Fields fields(node);
    const bool is_send = fields.at("op").choice(words) == 0;
    out.push_back(transfer(node, fields, is_send));
    out.back().at = at(fields);
    fields.none(known);
  }
}

void Reader::token(const Node& node, Op& op) {
  if (node.value.kind != Kind::array) {
    op.token = node.number32();
    return;
  }
  if (node.items() != 2) node.refuse("a number or [number, index]");
  op.token = node.item(0).number32();
  op.index = expr(node.item(1));
}

void Reader::field(Field field, Fields& fields, Op& op) {
  const bool is_transfer = op.kind == OpKind::send || op.kind == OpKind::recv;
  const std::string_view key = field_keys[size_t(field)];
  const auto optional = [&](auto&& read) {
    if (const std::optional<Node> node = fields.find(key)) read(*node);
  };
  switch (field) {
    case Field::Lane:
      return optional([&](const Node& node) { op.lane = lane(node); });
    case Field::Tensor:
      op.writes.push_back({tensor(fields.at(key)), {}});
      return;
    case Field::Dst:
      if (!is_transfer) op.writes.push_back(view(fields.at(key)));
      return;
    case Field::Src:
      if (!is_transfer) op.reads.push_back(view(fields.at(key)));
      return;
    case Field::Writes:
      op.writes = views(fields.at(key));
      return;
    case Field::Reads:
      op.reads = views(fields.at(key));
      return;
    case Field::Peer:
      if (is_transfer) return;
      op.peer = expr(fields.at(key));
      return;
    case Field::Tag:
    case Field::Via:
      return;  // read with the view and the peer of the transfer
    case Field::Transfers:
      return transfers(fields.at(key), op.transfers);
    case Field::Token:
      return token(fields.at(key), op);
    case Field::Collective:
      op.name = collective_names[fields.at(key).choice(collective_names)];
      return;
    case Field::Root:
      return optional([&](const Node& node) { op.peer = expr(node); });
    case Field::Reduce:
      return optional([&](const Node& node) { op.reduce = ReduceOp(node.choice(reduce_op_names)); });
    case Field::Plan:
    case Field::Text:
      op.name = fields.at(key).text();
      return;
    case Field::Function:
    case Field::Variable:
      op.name = word(fields.at(key));
      return;
    case Field::Attributes:
      return optional([&](const Node& node) {
        const Fields object(node);  // refuses anything but an object
        for (size_t k = 0; k < node.value.keys.size(); ++k)
          op.attributes[node.value.keys[k]] = expr(Node{node.value.items[k], &node, node.value.keys[k]});
      });
    case Field::Value:
    case Field::Predicate:
      op.value = expr(fields.at(key));
      return;
    case Field::On:
    case Field::Lanes:
      op.lanes = lanes(fields.at(key));
      return;
    case Field::Lo:
      op.lo = expr(fields.at(key));
      return;
    case Field::Hi:
      op.hi = expr(fields.at(key));
      return;
    case Field::Body:
    case Field::Then:
      return ops(fields.at(key), op.body);
    case Field::Else:
      return optional([&](const Node& node) { ops(node, op.orelse); });
    case Field::Flag:
      op.flag = position(fields.at(key), names_of(s_.flags), "flag");
      return;
    case Field::Index:
      return optional([&](const Node& node) { op.index = expr(node); });
  }
}

void Reader::ops(const Node& list, std::vector<Op>& out) {
  std::vector<std::string_view> words;
  for (const OpInfo& row : op_table()) words.push_back(row.name);
  for (size_t k = 0; k < list.items(); ++k) {
    const Node node = list.item(k);
    Fields fields(node);
    Op& op = out.emplace_back();
    op.kind = OpKind(fields.at("op").choice(words));
    const OpInfo& row = info(op.kind);
    std::vector<std::string_view> known = {"op"};
    for (const Field one : row.fields) known.push_back(field_keys[size_t(one)]);
    known.push_back("at");
    if (op.kind == OpKind::send || op.kind == OpKind::recv)
      op.transfers.push_back(transfer(node, fields, op.kind == OpKind::send));
    for (const Field one : row.fields) field(one, fields, op);
    op.at = at(fields);
    for (Transfer& one : op.transfers)
      if (!one.at) one.at = op.at;
    fields.none(known);
  }
}

void Reader::params(const Node& node) {
  const Fields object(node);
  for (size_t k = 0; k < node.value.keys.size(); ++k) {
    const Node value{node.value.items[k], &node, node.value.keys[k]};
    Param& param = s_.params.emplace_back();
    param.name = node.value.keys[k];
    if (!is_word(param.name)) node.refuse("parameters with " + std::string(a_word));
    if (is_own_symbol(param.name))
      node.refuse("parameters with names other than " + param.name +
                  ", which is what expressions call one of their own");
    if (value.value.kind != Kind::null) param.value = integer(value);
  }
}

void Reader::tensors(const Node& list) {
  static constexpr std::string_view known[] = {"name", "dtype", "shape", "tags",
                                               "role", "space", "zero",  "at"};
  static constexpr std::string_view tags[] = {"ranks", "lanes"};
  std::vector<std::string_view> dtypes;
  for (const DType type : all_dtypes) dtypes.push_back(dtype_name(type));
  for (size_t k = 0; k < list.items(); ++k) {
    const Node node = list.item(k);
    Fields fields(node);
    Tensor tensor;
    const Node name = fields.at("name");
    tensor.name = word(name);
    unique(name, names_of(s_.tensors), "tensor");
    tensor.dtype = all_dtypes[fields.at("dtype").choice(dtypes)];
    const Node shape = fields.at("shape");
    if (shape.items() > 16) shape.refuse("at most 16 axes");
    for (size_t axis = 0; axis < shape.items(); ++axis)
      tensor.axes.push_back({expr(shape.item(axis)), Tag::whole});
    if (const std::optional<Node> words = fields.find("tags")) {
      if (words->items() != tensor.axes.size())
        words->refuse(std::to_string(tensor.axes.size()) + " tags, one for each axis");
      for (size_t axis = 0; axis < words->items(); ++axis) {
        const Node tag = words->item(axis);
        if (tag.value.kind != Kind::null) tensor.axes[axis].tag = Tag(1 + tag.choice(tags));
      }
    }
    tensor.role = Role(fields.at("role").choice(role_names));
    if (const std::optional<Node> space = fields.find("space"))
      tensor.space = Space(space->choice(space_names));
    if (const std::optional<Node> zero = fields.find("zero")) tensor.zero = zero->boolean();
    tensor.at = at(fields);
    fields.none(known);
    s_.tensors.push_back(std::move(tensor));
  }
}

void Reader::functions(const Node& list) {
  constexpr std::string_view known[] = {"name", "writes", "reads"};
  for (size_t k = 0; k < list.items(); ++k) {
    const Node node = list.item(k);
    Fields fields(node);
    const Node name = fields.at("name");
    unique(name, names_of(s_.functions), "function");
    s_.functions.push_back({word(name), fields.at("writes").number32(), fields.at("reads").number32()});
    fields.none(known);
  }
}

void Reader::flags(const Node& list) {
  constexpr std::string_view known[] = {"name", "kind", "at"};
  for (size_t k = 0; k < list.items(); ++k) {
    const Node node = list.item(k);
    Fields fields(node);
    const Node name = fields.at("name");
    unique(name, names_of(s_.flags), "flag");
    Flag flag{.name = word(name), .kind = Flag::Kind::binary, .at = 0};
    if (const std::optional<Node> kind = fields.find("kind"))
      flag.kind = Flag::Kind(kind->choice(flag_kind_names));
    flag.at = at(fields);
    fields.none(known);
    s_.flags.push_back(std::move(flag));
  }
}

void Reader::whole(const Node& node) {
  constexpr std::string_view known[] = {"ranks",   "params",    "lanes",  "pool", "made_with", "flags",
                                        "tensors", "functions", "layout", "body", "source"};
  Fields fields(node);
  const auto optional = [&](std::string_view key, auto&& read) {
    if (const std::optional<Node> found = fields.find(key)) read(*found);
  };
  // The parts that others name come first.
  optional("source", [&](const Node& list) {
    for (size_t k = 0; k < list.items(); ++k) s_.source.push_back(json::source_line(list.item(k)));
  });
  optional("ranks", [&](const Node& found) {
    for (size_t k = 0; k < found.items(); ++k) {
      const Node ranks = found.item(k);
      if (ranks.number(most_ranks) == 0) ranks.refuse("1 to " + std::to_string(most_ranks) + " ranks");
      if (std::find(s_.ranks.begin(), s_.ranks.end(), ranks.number32()) != s_.ranks.end())
        ranks.refuse("each number of ranks once");
      s_.ranks.push_back(ranks.number32());
    }
  });
  optional("params", [&](const Node& found) { params(found); });
  optional("lanes", [&](const Node& list) {
    for (size_t k = 0; k < list.items(); ++k) {
      const Node name = list.item(k);
      if (is_own_lane(name.text())) name.refuse("a name other than main and pool");
      unique(name, {s_.lanes.begin(), s_.lanes.end()}, "lane");
      s_.lanes.push_back(word(name));
    }
  });
  optional("pool", [&](const Node& found) { s_.pool = expr(found); });
  optional("made_with", [&](const Node& found) {
    const Fields object(found);
    for (size_t k = 0; k < found.value.keys.size(); ++k)
      s_.made_with[found.value.keys[k]] = Node{found.value.items[k], &found, found.value.keys[k]}.text();
  });
  optional("flags", [&](const Node& found) { flags(found); });
  tensors(fields.at("tensors"));
  optional("functions", [&](const Node& found) { functions(found); });
  optional("layout", [&](const Node& found) { ops(found, s_.layout); });
  ops(fields.at("body"), s_.body);
  fields.none(known);
}

}  // namespace

Schedule read_schedule(const Node& node) {
  Schedule schedule;
  Reader(schedule).whole(node);
  return schedule;
}

}  // namespace chorale::host
