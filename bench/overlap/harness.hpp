/// \file
/// Checks and times candidates.
#pragma once

#include <cuda_runtime_api.h>

#include <chorale/world.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/common/processes.hpp"
#include "bench/overlap/data.hpp"

namespace chorale::overlap {

/// Owns device memory for elements of bf16.
class Matrix {
 public:
  explicit Matrix(uint64_t elements);
  ~Matrix();
  Matrix(const Matrix&) = delete;
  void* data() const { return data_; }
  uint64_t elements() const { return elements_; }
  uint64_t bytes() const { return elements_ * 2; }

 private:
  void* data_ = nullptr;
  uint64_t elements_;
};

/// Describes one thing that is timed.
struct Candidate {
  std::string name;
  std::function<void(cudaStream_t)> enqueue;
  /// These say which results the candidate makes.
  bool makes_gathered = false, makes_product = false;
  double ms = 0;  ///< the time of a call on the slowest rank, the median of the rounds
};

/// Holds the memory and the candidates of one shape.
class Workload {
 public:
  virtual ~Workload() = default;
  virtual std::vector<Candidate>& candidates() = 0;
  /// Enqueues exact inputs, and overwrites the results with wrong values.
  virtual void reset(cudaStream_t stream, uint64_t salt) = 0;
  /// Enqueues counts of wrong elements.
  virtual void compare(cudaStream_t stream, const Candidate&, uint64_t salt, uint64_t* wrong) = 0;
  /// Enqueues inputs for timing.
  virtual void randomise(cudaStream_t stream) = 0;
};

using bench::Wrong;

struct Timing {
  int calls = 10, rounds = 5;
  bool graphs = true;
};

/// Checks every candidate, times all of them in turns, and checks them again.
/// \throws Wrong on all ranks if a result is wrong
class Bench {
 public:
  Bench(World& world, Timing timing);
  ~Bench();
  Bench(const Bench&) = delete;

  void run(Workload& workload);

 private:
  void verify(Workload& workload, uint64_t salt);
  double once(const std::function<void()>& calls);
  void finish();

  World& world_;
  const Timing timing_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  uint64_t* wrong_ = nullptr;
};

}  // namespace chorale::overlap
