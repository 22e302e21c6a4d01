#pragma once
/// \file
/// A codec reads, writes and dumps one kind of value of host schedules. The rows of members name their
/// codecs.
///
///   read(Schedule&, const Node&, T&)   reads a value, or refuses it; the schedule holds what came before
///   json(const Writer&, const T&)      returns the text that read() reads
///   text(Dump&, const T&)              returns the words of dumps, and may put lines before them
///   left_out(const T&)                 returns whether an optional value is not written
///
/// A codec without text() has values that no dump shows. Without left_out(), a value is left out while it is
/// the default.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "chorale/did_you_mean.hpp"
#include "chorale/schedule/collective.hpp"
#include "chorale/schedule/names.hpp"
#include "rows.hpp"

namespace chorale::schedule::codec {

using json::Fields;
using json::Node;
using Kind = json::Value::Kind;

inline std::string in_quotes(std::string_view text) {
  std::string out;
  json::quote(out, text);
  return out;
}

/// Returns the texts of elements, joined by `between`.
std::string joined(std::string_view between, const auto& list, auto&& text_of) {
  std::string all;
  for (const auto& one : list) all += std::string(all.empty() ? "" : between) + text_of(one);
  return all;
}

// Names

/// Reads any text. Dumps show it in quotes, on one line.
struct Text {
  static void read(Schedule&, const Node& node, std::string& text) { text = node.text(); }
  static std::string json(const Writer&, const std::string& text) { return in_quotes(text); }
  static std::string text(Dump&, const std::string& text) { return in_quotes(text); }
};

struct PlanName : Text {
  static std::string text(Dump&, const std::string& name) { return name; }
};

struct CollectiveName : PlanName {
  static void read(Schedule&, const Node& node, std::string& name) {
    name = collective_names[node.choice(collective_names)];
  }
};

/// Reads a word that may stand in expressions and dumps.
struct Word : PlanName {
  static void read(Schedule&, const Node& node, std::string& word) {
    if (!is_word(node.text())) node.refuse(std::string(a_word));
    word = node.text();
  }
};

/// Reads an enumerator by its word.
template <const auto& words>
struct Choice {
  template <class Enum>
  static void read(Schedule&, const Node& node, Enum& value) {
    value = Enum(node.choice(words));
  }
  static std::string json(const Writer&, auto value) { return in_quotes(words[size_t(value)]); }
  static std::string text(Dump&, auto value) { return std::string(words[size_t(value)]); }
};

/// Lists the words of element types, by DType.
inline constexpr std::string_view dtype_words[] = {
#define CHORALE_DTYPE(name, bytes) #name,
#include "chorale/types.def"
};

inline const std::string& name_of(const std::string& name) { return name; }
const std::string& name_of(const auto& named) { return named.name; }

std::vector<std::string_view> names_of(const auto& list) {
  std::vector<std::string_view> names;
  for (const auto& one : list) names.push_back(name_of(one));
  return names;
}

inline const char* noun(const std::vector<Tensor>&) { return "tensor"; }
inline const char* noun(const std::vector<Flag>&) { return "flag"; }
inline const char* noun(const std::vector<Function>&) { return "function"; }
inline const char* noun(const std::vector<std::string>&) { return "stream"; }

/// Reads the name of an element that is not in the list yet.
template <auto list>
struct NewName : Word {
  static void read(Schedule& s, const Node& node, std::string& name) {
    const std::vector<std::string_view> known = names_of(s.*list);
    if (std::find(known.begin(), known.end(), node.text()) != known.end())
      node.refuse(fmt::format("a name that no other {} has", noun(s.*list)));
    Word::read(s, node, name);
  }
};

struct NewStream : NewName<&Schedule::streams> {
  static void read(Schedule& s, const Node& node, std::string& name) {
    if (is_own_stream(node.text())) node.refuse("a name other than main and pool");
    NewName::read(s, node, name);
  }
};

/// Reads the name of a list's element and stores its position.
template <auto list>
struct NameOf {
  static void read(Schedule& s, const Node& node, uint32_t& position) {
    const std::string& name = node.text();
    const std::vector<std::string_view> names = names_of(s.*list);
    const auto known = std::find(names.begin(), names.end(), name);
    if (known == names.end())
      node.refuse(fmt::format("the name of a {}{}", noun(s.*list),
                              name.size() < 60 ? did_you_mean(name, names) : ""));
    position = uint32_t(known - names.begin());
  }
  static std::string json(const Writer& to, uint32_t position) {
    return in_quotes(name_of((to.schedule.*list)[position]));
  }
  static std::string text(Dump& to, uint32_t position) { return name_of((to.schedule.*list)[position]); }
};

// Numbers

struct Boolean {
  static void read(Schedule&, const Node& node, bool& value) { value = node.boolean(); }
  static std::string json(const Writer&, bool value) { return value ? "true" : "false"; }
};

template <uint32_t most>
struct Count {
  static void read(Schedule&, const Node& node, uint32_t& value) { value = uint32_t(node.number(most)); }
  static std::string json(const Writer&, uint32_t value) { return std::to_string(value); }
};

/// Reads a number of ranks. Each number may stand in the list once.
struct RankCount : Count<most_ranks> {
  static void read(Schedule& s, const Node& node, uint32_t& ranks) {
    Count::read(s, node, ranks);
    if (ranks == 0) node.refuse(fmt::format("1 to {} ranks", most_ranks));
    if (std::find(s.ranks.begin(), s.ranks.end(), ranks) != s.ranks.end())
      node.refuse("each number of ranks once");
  }
};

/// Reads an author's line as its position in "source".
struct Line {
  static void read(Schedule& s, const Node& node, uint32_t& at) {
    if (s.source.empty()) node.refuse("no line: there is no \"source\"");
    at = uint32_t(node.number(s.source.size() - 1)) + 1;
  }
  static std::string json(const Writer&, uint32_t at) { return std::to_string(at - 1); }
};

struct FileAndLine {
  static void read(Schedule&, const Node& node, SourceLine& line) { line = json::source_line(node); }
  static std::string json(const Writer&, const SourceLine& line) {
    return in_quotes(fmt::format("{}:{}", line.file, line.line));
  }
};

inline int64_t integer(const Node& node) {
  if (node.value.kind != Kind::other_number) return int64_t(node.number(INT64_MAX));
  int64_t number = 0;
  const std::string& digits = node.value.text;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, number);
  if (error != std::errc() || stop != end) node.refuse("a 64-bit whole number");
  return number;
}

