/// \file
/// The buffers of one rank's run: filled from the oracle, and compared with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "chorale/executor.hpp"
#include "tools/device.hpp"
#include "tools/oracle.hpp"

namespace chorale::tools {

/// Bytes behind every buffer that nothing may touch.
inline constexpr uint64_t guard_bytes = 64;

/// Where input and output of one size are.
struct Buffers {
  std::byte *in = nullptr, *out = nullptr;
  std::byte* end = nullptr;  ///< behind the last byte that may be touched: the guard
  MessageSizes sizes;
  bool in_place = false;
};

/// In place, the smaller of input and output is this rank's part of the larger one, as in NCCL; `second` is
/// then not used.
Buffers place(std::byte* first, std::byte* second, const std::string& collective, bool in_place,
              uint32_t rank, MessageSizes sizes);

/// What a run has got wrong.
struct Findings {
  uint64_t elements = 0;  ///< wrong ones
  std::string what;       ///< a sentence; empty if nothing is wrong
};

class CheckRun {
 public:
  CheckRun(Device& device, const Oracle& oracle, uint32_t rank, DType dtype, const Buffers& buffers)
      : device_(device), oracle_(oracle), rank_(rank), dtype_(dtype), buffers_(buffers) {}

  /// New input, and an output that is not right by chance or from before. Another `turn` gives other data. A
  /// barrier has to follow: no rank starts into memory that its owner still fills.
  void fill(uint64_t turn);

  /// The whole output, the guard behind it and, out of place, the input.
  Findings compare(uint64_t turn);

 private:
  Device& device_;
  const Oracle& oracle_;
  uint32_t rank_;
  DType dtype_;
  Buffers buffers_;
};

}  // namespace chorale::tools
