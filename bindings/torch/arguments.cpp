#include "arguments.hpp"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace chorale::torch_backend {

const at::Tensor& only(const Tensors& tensors, const char* what) {
  TORCH_CHECK(tensors.size() == 1, "chorale: ", what, " of one tensor, not of ", tensors.size());
  TORCH_CHECK(!tensors[0].is_sparse(), "chorale: ", what, " of dense tensors only");
  return tensors[0];
}

const Tensors& for_all_ranks(const Tensors& list, int ranks, const at::Tensor& one, const char* what) {
  TORCH_CHECK(list.size() == size_t(ranks), "chorale: ", what, " has a list of ", list.size(),
              " tensors for ", ranks, " ranks");
  for (const at::Tensor& tensor : list) {
    TORCH_CHECK(!tensor.is_sparse() && tensor.device() == one.device(), "chorale: ", what,
                " has dense tensors of one device, not on ", one.device().str(), " and ",
                tensor.device().str());
  }
  return list;
}

const Tensors& same_as(const at::Tensor& one, const Tensors& list, int ranks, const char* what) {
  for (const at::Tensor& tensor : for_all_ranks(list, ranks, one, what)) {
    TORCH_CHECK(tensor.sizes() == one.sizes() && tensor.scalar_type() == one.scalar_type(), "chorale: ", what,
                " has tensors of one shape and type, not ", one.sizes(), " and ", tensor.sizes());
  }
  return list;
}

bool uneven(const Tensors& list) {
  return std::any_of(list.begin(), list.end(),
                     [&list](const at::Tensor& part) { return part.numel() != list[0].numel(); });
}

void check_root(int64_t root, size_t lists, int rank, int ranks, const char* what) {
  TORCH_CHECK(root >= 0 && root < ranks, "chorale: ", what, " has root ", root, " of ", ranks, " ranks");
  TORCH_CHECK(lists == (root == rank ? 1u : 0u), "chorale: ", what, " has one list on the root, rank ", root,
              ", and none on others; rank ", rank, " has ", lists);
}

Tensors rows_of(const at::Tensor& whole, std::vector<int64_t> rows, int ranks, const char* side) {
  TORCH_CHECK(whole.dim() > 0 && whole.is_contiguous(),
              "chorale: all_to_all_single needs contiguous tensors");
  if (rows.empty()) {
    TORCH_CHECK(whole.size(0) % ranks == 0, "chorale: all_to_all_single has an ", side, " of ", whole.size(0),
                " rows, which ", ranks, " ranks do not share alike, and no split sizes");
    rows.assign(size_t(ranks), whole.size(0) / ranks);
  }
  int64_t all = 0;
  for (const int64_t part : rows) {
    TORCH_CHECK(part >= 0, "chorale: all_to_all_single has an ", side, " split of ", part, " rows");
    all += part;
  }
  TORCH_CHECK(rows.size() == size_t(ranks) && all == whole.size(0), "chorale: all_to_all_single has an ",
              side, " of ", whole.size(0), " rows for ", ranks, " ranks, and splits ", rows);
  return whole.split_with_sizes(rows);
}

at::Tensor rows_for(const Tensors& list) {
  int64_t longest = 0;
  for (const at::Tensor& tensor : list) longest = std::max(longest, tensor.numel());
  return at::empty({int64_t(list.size()), longest}, list[0].options().requires_grad(false));
}

at::Tensor in_rows(const Tensors& list) {
  const at::Tensor rows = rows_for(list);
  for (size_t row = 0; row < list.size(); ++row) {
    TORCH_CHECK(list[row].scalar_type() == rows.scalar_type(),
                "chorale: a list has tensors of one type, not ", rows.scalar_type(), " and ",
                list[row].scalar_type());
    rows[int64_t(row)].narrow(0, 0, list[row].numel()).copy_(list[row].reshape(-1));
  }
  return rows;
}

}  // namespace chorale::torch_backend
