/// \file
/// Makes the workloads that are timed, and the times that are needed to judge them.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/overlap/harness.hpp"
#include "bench/overlap/shape.hpp"
#include "tools/bench/nccl.hpp"

namespace chorale::overlap {

struct FormTime {
  std::string name;
  double ms = 0;
};

/// Holds the times of a workload that has run, in milliseconds.
struct Judgement {
  std::optional<double> serial;      ///< NCCL and cuBLAS, one after the other
  std::optional<double> collective;  ///< NCCL alone
  double product = 0;                ///< one product alone
  double transfers = 0;              ///< ours alone, by copy engines
  double slices = 0;                 ///< the products of the slices alone
  double sum = 0;                    ///< the sum of the ranks' products alone
  std::optional<double> torch;       ///< PyTorch's fused operation
  std::vector<FormTime> forms;       ///< ours, the fastest first

  /// Returns the larger time of the two halves when each runs alone.
  double ideal() const { return std::max(product, collective.value_or(transfers)); }
  /// Returns max((D-1) x + g, D g) for a transfer x and a product g of one slice, plus the sum.
  double bound(int ranks) const;
};

class Judged : public Workload {
 public:
  virtual Judgement judgement() const = 0;
};

/// Make the workloads.
/// \param nccl  null to leave NCCL out
/// \param only  a part of the names of the forms to time
std::unique_ptr<Judged> allgather_then_matmul(World& world, tools::Nccl* nccl, Shape shape,
                                              const std::string& only);
std::unique_ptr<Judged> matmul_then_reduce_scatter(World& world, tools::Nccl* nccl, Shape shape,
                                                   const std::string& only);

}  // namespace chorale::overlap