/// Reads an expression: 3, "rank" or ["+",3,"rank"]. Dumps show all its parentheses, and write D for the
/// number of ranks and `streams` for the number of pool streams.
struct Number {
  static void read(Schedule& s, const Node& node, Expr& expr) {
    if (node.value.kind == Kind::array) {
      if (node.items() != 3) node.refuse("[operator, left, right]");
      static constexpr std::string_view words[] = {
#define CHORALE_EXPR(name, mnemonic) mnemonic,
#include "chorale/schedule/exprs.def"
      };
      const auto kind = ExprKind(size_t(ExprKind::symbol) + 1 + node.item(0).choice(words));
      Expr left, right;
      read(s, node.item(1), left);
      read(s, node.item(2), right);
      expr = s.exprs.binary(kind, left, right);
    } else if (node.value.kind == Kind::string) {
      std::string name;
      Word::read(s, node, name);
      expr = s.exprs.symbol(name);
    } else {
      if (node.value.kind != Kind::number && node.value.kind != Kind::other_number)
        node.refuse("an expression: a whole number, a name, or [operator, left, right]");
      expr = s.exprs.constant(integer(node));
    }
  }
  static std::string json(const Writer& to, Expr expr) {
    const ExprNode& node = to.schedule.exprs[expr];
    if (node.kind == ExprKind::constant) return std::to_string(node.value);
    if (node.kind == ExprKind::symbol) return in_quotes(to.schedule.exprs.symbols()[size_t(node.value)]);
    return fmt::format("[\"{}\",{},{}]", mnemonic(node.kind), json(to, node.left), json(to, node.right));
  }
  static std::string text(Dump& to, Expr expr) {
    const ExprNode& node = to.schedule.exprs[expr];
    if (node.kind == ExprKind::constant) return std::to_string(node.value);
    if (node.kind != ExprKind::symbol)
      return fmt::format("( {} {} {} )", text(to, node.left), mnemonic(node.kind), text(to, node.right));
    const std::string& name = to.schedule.exprs.symbols()[size_t(node.value)];
    return name == "ranks" ? "D" : name == "lanes" ? "streams" : name;
  }
};

