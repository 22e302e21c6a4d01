#pragma once
/// \file
/// Host schedules have whole-number expressions for indices, extents, peers and conditions.
///
/// `/` rounds down and `%` is never negative, so that (rank - i) % ranks needs no correction. Comparisons and
/// conditions are 0 or 1; anything but 0 counts as true.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace chorale::host {

enum class ExprKind : uint8_t {
  constant,
  symbol,
#define CHORALE_EXPR(name, mnemonic) name,
#include "chorale/host/exprs.def"
};

/// Returns the word of an operator in plan files and dumps, such as "+"; "" for constants and symbols.
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

/// Holds expressions that share their parts. Equal expressions have equal ids.
class Exprs {
 public:
  Exprs();

  Expr constant(int64_t value);
  /// Returns the symbol of that name: "rank", "ranks", "lanes", a parameter, or the variable of a loop.
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

/// Holds the values of symbols, by name. Loops shadow and restore.
using Values = std::map<std::string, int64_t, std::less<>>;

/// Holds the value of an expression, or says why it has none.
struct Evaluated {
  int64_t value = 0;
  std::string problem;  ///< "divides by zero"; empty: there is a value
  explicit operator bool() const { return problem.empty(); }
};
Evaluated evaluate(const Exprs&, Expr, const Values&);

/// Returns a quotient in `expr` that leaves a remainder, as "( M / ranks ) is 65 / 4"; "" if there is none. A
/// quotient of a sum may leave one, because an author rounds up that way.
std::string rest(const Exprs&, Expr, const Values&);

/// Writes an expression fully parenthesised, as in dumps: "( ( rank + i ) % ranks )". Constants and symbols
/// stand as they are.
std::string text(const Exprs&, Expr);

}  // namespace chorale::host
