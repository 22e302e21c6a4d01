/// \file
/// Checks the arguments with which torch.distributed calls a backend, and brings them into one form.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace chorale::torch_backend {

using Tensors = std::vector<at::Tensor>;

/// Returns the one tensor of a list.
/// \param what  the call's name in torch.distributed, for messages here and below
/// \throws c10::Error if there is another number of tensors, or if it is sparse
const at::Tensor& only(const Tensors& tensors, const char* what);

/// Returns the list after checking that it has a tensor for each rank, on the device of `one`.
/// \throws c10::Error if it has not
const Tensors& for_all_ranks(const Tensors& list, int ranks, const at::Tensor& one, const char* what);

/// Checks a list as for_all_ranks() does, and that all its tensors have the shape and the type of `one`.
const Tensors& same_as(const at::Tensor& one, const Tensors& list, int ranks, const char* what);

/// Returns true if the tensors of a list differ in their numbers of elements.
bool uneven(const Tensors& list);

/// Checks that only the root has a list.
/// \throws c10::Error unless the root, and it alone, has a list
void check_root(int64_t root, size_t lists, int rank, int ranks, const char* what);

/// Cuts the rows of a tensor into a part for each rank. If `rows` is empty, all parts have one size.
/// \param side  "input" or "output", for messages
/// \throws c10::Error if they are not the whole tensor
Tensors rows_of(const at::Tensor& whole, std::vector<int64_t> rows, int ranks, const char* side);

/// Makes a matrix with a row for each tensor of a list, as long as the longest.
at::Tensor rows_for(const Tensors& list);
/// Makes the matrix of rows_for() and copies each tensor to the beginning of its row.
/// \throws c10::Error for a list of several types
at::Tensor in_rows(const Tensors& list);

}  // namespace chorale::torch_backend
