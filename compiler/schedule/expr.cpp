#include "chorale/schedule/expr.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace chorale::schedule {

std::string_view mnemonic(ExprKind kind) {
  switch (kind) {
    case ExprKind::constant:
    case ExprKind::symbol:
      return {};
#define CHORALE_EXPR(name, mnemonic) \
  case ExprKind::name: \
    return mnemonic;
#include "chorale/schedule/exprs.def"
  }
  return {};
}

Exprs::Exprs() { constant(0); }

Expr Exprs::intern(const ExprNode& node) {
  const auto [known, is_new] = ids_.emplace(node, uint32_t(nodes_.size()));
  if (is_new) nodes_.push_back(node);
  return {known->second};
}

Expr Exprs::constant(int64_t value) {
  return intern({.kind = ExprKind::constant, .left = {}, .right = {}, .value = value});
}

Expr Exprs::symbol(std::string_view name) {
  const auto known = std::find(symbols_.begin(), symbols_.end(), name);
  const int64_t position = known - symbols_.begin();
  if (known == symbols_.end()) symbols_.emplace_back(name);
  return intern({.kind = ExprKind::symbol, .left = {}, .right = {}, .value = position});
}

Expr Exprs::binary(ExprKind kind, Expr left, Expr right) {
  return intern({.kind = kind, .left = left, .right = right, .value = 0});
}

namespace {

constexpr const char* too_large = "does not fit 64 bits";

Evaluated apply(ExprKind kind, int64_t left, int64_t right) {
  int64_t result = 0;
  bool overflow = false;
  const bool divides = kind == ExprKind::div || kind == ExprKind::mod;
  if (divides && right == 0) return {0, "divides by zero"};
  if (divides && left == std::numeric_limits<int64_t>::min() && right == -1)
    return kind == ExprKind::div ? Evaluated{0, too_large} : Evaluated{};
  switch (kind) {
    case ExprKind::add:
      overflow = __builtin_add_overflow(left, right, &result);
      break;
    case ExprKind::sub:
      overflow = __builtin_sub_overflow(left, right, &result);
      break;
    case ExprKind::mul:
      overflow = __builtin_mul_overflow(left, right, &result);
      break;
    case ExprKind::div:
      return {left / right - (left % right != 0 && (left < 0) != (right < 0)), {}};
    case ExprKind::mod: {
      const int64_t rest = left % right;
      return {rest >= 0 ? rest : right > 0 ? rest + right : rest - right, {}};
    }
    case ExprKind::min:
      return {std::min(left, right), {}};
    case ExprKind::max:
      return {std::max(left, right), {}};
    case ExprKind::equal:
      return {left == right, {}};
    case ExprKind::unequal:
      return {left != right, {}};
    case ExprKind::less:
      return {left < right, {}};
    case ExprKind::at_most:
      return {left <= right, {}};
    case ExprKind::both:
      return {left && right, {}};
    case ExprKind::either:
      return {left || right, {}};
    case ExprKind::constant:
    case ExprKind::symbol:
      return {0, "is no operator"};
  }
  return overflow ? Evaluated{0, too_large} : Evaluated{result, {}};
}

}  // namespace

Evaluated evaluate(const Exprs& exprs, Expr expr, const Values& values) {
  const ExprNode& node = exprs[expr];
  if (node.kind == ExprKind::constant) return {node.value, {}};
  if (node.kind == ExprKind::symbol) {
    const std::string& name = exprs.symbols()[size_t(node.value)];
    const auto known = values.find(name);
    if (known == values.end()) return {0, "has no value for '" + name + "'"};
    return {known->second, {}};
  }
  const Evaluated left = evaluate(exprs, node.left, values);
  if (!left) return left;
  // The right side of a decided condition is not evaluated, as in C++, because the condition may guard
  // divisions.
  if (node.kind == ExprKind::both && !left.value) return {0, {}};
  if (node.kind == ExprKind::either && left.value) return {1, {}};
  const Evaluated right = evaluate(exprs, node.right, values);
  return right ? apply(node.kind, left.value, right.value) : right;
}

std::string rest(const Exprs& exprs, Expr expr, const Values& values) {
  const ExprNode& node = exprs[expr];
  if (node.kind == ExprKind::constant || node.kind == ExprKind::symbol) return {};
  for (const Expr part : {node.left, node.right})
    if (std::string inner = rest(exprs, part, values); !inner.empty()) return inner;
  const ExprKind of = exprs[node.left].kind;
  if (node.kind != ExprKind::div || of == ExprKind::add || of == ExprKind::sub) return {};
  const Evaluated left = evaluate(exprs, node.left, values), right = evaluate(exprs, node.right, values);
  if (!left || !right || right.value == 0 || left.value % right.value == 0) return {};
  return text(exprs, expr) + " is " + std::to_string(left.value) + " / " + std::to_string(right.value);
}

std::string text(const Exprs& exprs, Expr expr) {
  const ExprNode& node = exprs[expr];
  if (node.kind == ExprKind::constant) return std::to_string(node.value);
  if (node.kind == ExprKind::symbol) return exprs.symbols()[size_t(node.value)];
  return "( " + text(exprs, node.left) + " " + std::string(mnemonic(node.kind)) + " " +
         text(exprs, node.right) + " )";
}

}  // namespace chorale::schedule
