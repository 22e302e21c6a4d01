#include "value.hpp"

#include <algorithm>
#include <functional>
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

uint64_t Values::scrambled(uint64_t tree) { return mix64(tree + splitmix64_step); }

uint32_t Values::origin(const Origin& of) {
  Node node;
  node.sum = sum_of(of);
  node.tree = uint64_t(node.sum);
  node.order = mix64(of.rank + splitmix64_step);
  node.origin = of;
  nodes_.push_back(node);
  return uint32_t(nodes_.size() - 1);
}

uint32_t Values::combine(uint32_t left, uint32_t right, ReduceOp op) {
  Node node;
  node.left = left;
  node.right = right;
  node.op = op;
  node.sum = plus(nodes_[left].sum, nodes_[right].sum);
  // a + b and b + a are the same bits.
  node.tree = mix64(scrambled(nodes_[left].tree) + scrambled(nodes_[right].tree));
  node.order = mix64(scrambled(nodes_[left].order) + scrambled(nodes_[right].order));
  for (const uint32_t part : {left, right}) {
    const Node& of = nodes_[part];
    node.mixed |= of.mixed || (of.left != none && of.op != op);
  }
  nodes_.push_back(node);
  return uint32_t(nodes_.size() - 1);
}

void Values::round(uint32_t value) {
  Node& node = nodes_[value];
  node.tree = scrambled(node.tree);
  node.order = scrambled(node.order);
  node.rounded = true;
}

std::string Values::order_words(uint32_t value) const {
  // What was added up without rounding, from its first addend on.
  std::vector<uint32_t> addends;
  for (bool outermost = true; combined(value) && (outermost || !nodes_[value].rounded); outermost = false) {
    addends.push_back(nodes_[value].right);
    value = nodes_[value].left;
  }
  addends.push_back(value);
  std::reverse(addends.begin(), addends.end());
  struct Addend {
    std::optional<uint32_t> rank;  // none: of several, in words
    std::string words;
    auto operator<=>(const Addend&) const = default;
  };
  std::vector<Addend> list;
  for (const uint32_t addend : addends) {
    if (combined(addend))
      list.push_back({{}, "(" + order_words(addend) + ")"});
    else
      list.push_back({nodes_[addend].origin.rank, {}});
  }
  // a + b and b + a are the same bits.
  if (list.size() > 1 && list[1] < list[0]) std::swap(list[0], list[1]);
  std::string words;
  for (size_t at = 0; at < list.size();) {
    size_t end = at + 1;
    while (end < list.size() && list[at].rank && list[end].rank == *list[at].rank + (end - at)) ++end;
    constexpr size_t shortened = 4;
    const bool shorter = end - at >= shortened;
    if (!words.empty()) words += " + ";
    words += list[at].rank ? std::to_string(*list[at].rank) : list[at].words;
    if (shorter) words += " + ... + " + std::to_string(*list[end - 1].rank);
    at = shorter ? end : at + 1;
  }
  return words;
}

std::map<Origin, uint32_t> Values::origins(uint32_t value) const {
  // Parts are older than what is made of them, so each is counted before it is taken apart.
  std::map<uint32_t, uint32_t, std::greater<>> parts{{value, 1}};
  std::map<Origin, uint32_t> found;
  while (!parts.empty()) {
    const auto [part, times] = *parts.begin();
    parts.erase(parts.begin());
    const Node& of = nodes_[part];
    if (of.left == none) {
      found[of.origin] += times;
      continue;
    }
    parts[of.left] += times;
    parts[of.right] += times;
  }
  return found;
}

}  // namespace chorale::proof
