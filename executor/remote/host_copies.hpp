/// \file
/// HostCopies is for ranks whose memory is host memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "copies.hpp"

namespace chorale::remote {

/// Copies synchronously: each copy has ended when the call returns. Each payload is allocated separately.
class HostCopies final : public Copies {
 public:
  size_t piece_bytes() const override { return size_t{4} << 20; }
  ucx::Payload copy_out(const char* from, size_t bytes) override;
  bool copy_in(char* to, const ucx::Payload& payload, bool packets) override;
  uint64_t ended_out() override { return out_; }
  uint64_t ended_in() override { return in_; }
  void finish() override {}

 private:
  uint64_t out_ = 0, in_ = 0;
};

}  // namespace chorale::remote
