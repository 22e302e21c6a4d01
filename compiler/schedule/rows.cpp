// This file holds the tables of rows.hpp, and the op table that is made from ops.def.

#include "rows.hpp"

#include <type_traits>

#include "part_codecs.hpp"

namespace chorale::schedule {
namespace {

using namespace codec;

template <class Codec, class Of, class Get>
constexpr Row<Of> row(std::string_view key, bool is_optional, Get) {
  using Member = std::remove_cvref_t<decltype(Get{}(std::declval<Of&>()))>;
  Row<Of> row;
  row.key = key;
  row.is_body = std::is_base_of_v<Body, Codec>;
  row.read = [](Schedule& s, const json::Node& node, Of& of) { Codec::read(s, node, Get{}(of)); };
  row.json = [](const Writer& to, const Of& of) { return Codec::json(to, Get{}(of)); };
  if constexpr (requires(Dump & to, const Member& member) { Codec::text(to, member); })
    row.text = [](Dump& to, const Of& of) { return Codec::text(to, Get{}(of)); };
  if (!is_optional) return row;
  row.left_out = [](const Of& of) {
    constexpr Get get;
    const Member& member = get(of);
    if constexpr (requires { Codec::left_out(member); }) {
      return Codec::left_out(member);
    } else if constexpr (requires { member.empty(); }) {
      return member.empty();
    } else {
      return member == Member{};
    }
  };
  return row;
}

// clang-format off
#define FIELD(key, member, codec) row<codec, Of>(key, false, [](auto& of) -> auto& { return member; }),
#define OPTIONAL(key, member, codec) row<codec, Of>(key, true, [](auto& of) -> auto& { return member; }),
// clang-format on

using Of = Op;
#define CHORALE_HOST_OP(name, word, summary, text, fields) \
  constexpr Row<Op> name##_rows[] = {fields OPTIONAL("at", of.at, Line)};
#include "chorale/schedule/ops.def"

constexpr std::span<const Row<Op>> op_rows[] = {
#define CHORALE_HOST_OP(name, word, summary, text, fields) name##_rows,
#include "chorale/schedule/ops.def"
};

constexpr OpInfo op_infos[] = {
#define CHORALE_HOST_OP(name, word, summary, text, fields) {word, summary, text},
#include "chorale/schedule/ops.def"
};

/// Returns whether every row has a unique key, and the text names only rows that dumps can show.
constexpr bool is_well_formed(const OpInfo& info, std::span<const Row<Op>> rows) {
  for (const Row<Op>& one : rows)
    if (find(rows, one.key) != &one) return false;
  for (std::string_view text = info.text; !text.empty();) {
    take(text, '{');
    for (std::string_view keys = take(text, '}'); !keys.empty();) {
      const std::string_view key = take(keys, ',');
      const Row<Op>* const row = find(rows, key);
      if (key != next_number && !(row && row->text)) return false;
    }
  }
  return true;
}
#define CHORALE_HOST_OP(name, word, summary, text, fields) \
  static_assert(is_well_formed(op_infos[size_t(OpKind::name)], name##_rows), \
                "the row of " #name " in ops.def");
#include "chorale/schedule/ops.def"

}  // namespace

std::span<const Row<Op>> rows(OpKind kind) { return op_rows[size_t(kind)]; }
const OpInfo& info(OpKind kind) { return op_infos[size_t(kind)]; }
std::span<const OpInfo> op_table() { return op_infos; }

#define CHORALE_HOST_RECORD(type, fields) \
  template <> \
  std::span<const Row<type>> rows() { \
    using Of = type; \
    static constexpr Row<Of> list[] = {fields}; \
    return list; \
  }

// Rows are one line, however long.
// clang-format off

CHORALE_HOST_RECORD(Tensor,
  FIELD("name", of.name, NewName<&Schedule::tensors>)
  FIELD("dtype", of.dtype, Choice<dtype_words>)
  FIELD("shape", of.axes, Extents)
  OPTIONAL("tags", of.axes, Tags)
  FIELD("role", of.role, Choice<role_names>)
  OPTIONAL("space", of.space, Choice<space_names>)
  OPTIONAL("zero", of.zero, Boolean)
  OPTIONAL("at", of.at, Line))

CHORALE_HOST_RECORD(Flag,
  FIELD("name", of.name, NewName<&Schedule::flags>)
  OPTIONAL("kind", of.kind, FlagKind)
  OPTIONAL("at", of.at, Line))

CHORALE_HOST_RECORD(Function,
  FIELD("name", of.name, NewName<&Schedule::functions>)
  FIELD("writes", of.writes, Count<UINT32_MAX>)
  FIELD("reads", of.reads, Count<UINT32_MAX>))

// The last row is read before the others, because they refer to its lines.
CHORALE_HOST_RECORD(Schedule,
  OPTIONAL("params", of.params, Params)
  OPTIONAL("ranks", of.ranks, ListOf<RankCount>)
  OPTIONAL("lanes", of.streams, ListOf<NewStream>)
  OPTIONAL("pool", of.pool, Number)
  OPTIONAL("made_with", of.made_with, MapOf<Text>)
  OPTIONAL("flags", of.flags, LinesOf<Record>)
  FIELD("tensors", of.tensors, LinesOf<Record>)
  OPTIONAL("functions", of.functions, LinesOf<Record>)
  OPTIONAL("layout", of.layout, LinesOf<Operation>)
  FIELD("body", of.body, LinesOf<Operation>)
  OPTIONAL("source", of.source, LinesOf<FileAndLine>))

#undef FIELD
#undef OPTIONAL

}  // namespace chorale::schedule
