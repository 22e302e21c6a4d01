#pragma once
/// \file
/// An Item says what an operation of a layout means: which axis is which, and what has to travel.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "chorale/host/lower.hpp"

namespace chorale::host {

/// Stands for the absence of an axis.
inline constexpr int no_axis = -1;

/// Says what an operation is to the lanes.
enum class Action : uint8_t {
  compute,     ///< each rank works by itself
  gather,      ///< set: slices of ranks, one a turn, come to every rank
  exchange,    ///< set: in turn i a slice goes to rank i, and one for this rank comes from another
  collective,  ///< all ranks work together in each turn
  ring_sum,    ///< sum over the ranks: the partial sum of a slice goes from rank to rank to its owner
};

/// Holds an operation of a layout, with what follows from its tensors.
struct Item {
  Op op;
  Action action = Action::compute;
  std::string_view collective;  ///< for Action::collective: one of collective_names
  /// Maps each axis of each operand to that of the result, or to no_axis if it is summed over.
  std::vector<std::vector<int>> axes;
  bool loops = false;    ///< it goes slice by slice
  Expr turns;            ///< extent of the axis that is sliced
  int sliced = no_axis;  ///< that axis of the result; no_axis: each turn makes, or adds to, all of it
  std::vector<int> sliced_of_operand;  ///< by operand
  uint32_t sums = 0;                   ///< for Action::ring_sum: the temporary for the partial sums, by slice
};

/// \return by axis of operand `operand`, the axis of the result
std::vector<int> axes_of_operand(const Schedule&, const Op&, size_t operand);
/// Returns the axis over ranks or over lanes, or no_axis.
int tagged(const Tensor&, Tag);
bool is_one(const Schedule&, Expr);
bool is_product(const Op&);
/// Returns true for the last two axes of a product's result. They are a matrix, also in slices.
bool is_matrix_axis(const Schedule&, const Op&, int axis_of_result);

/// Reports operations that cannot be understood. Functions have to be known, operands and axes have to fit,
/// and every tensor is computed once and before it is used.
void check_layout(const Schedule&, Diagnostics&);

/// Returns the operations with reshards between them, so that all ranks can do each of them now. Adds
/// temporaries.
std::vector<Item> reshard(Schedule&, const Lowering&, Diagnostics&);

}  // namespace chorale::host
