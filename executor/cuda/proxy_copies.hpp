/// \file
/// Copies that a proxy has the copy engine do, and words of the host's memory that say so.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "stream.hpp"

namespace chorale::cuda {

/// Words are written by the host, once events say that the copies before them have ended; kernels see them
/// over PCIe. Streams could write them too. But such writes go to the GPU by the few queues that all streams
/// and graphs of a process share, and stand there behind kernels that cannot begin until the word is there:
/// see docs/decisions/0021-words-by-the-host.md.
///
/// Used by one thread at a time.
class ProxyCopies {
 public:
  /// A few words of 64 bits, written in this order.
  class Words {
   public:
    static constexpr unsigned most = 3;

    /// \param word  in the host's memory; of this process, or mapped here
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

  /// \param what     it works for, in errors
  /// \param streams  copies that may go on at once
  ProxyCopies(const char* what, size_t streams);

  /// \param which  of the streams. Copies of one come in the order in which they are given; one that goes to
  ///               another peer than the one before it may have to wait for that
  /// \throws RunError if CUDA refuses it
  void copy(void* to, const void* from, uint64_t bytes, size_t which);

  /// Once all copies that were given before have ended, and behind all words that were.
  void then(const Words& words);

  /// Writes what may be written. False: there is nothing that it waits for.
  /// \throws RunError if a copy has failed. All that waited for one is forgotten then
  bool work();

  /// Waits for all copies, and writes all words.
  /// \throws RunError as work()
  void finish();

  /// Waits for all copies, and forgets the words.
  void drop();

 private:
  bool oldest_has_ended();

  struct Waiting {
    uint64_t copies;  ///< so many have to have ended
    Words words;
  };

  const char* what_;
  std::vector<OwnedStream> streams_;
  std::vector<OwnedEvent> events_;  ///< of the copies, in turns
  uint64_t copies_ = 0, ended_ = 0;
  std::deque<Waiting> waiting_;
};

}  // namespace chorale::cuda