// Lists

template <class Each>
struct ListOf {
  template <class T>
  static void read(Schedule& s, const Node& node, std::vector<T>& list) {
    for (size_t k = 0; k < node.items(); ++k) {
      T one;
      Each::read(s, node.item(k), one);
      list.push_back(std::move(one));
    }
  }
  static std::string json(const Writer& to, const auto& list) {
    return "[" + joined(",", list, [&](const auto& one) { return Each::json(to, one); }) + "]";
  }
  template <class T>
  static std::string text(Dump& to, const std::vector<T>& list) requires requires(const T& one) {
    Each::text(to, one);
  }
  {
    return joined(", ", list, [&](const T& one) { return Each::text(to, one); });
  }
};

/// Writes one element per line.
template <class Each>
struct LinesOf : ListOf<Each> {
  static std::string json(const Writer& to, const auto& list) {
    const Writer inner{to.schedule, to.indent + "  "};
    const std::string lines =
        joined(",", list, [&](const auto& one) { return inner.indent + Each::json(inner, one); });
    return list.empty() ? "[]" : "[" + lines + to.indent + "]";
  }
};

/// Reads an object as a map from its keys.
template <class Each>
struct MapOf {
  template <class T>
  static void read(Schedule& s, const Node& node, std::map<std::string, T>& map) {
    const Fields object(node);  // refuses anything except an object
    const std::vector<std::string>& keys = node.value.keys;
    for (size_t k = 0; k < keys.size(); ++k)
      Each::read(s, Node{node.value.items[k], &node, keys[k]}, map[keys[k]]);
  }
  static std::string json(const Writer& to, const auto& map) {
    const auto pair = [&](const auto& one) {
      return in_quotes(one.first) + ":" + Each::json(to, one.second);
    };
    return "{" + joined(",", map, pair) + "}";
  }
  static std::string text(Dump& to, const auto& map) {
    return joined(", ", map, [&](const auto& one) { return one.first + "=" + Each::text(to, one.second); });
  }
};

// Streams, tensors and views

/// Reads "main", the name of a stream, or ["pool",index].
struct OneStream {
  using Name = NameOf<&Schedule::streams>;
  static void read(Schedule& s, const Node& node, Stream& stream) {
    if (node.value.kind == Kind::array) {
      if (node.items() != 2 || node.item(0).text() != "pool") node.refuse("[\"pool\", index]");
      stream.kind = Stream::Kind::pool;
      Number::read(s, node.item(1), stream.index);
    } else if (node.text() != "main") {
      stream.kind = Stream::Kind::named;
      Name::read(s, node, stream.name);
    }
  }
  static std::string json(const Writer& to, const Stream& stream) {
    if (stream.kind == Stream::Kind::main) return "\"main\"";
    if (stream.kind == Stream::Kind::named) return Name::json(to, stream.name);
    return fmt::format("[\"pool\",{}]", Number::json(to, stream.index));
  }
  static std::string text(Dump& to, const Stream& stream) {
    if (stream.kind == Stream::Kind::main) return "%main";
    if (stream.kind == Stream::Kind::named) return Name::text(to, stream.name);
    return fmt::format("pool[{}]", Number::text(to, stream.index));
  }
};

