/// \file
/// Makes the schedules that are timed: a matrix product after an all-gather or before a reduce-scatter, in
/// every form that overlaps them.
#pragma once

#include <chorale/plan.hpp>
#include <chorale/schedule/schedule.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace chorale::overlap {

/// Says which slice a turn has: the same on all ranks, the slice of the rank `turn` ahead, or around a ring,
/// in which a rank passes on what it has received.
enum class Order { linear, rotated, ring };

/// Says how transfers and compute are spread over streams. `split`: transfers in order on one
/// stream, compute on another. `ahead`: the same, and before the first turn a rank tells its peers that they
/// may write, or read, its memory. `pool`: turn i on stream i % 4, transfers and compute. `chained`: the
/// same, with transfers in order.
enum class Style { split, ahead, pool, chained };

inline constexpr const char* order_names[] = {"linear", "rotated", "ring"};
inline constexpr const char* style_names[] = {"split", "ahead", "pool", "chained"};

struct Form {
  Order order = Order::rotated;
  Style style = Style::ahead;
  schedule::Mover mover = schedule::Mover::ce_put;

  std::string name() const;  ///< "rotated ahead ce_put"
};

/// Says which halves a schedule has, so that one can be timed alone.
struct Halves {
  bool transfers = true, compute = true;
};

/// Makes the schedule that gathers G[ranks, M/ranks, K] from A[M/ranks, K], and multiplies C = G B with
/// B[K, N]. Inputs are A and B, outputs G and C, parameters M, K and N.
Plan allgather_matmul(uint32_t ranks, const Form& form, Halves halves = {});
std::vector<Form> allgather_matmul_forms();

/// Makes the schedule in which C[M/ranks, N] of this rank is the sum over the ranks of A B, with A[ranks,
/// M/ranks, K/ranks] and B[K/ranks, N] of each. Inputs are A and B, output C, parameters M, K and N. Without
/// compute nothing is summed. Around a ring the sums are transferred. The ring has only the style `two`, and
/// always both halves.
Plan matmul_reduce_scatter(uint32_t ranks, const Form& form, Halves halves = {});
std::vector<Form> matmul_reduce_scatter_forms();

/// Makes the schedule C[M, N] = A[M, K] B[K, N] as one product on the main stream, without other ranks.
Plan product(uint32_t ranks);
/// Makes the schedule C[M, N] = the sum of R[ranks, M, N] over its first axis, without other ranks.
Plan sum(uint32_t ranks);

}  // namespace chorale::overlap
