/// \file
/// Fills the buffers of one rank's run from the oracle, and compares them with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "chorale/executor.hpp"
#include "tools/device.hpp"
#include "tools/oracle.hpp"

namespace chorale::tools {

/// Counts the bytes after every buffer that a run must not write.
inline constexpr uint64_t guard_bytes = 64;

/// Holds the places of input and output for one size.
struct Buffers {
  std::byte *in = nullptr, *out = nullptr;
  std::byte* end = nullptr;  ///< the guard, after the last byte that the run may write
  MessageSizes sizes;
  bool in_place = false;
};

/// Places input and output in memory. In place, the smaller of the two is this rank's part of the larger one,
/// as in NCCL, and `second` is not used.
Buffers place(std::byte* first, std::byte* second, const std::string& collective, bool in_place,
              uint32_t rank, MessageSizes sizes);

/// Describes the errors in a run's result.
struct Findings {
  uint64_t elements = 0;  ///< the number of wrong elements
  std::string what;       ///< a sentence; empty if nothing is wrong
};

class CheckRun {
 public:
  CheckRun(Device& device, const Oracle& oracle, uint32_t rank, DType dtype, const Buffers& buffers)
      : device_(device), oracle_(oracle), rank_(rank), dtype_(dtype), buffers_(buffers) {}

  /// Fills in new input, and an output that cannot be right by chance or from an earlier run. Another `turn`
  /// gives other data. The caller runs a barrier next, so that no rank writes into memory that its owner
  /// still fills.
  void fill(uint64_t turn);

  /// Compares the whole output, the guard after it and, out of place, the input.
  Findings compare(uint64_t turn);

 private:
  Device& device_;
  const Oracle& oracle_;
  uint32_t rank_;
  DType dtype_;
  Buffers buffers_;
};

}  // namespace chorale::tools
