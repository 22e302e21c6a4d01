/// \file
/// Copies move data between a rank's memory and the messages of its RemoteEndpoint.
#pragma once

#include <cstddef>
#include <cstdint>

#include "executor/ucx/ucx_link.hpp"

namespace chorale::remote {

/// Represents the interface that each backend implements for its ranks' memory. The endpoints of different
/// backends differ only in this. The endpoint calls all functions under its lock, one at a time.
///
/// Copies may be asynchronous. Copies of one direction end in the order in which they were begun.
class Copies {
 public:
  virtual ~Copies() = default;

  /// Returns the most bytes of one copy, which are also the most bytes of one message.
  virtual size_t piece_bytes() const = 0;

  /// Begins a copy out of this rank's memory. Returns the payload that will hold the data when the copy has
  /// ended. Its `data` is null if there is no staging memory now. Staging becomes free again without any
  /// action of a peer.
  /// \param bytes  at least 1, at most piece_bytes()
  /// \throws std::bad_alloc, or RunError if the device refuses the copy
  virtual ucx::Payload copy_out(const char* from, size_t bytes) = 0;

  /// Begins a copy of a whole payload into this rank's memory. The caller may drop the payload afterwards.
  /// Returns false if there is no staging memory now.
  /// \param packets  true for packets, which a block may read while they are written. Then words of 64 bits
  ///                 must be written whole, and the flag of a line after its data
  /// \throws RunError if the device refuses the copy
  virtual bool copy_in(char* to, const ucx::Payload& payload, bool packets) = 0;

  // These return how many of the copies ever begun in this direction have ended.
  /// \throws RunError if a copy has failed
  virtual uint64_t ended_out() = 0;
  virtual uint64_t ended_in() = 0;

  /// Waits until all copies have ended.
  /// \throws RunError if a copy has failed
  virtual void finish() = 0;
};

}  // namespace chorale::remote