/// Reads [tensor, select, ...]. In dumps, the name of a view consists of its tensor and its selects, and a
/// line before it says what it is.
struct OneView {
  using Name = NameOf<&Schedule::tensors>;
  static void read(Schedule& s, const Node& node, View& view) {
    if (node.items() == 0) node.refuse("[tensor, [axis, index] or [axis, first, length] ...]");
    Name::read(s, node.item(0), view.tensor);
    const size_t axes = s.tensors[view.tensor].axes.size();
    for (size_t k = 1; k < node.items(); ++k) {
      const Node item = node.item(k);
      if (item.items() != 2 && item.items() != 3) item.refuse("[axis, index] or [axis, first, length]");
      if (axes == 0) item.refuse("none: the tensor has no axes");
      Select select;
      select.axis = uint8_t(item.item(0).number(axes - 1));
      if (!view.selects.empty() && view.selects.back().axis >= select.axis)
        item.refuse("axes in ascending order");
      Number::read(s, item.item(1), select.lo);
      if (item.items() == 3) Number::read(s, item.item(2), select.len.emplace());
      view.selects.push_back(select);
    }
  }
  static std::string json(const Writer& to, const View& view) {
    std::string out = "[" + Name::json(to, view.tensor);
    for (const Select& select : view.selects)
      out += fmt::format(",[{},{}{}]", select.axis, Number::json(to, select.lo),
                         select.len ? "," + Number::json(to, *select.len) : "");
    return out + "]";
  }
  static std::string text(Dump& to, const View& view) {
    std::string name = Name::text(to, view.tensor);
    for (const Select& select : view.selects) {
      const ExprKind kind = to.schedule.exprs[select.lo].kind;
      const bool plain = !select.len && (kind == ExprKind::constant || kind == ExprKind::symbol);
      const std::string lo = Number::text(to, select.lo);
      const std::string part = select.len
                                   ? fmt::format("Slice({}, axis={}, first={}, length={})", name, select.axis,
                                                 lo, Number::text(to, *select.len))
                                   : fmt::format("Select({}, axis={}, index={})", name, select.axis, lo);
      const std::string plainly = name + "." + (plain ? lo : "s");
      name = plainly;
      for (int number = 2; !to.selected.emplace(name, part).second && to.selected[name] != part; ++number)
        name = plainly + std::to_string(number);
      to.line(fmt::format("{} = {}", name, part));
    }
    return name;
  }
};

/// Returns a tensor with its type and extents, such as "A f32[@rank D, N]".
inline std::string declaration(Dump& to, const Tensor& tensor) {
  constexpr const char* words[] = {"", "@rank ", "@stream "};
  const auto axis = [&](const Axis& one) { return words[size_t(one.tag)] + Number::text(to, one.extent); };
  return fmt::format("{} {}[{}]", tensor.name, dtype_name(tensor.dtype), joined(", ", tensor.axes, axis));
}

/// Returns the statement that allocates a tensor on one rank. An axis that is spread over the ranks counts as
/// 1.
inline std::string allocation(Dump& to, const Tensor& tensor) {
  std::string bytes;
  const auto multiply = [&](const std::string& by) {
    bytes = bytes.empty() ? by : fmt::format("( {} * {} )", bytes, by);
  };
  for (const Axis& axis : tensor.axes)
    if (axis.tag != Tag::ranks) multiply(Number::text(to, axis.extent));
  multiply(std::to_string(dtype_size(tensor.dtype)));
  return fmt::format("{} = Alloc(space={}, bytes={}, zero={})",
                     tensor.role == Role::temp ? declaration(to, tensor) : tensor.name,
                     space_names[size_t(tensor.space)], bytes, tensor.zero);
}

}  // namespace chorale::schedule::codec
