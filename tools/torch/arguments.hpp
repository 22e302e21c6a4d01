/// \file
/// What torch.distributed calls a backend with, as what it stands for.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace chorale::torch_backend {

using Tensors = std::vector<at::Tensor>;

/// The one tensor of a list.
/// \param what  the call's name in torch.distributed, for messages here and below
/// \throws c10::Error of another number, or of one that is sparse
const at::Tensor& only(const Tensors& tensors, const char* what);

/// A list with a tensor for each rank, on the device of `one`.
/// \throws c10::Error if it is not
const Tensors& for_all_ranks(const Tensors& list, int ranks, const at::Tensor& one, const char* what);

/// As for_all_ranks(), if all of them have the shape and the type of `one`.
const Tensors& same_as(const at::Tensor& one, const Tensors& list, int ranks, const char* what);

/// Whether the tensors of a list differ in their numbers of elements.
bool uneven(const Tensors& list);

/// \throws c10::Error unless the root, and it alone, has a list
void check_root(int64_t root, size_t lists, int rank, int ranks, const char* what);

/// Rows of a tensor, a part for each rank; parts of one size where none are given.
/// \param side  "input" or "output", for messages
/// \throws c10::Error if they are not the whole tensor
Tensors rows_of(const at::Tensor& whole, std::vector<int64_t> rows, int ranks, const char* side);

/// A matrix with a row for each tensor of a list, as long as the longest.
at::Tensor rows_for(const Tensors& list);
/// The same, with what the tensors have at the beginning of the rows.
/// \throws c10::Error for a list of several types
at::Tensor in_rows(const Tensors& list);

}  // namespace chorale::torch_backend
