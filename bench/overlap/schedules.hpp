/// \file
/// The schedules that are timed: a matrix product behind an all-gather, or in front of a reduce-scatter, in
/// every form that overlaps them.
#pragma once

#include <chorale/host/schedule.hpp>
#include <chorale/plan.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace chorale::overlap {

/// Which slice a turn is about: the same on all ranks, the one of the rank `turn` ahead, or around a ring,
/// where a rank hands on what it has received.
enum class Order { linear, rotated, ring };

/// On which lanes. `two`: transfers in order on one, compute on another. `ahead`: the same, and what a peer
/// has to know first (that memory may be written, or read) is said before the first turn. `pool`: turn i on
/// lane i % 4, transfers and compute. `chained`: the same, with transfers in order.
enum class Style { two, ahead, pool, chained };

inline constexpr const char* order_names[] = {"linear", "rotated", "ring"};
inline constexpr const char* style_names[] = {"two", "ahead", "pool", "chained"};

struct Form {
  Order order = Order::rotated;
  Style style = Style::ahead;
  host::Mover mover = host::Mover::ce_put;

  std::string name() const;  ///< "rotated ahead ce_put"
};

/// What of a schedule is there: to time a half alone.
struct Halves {
  bool transfers = true, compute = true;
};

/// G[ranks, M/ranks, K] is gathered from A[M/ranks, K], and C = G B with B[K, N]: inputs A and B, outputs G
/// and C, parameters M, K and N.
Plan allgather_matmul(uint32_t ranks, const Form& form, Halves halves = {});
std::vector<Form> allgather_matmul_forms();

/// C[M/ranks, N] of this rank = the sum over the ranks of A B, with A[ranks, M/ranks, K/ranks] and
/// B[K/ranks, N] of each: inputs A and B, output C, parameters M, K and N. Without compute nothing is summed.
/// Around a ring the sums travel, in the style `two` only, and `halves` are not left out.
Plan matmul_reduce_scatter(uint32_t ranks, const Form& form, Halves halves = {});
std::vector<Form> matmul_reduce_scatter_forms();

/// C[M, N] = A[M, K] B[K, N] as one product on the caller's lane, without any other rank.
Plan product(uint32_t ranks);
/// C[M, N] = the sum of R[ranks, M, N] over its first axis, without any other rank.
Plan sum(uint32_t ranks);

}  // namespace chorale::overlap
