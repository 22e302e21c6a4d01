/// \file
/// A proxy lets the copy engine copy, and words in host memory tell that the copies have ended.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "executor/cuda/device/stream.hpp"

namespace chorale::cuda {

/// Copies by the copy engine. The host writes words after events tell it that the copies before them have
/// ended; kernels see the words over PCIe. Streams could write them too. But such writes go through the few
/// queues that all streams and graphs of a process share. There they wait behind kernels that cannot begin
/// until the word is written: see docs/decisions/0021-words-by-the-host.md.
///
/// Only one thread at a time may use it.
class ProxyCopies {
 public:
  /// Holds a few words of 64 bits, which are written in this order.
  class Words {
   public:
    static constexpr unsigned most = 3;

    /// Adds a word.
    /// \param word in host memory, of this process or mapped here
    void add(uint64_t* word, uint64_t value);
    void write() const;

   private:
    struct One {
      uint64_t* word;
      uint64_t value;
    };
    std::array<One, most> all_;
    unsigned count_ = 0;
  };

  /// \param what names its user in errors
  /// \param streams the number of copies that may run at once
  ProxyCopies(const char* what, size_t streams);

  /// Enqueues a copy.
  /// \param which the stream. Copies on one stream arrive in the order in which they are given. A copy to
  /// another peer than the copy before it may have to wait for that one
  /// \throws RunError if CUDA refuses it
  void copy(void* to, const void* from, uint64_t bytes, size_t which);

  /// Writes `words` after all earlier copies have ended and all earlier words are written.
  void then(const Words& words);

  /// Writes the words whose copies have ended. Returns false if nothing is pending.
  /// \throws RunError if a copy has failed. All words that wait for a copy are then dropped
  bool work();

  /// Waits for all copies and writes all words.
  /// \throws RunError as work() does
  void finish();

  /// Waits for all copies and drops the words.
  void drop();

 private:
  bool oldest_has_ended();

  struct Waiting {
    uint64_t copies;  ///< the number of copies that must have ended
    Words words;
  };

  const char* what_;
  std::vector<OwnedStream> streams_;
  std::vector<OwnedEvent> events_;  ///< used for the copies in turn
  uint64_t copies_ = 0, ended_ = 0;
  std::deque<Waiting> waiting_;
};

}  // namespace chorale::cuda
