#pragma once
/// \file
/// Defines what several of the ported programs share.

#include <chorale/dsl.hpp>
#include <cstdint>
#include <vector>

namespace ported {

using chorale::dsl::Here;
using chorale::dsl::MemoryChannel;
using chorale::dsl::Program;
using chorale::dsl::SyncType;

/// Returns ranks [first, end) without `rank`, in ascending order.
inline std::vector<int> others(int rank, int first, int end) {
  std::vector<int> list;
  for (int other = first; other < end; ++other) {
    if (other != rank) list.push_back(other);
  }
  return list;
}

/// Returns ranks [0, ranks).
inline std::vector<int> all(int ranks) { return others(-1, 0, ranks); }

/// Returns the position of `rank` among the others of `of`.
inline int slot(int rank, int of) { return rank < of ? rank : rank - 1; }

/// Returns a channel from `rank` to each of `peers`.
inline std::vector<MemoryChannel> channels_to(Program& program, const std::vector<int>& peers, int rank) {
  std::vector<MemoryChannel> channels;
  for (const int peer : peers) channels.push_back({program, peer, rank});
  return channels;
}

/// Signals every peer, then waits for every peer.
inline void sync(const std::vector<MemoryChannel>& peers, int64_t tb, bool relaxed,
                 Here at = Here::current()) {
  for (const MemoryChannel& peer : peers) peer.signal(tb, SyncType::both, relaxed, at);
  for (const MemoryChannel& peer : peers) peer.wait(tb, SyncType::both, relaxed, at);
}

/// Synchronises with a peer, after which its buffers may be used.
inline void enter(const MemoryChannel& peer, int64_t tb, Here at = Here::current()) {
  sync({peer}, tb, true, at);
}

/// Synchronises with a peer, after which the moved data has arrived at both.
inline void leave(const MemoryChannel& peer, int64_t tb, Here at = Here::current()) {
  peer.signal(tb, SyncType::before, false, at);
  peer.wait(tb, SyncType::after, false, at);
}

}  // namespace ported
