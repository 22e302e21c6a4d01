#include "chorale/other_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <vector>

#include "chorale/collective.hpp"
#include "chorale/plan.hpp"

namespace chorale {
namespace {

struct Synonym {
  std::string_view word, name;
};
constexpr Synonym synonyms[] = {
#define CHORALE_SYNONYM(word, name) {#word, #name},
#include "chorale/other_names.def"
};

struct OtherDType {
  std::string_view name;
  uint64_t bytes;
  DType carrier;
  std::string_view help;
};
constexpr OtherDType other_dtypes[] = {
#define CHORALE_OTHER_DTYPE(name, bytes, carrier, help) {#name, bytes, DType::carrier, help},
#include "chorale/other_names.def"
};

struct Row {
  std::string_view type, op;
  StandsFor as;
};
constexpr Row rows[] = {
#define CHORALE_STANDS_FOR(type, op, dtype, by) {#type, #op, {DType::dtype, ReduceOp::by}},
#include "chorale/other_names.def"
};

struct Refused {
  std::string_view name, why, help;
};
constexpr Refused refused_dtypes[] = {
#define CHORALE_REFUSED_DTYPE(name, why, help) {#name, why, help},
#include "chorale/other_names.def"
};

struct OtherOp {
  std::string_view name, help;
};
constexpr OtherOp other_ops[] = {
#define CHORALE_OTHER_OP(name, help) {#name, help},
#include "chorale/other_names.def"
};

template <class Table>
auto find(const Table& table, std::string_view name) {
  const auto found =
      std::find_if(std::begin(table), std::end(table), [&](const auto& one) { return one.name == name; });
  return found == std::end(table) ? nullptr : &*found;
}

const DType* find_dtype(std::string_view name) {
  const auto found = std::find_if(std::begin(all_dtypes), std::end(all_dtypes),
                                  [&](DType type) { return dtype_name(type) == name; });
  return found == std::end(all_dtypes) ? nullptr : found;
}

const ReduceOp* find_op(std::string_view name) {
  const auto found = std::find_if(std::begin(all_reduce_ops), std::end(all_reduce_ops),
                                  [&](ReduceOp op) { return reduce_op_name(op) == name; });
  return found == std::end(all_reduce_ops) ? nullptr : found;
}

/// Returns the operators that a type has, as in "sum and prod".
std::string ops_of(std::string_view type) {
  std::vector<std::string_view> names;
  for (const Row& row : rows) {
    if (row.type == type) names.push_back(row.op);
  }
  return fmt::format("{}", fmt::join(names, names.size() == 2 ? " and " : ", "));
}

[[noreturn]] void refuse_dtype(std::string_view name) {
  if (const Refused* const refused = find(refused_dtypes, name))
    throw NoSuchReduction(fmt::format("Chorale has no type {}: {}", name, refused->why),
                          std::string(refused->help));
  throw NoSuchReduction(fmt::format("Chorale has no type {}", name),
                        "convert it to a type that it has, or move its bytes as u8");
}

}  // namespace

std::string name_here(std::string_view word) {
  std::string small(word);
  std::transform(small.begin(), small.end(), small.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const Synonym& synonym : synonyms) {
    if (synonym.word == small) return std::string(synonym.name);
  }
  const bool known =
      names_dtype(small) || names_reduce_op(small) || names_other_dtype(small) || names_other_op(small);
  return known ? small : std::string(word);
}

bool names_dtype(std::string_view name) { return find_dtype(name); }
bool names_reduce_op(std::string_view name) { return find_op(name); }
bool names_other_dtype(std::string_view name) {
  return find(other_dtypes, name) || find(refused_dtypes, name);
}
bool names_other_op(std::string_view name) { return find(other_ops, name); }

DType carrier_of(std::string_view name) {
  if (const DType* const type = find_dtype(name)) return *type;
  if (const OtherDType* const other = find(other_dtypes, name)) return other->carrier;
  refuse_dtype(name);
}

uint64_t element_bytes(std::string_view name) {
  if (const DType* const type = find_dtype(name)) return dtype_size(*type);
  const OtherDType* const other = find(other_dtypes, name);
  return other ? other->bytes : 0;
}

StandsFor stands_for(std::string_view type, std::string_view op) {
  const DType carrier = carrier_of(type);
  const OtherDType* const other = find(other_dtypes, type);
  const ReduceOp* const own = find_op(op);
  if (!other && own) return {carrier, *own};
  for (const Row& row : rows) {
    if (row.type == type && row.op == op) return row.as;
  }
  const OtherOp* const known = find(other_ops, op);
  if (other) {
    throw NoSuchReduction(fmt::format("Chorale reduces {} by {} only, not by {}", type, ops_of(type), op),
                          std::string(known ? known->help : other->help));
  }
  throw NoSuchReduction(
      fmt::format("Chorale reduces {} by {} only, not by {}", type, fmt::join(reduce_op_names, ", "), op),
      std::string(known ? known->help : "use one of these"));
}

bool reduces(const Plan& plan) {
  // The collective's name counts, too, because an all-reduce of one rank has no operation that reduces.
  if (collective_reduces(plan.collective)) return true;
  for (const Gpu& gpu : plan.gpus) {
    for (const ThreadBlock& block : gpu.threadblocks) {
      for (const Op& op : block.ops) {
        if (info(op.code).has(Role::Reduce)) return true;
      }
    }
  }
  return false;
}

void check_operator_of_plan(const Plan& plan, std::string_view type) {
  if (!names_other_dtype(type) || !reduces(plan)) return;
  throw NoSuchReduction(
      fmt::format("plan '{}' reduces, and this call with elements of {} names no operator", plan.name, type),
      fmt::format("name one of {}", ops_of(type)));
}

}  // namespace chorale
