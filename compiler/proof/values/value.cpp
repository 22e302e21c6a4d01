#include "value.hpp"

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include "chorale/splitmix64.hpp"

namespace chorale::proof {
namespace {

constexpr Sum modulus = (Sum(1) << 127) - 1;

Sum reduced(Sum sum) { return sum >= modulus ? sum - modulus : sum; }

}  // namespace

Sum sum_of(const Origin& of) {
  const uint64_t rank = mix64(of.rank + splitmix64_step), low = mix64(rank ^ of.at), high = mix64(low + rank);
  return reduced(((Sum(high) << 64) | low) & modulus);
}

Sum plus(Sum left, Sum right) { return reduced(left + right); }

Sum minus(Sum left, Sum right) { return plus(left, modulus - right); }

uint64_t Values::scrambled(uint64_t tree) { return mix64(tree + splitmix64_step); }

uint32_t Values::origin(const Origin& of) {
  Node node;
  node.sum = sum_of(of);
  if (orders_wanted_) orders_.push_back({uint64_t(node.sum), mix64(of.rank + splitmix64_step), {}});
  node.inside = of.at;
  node.lowest = of.rank;
  nodes_.push_back(node);
  return uint32_t(nodes_.size() - 1);
}

uint32_t Values::combine(uint32_t left, uint32_t right, ReduceOp op) {
  Node node;
  node.combined = true;
  node.inside = uint64_t(right) << 32 | left;
  node.op = op;
  node.sum = plus(nodes_[left].sum, nodes_[right].sum);
  if (orders_wanted_) {
    // a + b and b + a have the same bits.
    orders_.push_back({mix64(scrambled(tree(left)) + scrambled(tree(right))),
                       mix64(scrambled(order(left)) + scrambled(order(right))),
                       most_of(orders_[left].quantised, orders_[right].quantised)});
  }
  node.lowest = std::min(nodes_[left].lowest, nodes_[right].lowest);
  for (const uint32_t part : {left, right}) {
    const Node& of = nodes_[part];
    node.mixed |= of.mixed || (of.combined && of.op != op);
  }
  nodes_.push_back(node);
  return uint32_t(nodes_.size() - 1);
}

void Values::round(uint32_t value) {
  nodes_[value].rounded = true;
  if (!orders_wanted_) return;
  Order& of = orders_[value];
  of.tree = scrambled(of.tree);
  of.order = scrambled(of.order);
}

uint32_t Values::encode(uint32_t value, const Codec& codec) {
  if (!orders_wanted_) return value;
  const Node node = nodes_[value];
  nodes_.push_back(node);
  Order order = orders_[value];
  const uint64_t how = uint64_t(codec.format) << 32 | codec.block;
  order.tree = mix64(scrambled(order.tree) + scrambled(how));
  uint16_t& times = order.quantised[size_t(codec.format)];
  if (times < UINT16_MAX) ++times;
  orders_.push_back(order);
  return uint32_t(nodes_.size() - 1);
}

/// Returns the addends that were added up without rounding, from the first one on.
std::vector<uint32_t> Values::addends(uint32_t value) const {
  std::vector<uint32_t> list;
  for (bool outermost = true; combined(value) && (outermost || !nodes_[value].rounded); outermost = false) {
    list.push_back(nodes_[value].right());
    value = nodes_[value].left();
  }
  list.push_back(value);
  std::reverse(list.begin(), list.end());
  // a + b and b + a have the same bits. The text has the one in brackets first, then the lower rank.
  const auto place = [this](uint32_t addend) {
    return std::tuple(!combined(addend), nodes_[addend].lowest, order(addend));
  };
  if (list.size() > 1 && place(list[1]) < place(list[0])) std::swap(list[0], list[1]);
  return list;
}

// This does not recurse, because sums may be nested as deeply as there are addends. It goes through the text
// from left to right.
std::string Values::order_words(uint32_t value) const {
  struct Open {
    std::vector<uint32_t> addends;
    size_t told = 0;
  };
  std::vector<Open> brackets{{addends(value)}};
  std::string words;
  while (!brackets.empty()) {
    Open& open = brackets.back();
    const std::vector<uint32_t>& list = open.addends;
    if (open.told == list.size()) {
      brackets.pop_back();
      if (!brackets.empty()) words += ")";
      continue;
    }
    if (open.told) words += " + ";
    const size_t at = open.told++;
    if (combined(list[at])) {
      words += "(";
      brackets.push_back({addends(list[at])});
      continue;
    }
    const uint32_t rank = nodes_[list[at]].lowest;
    const auto is_next = [&](size_t other) {
      return !combined(list[other]) && nodes_[list[other]].lowest == rank + (other - at);
    };
    size_t end = at + 1;
    while (end < list.size() && is_next(end)) ++end;
    constexpr size_t shortened = 4;
    words += std::to_string(rank);
    if (end - at < shortened) continue;
    words += " + ... + " + std::to_string(rank + (end - at - 1));
    open.told = end;
  }
  return words;
}

std::map<Origin, uint64_t> Values::origins(uint32_t value) const {
  const auto add = [](uint64_t& to, uint64_t times) { to += std::min(times, ~uint64_t{0} - to); };
  // Parts are older than the values made of them, so each is counted before it is split.
  std::map<uint32_t, uint64_t, std::greater<>> parts{{value, 1}};
  std::map<Origin, uint64_t> found;
  while (!parts.empty()) {
    const auto [part, times] = *parts.begin();
    parts.erase(parts.begin());
    const Node& of = nodes_[part];
    if (!of.combined) {
      add(found[of.origin()], times);
      continue;
    }
    add(parts[of.left()], times);
    add(parts[of.right()], times);
  }
  return found;
}

}  // namespace chorale::proof
