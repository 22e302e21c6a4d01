/// \file
/// Words that a stream writes once all before it is done.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>

namespace chorale::cuda {

/// A few 64-bit words, written in the order they were added and enqueued with one call: each call costs the
/// host and the stream microseconds. The bytes of copies that the stream did before can be seen by who sees a
/// word.
class StreamWrites {
 public:
  static constexpr unsigned most = 4;

  /// \param word  in device memory, of this rank or mapped here
  void add(const uint64_t* word, uint64_t value);

  /// Enqueues what was added, if anything.
  /// \param what  they are, for the error
  /// \throws RunError if CUDA refuses them
  void enqueue(cudaStream_t stream, const char* what);

 private:
  std::array<CUstreamBatchMemOpParams, most> writes_ = {};
  unsigned count_ = 0;
};

}  // namespace chorale::cuda
