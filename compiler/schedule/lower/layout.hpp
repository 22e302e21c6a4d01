#pragma once
/// \file
/// An Item says what an operation of a layout means: which axes correspond, and what must be transferred.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "chorale/schedule/lower.hpp"

namespace chorale::schedule {

/// Stands for a missing axis.
inline constexpr int no_axis = -1;

/// Says how streams perform an operation.
enum class Action : uint8_t {
  compute,     ///< each rank works alone
  gather,      ///< set: in each turn every rank receives a slice of one rank
  exchange,    ///< set: in turn i a slice goes to rank i, and another rank's slice comes to this rank
  collective,  ///< all ranks take part in each turn
  ring_sum,    ///< sum over the ranks: the partial sum of a slice goes from rank to rank to its owner
};

/// Holds an operation of a layout, and what follows from its tensors.
struct Item {
  Op op;
  Action action = Action::compute;
  std::string_view collective;  ///< for Action::collective: one of collective_names
  /// Maps each axis of each operand to an axis of the result, or to no_axis if it is summed over.
  std::vector<std::vector<int>> axes;
  bool loops = false;    ///< it is performed slice by slice
  Expr turns;            ///< extent of the sliced axis
  int sliced = no_axis;  ///< the sliced axis of the result; no_axis: each turn makes, or adds to, all of it
  std::vector<int> sliced_of_operand;  ///< by operand
  uint32_t sums = 0;                   ///< for Action::ring_sum: the temporary for partial sums, by slice
};

/// Returns, by axis of operand `operand`, the axis of the result.
std::vector<int> axes_of_operand(const Schedule&, const Op&, size_t operand);
/// Returns the axis over ranks or over streams, or no_axis.
int tagged(const Tensor&, Tag);
bool is_one(const Schedule&, Expr);
bool is_product(const Op&);
/// Returns whether an axis is one of the last two of a product's result. They form a matrix, also in slices.
bool is_matrix_axis(const Schedule&, const Op&, int axis_of_result);

/// Reports operations without a meaning. Functions must be known, operands and axes must fit, and every
/// tensor must be computed once and before it is used.
void check_layout(const Schedule&, Diagnostics&);

/// Returns the operations with reshards between them, so that the ranks can perform each of them. Adds
/// temporaries.
std::vector<Item> reshard(Schedule&, const Lowering&, Diagnostics&);

}  // namespace chorale::schedule
