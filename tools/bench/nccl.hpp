/// \file
/// Runs NCCL for comparison. The library is loaded on first use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "chorale/exchange.hpp"
#include "chorale/executor.hpp"

namespace chorale::tools {

/// Turns NVLink multicast off, unless NCCL_NVLS_ENABLE says otherwise. Call it before ranks start.
void quieten_nccl();

/// Returns the variable of the environment that replaces `max_ctas` of join(), such as NCCL_MAX_CTAS; null if
/// none is set.
const char* variable_for_ctas();

/// Returns "NVLink multicast off", or which setting overrides it.
/// \param nvls  the variable NCCL_NVLS_ENABLE; null if it is not set
std::string multicast_words(const char* nvls);

/// Holds one rank's communicator.
class Nccl {
 public:
  /// Says what moves data where NCCL has a choice.
  enum class Policy {
    normal,   ///< NCCL's default
    zero_cta  ///< copy engines, where symmetric windows allow it; since NCCL 2.28
  };

  /// Joins a communicator. Collective over the world, through which NCCL's ranks connect. Returns null on all
  /// ranks if NCCL is not available on one of them, and sets `why`.
  /// \param max_ctas  the most thread blocks of a call, as NCCL_MAX_CTAS; 0: NCCL's default
  /// \throws RunError if the world has stopped
  static std::unique_ptr<Nccl> join(World&, std::string& why, Policy = Policy::normal, uint32_t max_ctas = 0);
  ~Nccl();

  /// Allocates memory in a symmetric window, with which NCCL runs its symmetric kernels. Collective; the
  /// memory lives as long as the communicator.
  /// \throws RunError resources, on all ranks, if one of them cannot, and UsageError if this NCCL has no such
  ///         windows
  std::byte* allocate_symmetric(World&, uint64_t bytes);

  /// \return the reason why NCCL cannot run the collective; "" if it can
  static std::string refuses(const std::string& collective, bool in_place, DType);

  /// Enqueues one call.
  /// \param sizes  the bytes of this rank's input and output
  void enqueue(const std::string& collective, const void* in, void* out, MessageSizes sizes, DType, ReduceOp,
               void* stream);

  /// Enqueues messages as one group, as chorale::Exchange does.
  void exchange(std::span<const SendTo> sends, std::span<const RecvFrom> recvs, void* stream);

  std::string version() const;  ///< "2.28.9"

 private:
  struct State;
  explicit Nccl(std::unique_ptr<State>);
  std::unique_ptr<State> state_;
};

}  // namespace chorale::tools
