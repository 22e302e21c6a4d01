#pragma once
/// \file
/// Host schedules use whole-number expressions for indices, extents, peers and conditions.
///
/// `/` rounds down and `%` is never negative, so (rank - i) % ranks needs no correction. Comparisons give 0
/// or 1. Every value except 0 counts as true.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace chorale::schedule {

enum class ExprKind : uint8_t {
  constant,
  symbol,
#define CHORALE_EXPR(name, mnemonic) name,
#include "chorale/schedule/exprs.def"
};

/// Returns the word of an operator in plan files and dumps, such as "+". Returns "" for constants and
/// symbols.
std::string_view mnemonic(ExprKind);

/// Names an expression of one Exprs. The default is the constant 0.
struct Expr {
  uint32_t id = 0;
  bool operator==(const Expr&) const = default;
};

struct ExprNode {
  ExprKind kind = ExprKind::constant;
  Expr left, right;   ///< operators
  int64_t value = 0;  ///< constant: its value; symbol: position in Exprs::symbols()
  auto operator<=>(const ExprNode& other) const {
    const auto key = [](const ExprNode& node) {
      return std::tuple(node.kind, node.left.id, node.right.id, node.value);
    };
    return key(*this) <=> key(other);
  }
  bool operator==(const ExprNode&) const = default;
};

/// Holds expressions that share parts. Equal expressions have equal ids.
class Exprs {
 public:
  Exprs();

  Expr constant(int64_t value);
  /// Returns the symbol of that name: "rank", "ranks", "lanes" (the number of pool streams), a
  /// parameter, or a loop variable.
  Expr symbol(std::string_view name);
  Expr binary(ExprKind, Expr left, Expr right);

  const ExprNode& operator[](Expr expr) const { return nodes_[expr.id]; }
  const std::vector<std::string>& symbols() const { return symbols_; }

 private:
  Expr intern(const ExprNode&);

  std::vector<ExprNode> nodes_;
  std::map<ExprNode, uint32_t> ids_;
  std::vector<std::string> symbols_;
};

/// Holds the values of symbols, by name. A loop sets its variable and restores the old value at its end.
using Values = std::map<std::string, int64_t, std::less<>>;

/// Holds the value of an expression, or says why it has none.
struct Evaluated {
  int64_t value = 0;
  std::string problem;  ///< why there is no value, such as "divides by zero"; empty: there is a value
  explicit operator bool() const { return problem.empty(); }
};
Evaluated evaluate(const Exprs&, Expr, const Values&);

/// Finds a division in `expr` that leaves a remainder, and returns it in words: "( M / ranks ) is 65 / 4".
/// Returns "" if there is none. It ignores divisions of a sum, because authors round up in this way.
std::string rest(const Exprs&, Expr, const Values&);

/// Returns the text of an expression with all its parentheses, as in dumps: "( ( rank + i ) % ranks )".
/// Constants and symbols have none.
std::string text(const Exprs&, Expr);

}  // namespace chorale::schedule
