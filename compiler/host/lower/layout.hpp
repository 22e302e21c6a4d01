#pragma once
/// \file
/// What the operations of a layout mean: which axis is which, and what has to travel.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "chorale/host/lower.hpp"

namespace chorale::host {

/// No such axis.
inline constexpr int no_axis = -1;

/// What an operation is to the lanes.
enum class Action : uint8_t {
  compute,     ///< each rank by itself
  gather,      ///< set: slices of ranks, one a turn, come to every rank
  exchange,    ///< set: in turn i a slice for rank i goes there, and mine of another comes
  collective,  ///< all ranks together, in each turn
  ring_sum,    ///< sum over the ranks: what has been summed of a slice goes from rank to rank to its owner
};

/// An operation of a layout, with what follows from its tensors.
struct Item {
  Op op;
  Action action = Action::compute;
  std::string_view collective;  ///< of Action::collective: one of collective_names
  /// By operand: for each of its axes that of the result; no_axis: it is summed over.
  std::vector<std::vector<int>> axes;
  bool loops = false;    ///< it goes slice by slice
  Expr turns;            ///< extent of the axis that is sliced
  int sliced = no_axis;  ///< that axis of the result; no_axis: each turn makes, or adds to, all of it
  std::vector<int> sliced_of_operand;  ///< by operand
  uint32_t sums = 0;  ///< of Action::ring_sum: the temporary for what is summed so far, by slice
};

/// \return by axis of operand `operand`, that of the result
std::vector<int> axes_of_operand(const Schedule&, const Op&, size_t operand);
/// The axis over ranks or over lanes, or no_axis.
int tagged(const Tensor&, Tag);
bool is_one(const Schedule&, Expr);
bool is_product(const Op&);
/// Of products the last two axes of the result are a matrix, also in slices.
bool is_matrix_axis(const Schedule&, const Op&, int axis_of_result);

/// Whether every operation can be understood: known functions, operands and axes that fit, tensors that are
/// computed once and before they are used.
void check_layout(const Schedule&, Diagnostics&);

/// The operations with reshards between them, each of which all ranks can do now. Adds temporaries.
std::vector<Item> reshard(Schedule&, const Lowering&, Diagnostics&);

}  // namespace chorale::host
