/// \file
/// Copies move data between a rank's memory and the messages of its remote endpoint.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../ucx/ucx_link.hpp"

namespace chorale::remote {

/// A backend implements this interface for the memory that its ranks have. It is all that differs between the
/// endpoints of backends. The endpoint calls all functions under its lock, one at a time.
///
/// Copies may take time. Those of one direction end in the order in which they were begun.
class Copies {
 public:
  virtual ~Copies() = default;

  /// Returns the most bytes of one copy, which are also the most bytes of one message.
  virtual size_t piece_bytes() const = 0;

  /// Begins a copy out of this rank's memory. Returns the payload that will hold the data when the copy has
  /// ended. Its `data` is null if there is no room at present; room comes back without any act of a peer.
  /// \param bytes  at least 1, at most piece_bytes()
  /// \throws std::bad_alloc, or RunError if the device refuses it
  virtual net::Payload copy_out(const char* from, size_t bytes) = 0;

  /// Begins a copy of a whole payload into this rank's memory. The caller may drop the payload afterwards.
  /// Returns false if there is no room at present.
  /// \param packets  true for packets, which a block may read while they are written: words of 64 bits must
  ///                 come whole, and the flag of a line after its data
  /// \throws RunError if the device refuses it
  virtual bool copy_in(char* to, const net::Payload& payload, bool packets) = 0;

  // These return how many copies have ended, of all that were ever begun in this direction.
  /// \throws RunError if a copy has failed
  virtual uint64_t ended_out() = 0;
  virtual uint64_t ended_in() = 0;

  /// Waits until all copies have ended.
  /// \throws RunError if a copy has failed
  virtual void finish() = 0;
};

}  // namespace chorale::remote
