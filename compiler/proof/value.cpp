#include "value.hpp"

#include <functional>

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
  for (const uint32_t part : {left, right}) {
    const Node& of = nodes_[part];
    node.mixed |= of.mixed || (of.left != none && of.op != op);
  }
  nodes_.push_back(node);
  return uint32_t(nodes_.size() - 1);
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
