/// \file
/// An Invitation lets ranks that know no common address join a world.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>

namespace chorale {

/// Names a world that ranks of one host can join with World::join(). Any process of the host may make an
/// invitation, even one that is no rank. Hand its bytes to the ranks by any means:
///
///     Invitation invitation = Invitation::make();              // once, in any process
///     send_to_ranks(invitation.encode());
///     …
///     World world = World::join(*Invitation::decode(received), rank, ranks);   // on each rank
///
/// The ranks meet in the process that made the invitation, so that process has to live until all ranks have
/// joined. An invitation serves one world. The bytes contain a secret, and whoever has them can join in
/// place of a rank.
class Invitation {
 public:
  static constexpr size_t bytes = 96;

  /// Makes an invitation. It opens a port of 127.0.0.1 and starts a thread, which waits without limit for the
  /// first rank. Both end when the ranks have joined or have failed to join. An invitation that no rank uses
  /// keeps them until the process ends. A fork of this process does not have them.
  /// \throws RunError resources if this process cannot open more files or start more threads; other if it
  ///         gets no port
  /// \throws UsageError if this machine has no random numbers
  static Invitation make();

  /// Returns the invitation as bytes that you can send to the ranks. decode() reads them.
  std::array<std::byte, bytes> encode() const { return data_; }

  /// Reads an invitation. Returns none if `data` is not the bytes of encode() of this version of invitations,
  /// for example if a byte has changed or if all bytes are zero.
  static std::optional<Invitation> decode(std::span<const std::byte> data);

  bool operator==(const Invitation&) const = default;

 private:
  Invitation() = default;

  std::array<std::byte, bytes> data_{};  ///< laid out as in executor/bootstrap/invitation.cpp
};

}  // namespace chorale
