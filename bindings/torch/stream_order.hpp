/// \file
/// StreamOrder runs the calls of a process group one after the other, whatever their streams.
#pragma once

#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <optional>

namespace chorale::torch_backend {

/// Returns the number of the CUDA graph capture that the stream is in, and 0 if there is none.
uint64_t capture_of(const c10::Stream& stream);

/// Orders calls that are enqueued on several streams, because two runs of one plan must not overlap in time.
/// Calls in a capture are ordered after earlier calls of the same capture. Whoever replays a graph orders the
/// replays.
class StreamOrder {
 public:
  /// Makes `stream` wait for the last call, if that call was enqueued on another stream.
  void before_call(const c10::Stream& stream);
  /// Remembers that a call was enqueued on `stream` after before_call().
  void after_call(const c10::Stream& stream);
  /// Returns the stream of the last call outside of captures. It ends after all calls before it.
  const std::optional<c10::Stream>& last() const { return eager_.stream; }

 private:
  struct Call {
    std::optional<c10::Stream> stream = {};
    std::optional<c10::Event> end = {};
  };

  uint64_t capture_ = 0;  ///< the capture of the call that has begun; 0: none
  uint64_t captured_in_ = 0;
  Call eager_, captured_;  ///< the last call outside of captures, and the last one in captured_in_
};

}  // namespace chorale::torch_backend
