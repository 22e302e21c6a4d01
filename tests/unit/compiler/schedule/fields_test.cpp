// These tests change each field of each operation of host schedules, write the operation and read it again.
// The rows of ops.def define the fields, so a new operation is tested as soon as it has a row.

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "chorale/json.hpp"
#include "chorale/schedule/collective.hpp"
#include "chorale/schedule/dump.hpp"
#include "compiler/schedule/part_codecs.hpp"
#include "tests/unit/compiler/schedule/text.hpp"

namespace chorale::schedule {
namespace {

using namespace codec;

// The expressions of the samples are part of "pool", which is read before everything else. So they have the
// same ids in each schedule that is read.
constexpr std::string_view declarations = R"({
  "lanes": ["a","b"], "pool": ["+",["+",7,"i"],["*",8,"rank"]], "flags": [{"name":"f"},{"name":"g"}],
  "tensors": [{"name":"A","dtype":"f32","shape":[4,4],"role":"in"},
              {"name":"B","dtype":"f32","shape":[4,4],"role":"temp"}],
  "body": [], "source": ["a.cpp:1","a.cpp:2"]})";

// Each function gives a member the first or the second sample of its codec. A codec without samples stops the
// build.

void set(Number, Schedule& s, Expr& expr, bool second) {
  expr = second ? s.exprs.binary(ExprKind::mul, s.exprs.constant(8), s.exprs.symbol("rank"))
                : s.exprs.binary(ExprKind::add, s.exprs.constant(7), s.exprs.symbol("i"));
}
void set(OneStream, Schedule& s, Stream& stream, bool second) {
  stream.kind = second ? Stream::Kind::named : Stream::Kind::pool;
  stream.name = second;
  stream.index = {};
  if (!second) set(Number{}, s, stream.index, true);
}
void set(OneView, Schedule& s, View& view, bool second) {
  view.tensor = second;
  view.selects.assign(1 + second, {});
  for (Select& one : view.selects) set(Number{}, s, one.lo, false);
  if (!second) return;
  view.selects[1].axis = 1;
  set(Number{}, s, view.selects[1].len.emplace(), true);
}
void set(Text, Schedule&, std::string& text, bool second) { text = second ? "one" : "two"; }
void set(CollectiveName, Schedule&, std::string& name, bool second) { name = collective_names[second]; }
void set(Line, Schedule&, uint32_t& at, bool second) { at = 1 + second; }
void set(Operation, Schedule& s, Op& op, bool second) { set(Text{}, s, op.name, second); }
void set(TakenToken, Schedule& s, Op& op, bool second) {
  op.token = 3 + second;
  set(Number{}, s, op.index, second);
}
void set(SentView, Schedule& s, Transfer& transfer, bool second) {
  transfer.is_send = true;
  set(OneView{}, s, transfer.view, second);
}
void set(Transfers, Schedule& s, Op& group, bool second) {
  group.transfers.assign(2, {});
  for (Transfer& one : group.transfers) {
    one.is_send = &one == &group.transfers[second];
    one.tag = 5;
    one.mover = Mover::plan;
    set(OneView{}, s, one.view, second);
    set(Number{}, s, one.peer, second);
  }
  set(Line{}, s, group.transfers[1].at, true);
}
template <auto list>
void set(NameOf<list>, Schedule&, uint32_t& position, bool second) {
  position = second;
}
template <uint32_t most>
void set(Count<most>, Schedule&, uint32_t& value, bool second) {
  value = second ? most : 1;
}
template <const auto& words, class Enum>
void set(Choice<words>, Schedule&, Enum& value, bool second) {
  value = Enum(1 + second);
}
template <class Each, class T>
void set(ListOf<Each>, Schedule& s, std::vector<T>& list, bool second) {
  list.assign(1 + second, {});
  for (T& one : list) set(Each{}, s, one, second);
}
template <class Each, class T>
void set(MapOf<Each>, Schedule& s, std::map<std::string, T>& map, bool second) {
  set(Each{}, s, map["a"], second);
}

struct Field {
  std::string key;
  void (*set)(Schedule&, Op&, bool second);
  void (*reset)(Op&);  ///< gives an optional field its default; null for the others
};

const std::vector<Field>& fields_of(OpKind kind) {
#define SET(member, codec) [](Schedule& s, Op& of, bool second) { set(codec{}, s, member, second); }
#define FIELD(key, member, codec) {key, SET(member, codec), nullptr},
#define OPTIONAL(key, member, codec) \
  {key, SET(member, codec), [](Op& of) { member = std::remove_cvref_t<decltype(member)>{}; }},
  static const std::vector<Field> all[] = {
#define CHORALE_HOST_OP(name, word, summary, text, fields) {fields OPTIONAL("at", of.at, Line)},
#include "chorale/schedule/ops.def"
  };
#undef OPTIONAL
#undef FIELD
#undef SET
  return all[size_t(kind)];
}

/// Holds an operation with the first sample in each of its fields.
struct Sample {
  Plan plan = read(plan_with(std::string(declarations)));
  Schedule s = *plan.extension.schedule;
  Op op;

  explicit Sample(OpKind kind) {
    op.kind = kind;
    for (const Field& field : fields_of(kind)) field.set(s, op, false);
  }
  /// Returns the operation as it is read from its written form.
  Op read_again(const Op& of) {
    s.body = {of};
    plan.extension.schedule = std::make_shared<Schedule>(s);
    return read(write(plan)).extension.schedule->body.at(0);
  }
};

/// Returns an operation whose transfers have a line, as the reader sets it.
Op with_lines(Op op) {
  for (Transfer& one : op.transfers)
    if (op.kind != OpKind::group || !one.at) one.at = op.at;
  return op;
}

TEST(HostFields, EachSurvivesARoundTrip) {
  for (size_t kind = 0; kind < op_table().size(); ++kind) {
    Sample sample{OpKind(kind)};
    const auto survives = [&](const Op& changed, const std::string& how) {
      SCOPED_TRACE(fmt::format("{}: {}", op_table()[kind].name, how));
      EXPECT_FALSE(changed == sample.op);
      EXPECT_TRUE(sample.read_again(with_lines(changed)) == with_lines(changed)) << write(sample.plan);
    };
    for (const Field& field : fields_of(OpKind(kind))) {
      Op changed = sample.op;
      field.set(sample.s, changed, true);
      survives(changed, field.key);
      if (!field.reset) continue;
      field.reset(changed);
      survives(changed, "without " + field.key);
    }
  }
}

TEST(HostFields, TheTextShowsThoseThatItNames) {
  for (size_t kind = 0; kind < op_table().size(); ++kind) {
    Sample sample{OpKind(kind)};
    const auto shown = [&](const Op& op) {
      sample.s.body = {op};
      return dump("test", sample.s);
    };
    for (const Field& field : fields_of(OpKind(kind))) {
      Op changed = sample.op;
      field.set(sample.s, changed, true);
      const std::string text(op_table()[kind].text), &key = field.key;
      bool is_named = key == "lane";
      for (const std::string& place : {"{" + key + "}", "{" + key + ",", "," + key + "}"})
        is_named |= text.find(place) != text.npos;
      EXPECT_EQ(shown(changed) != shown(sample.op), is_named) << op_table()[kind].name << ": " << key;
    }
  }
}

}  // namespace
}  // namespace chorale::schedule
