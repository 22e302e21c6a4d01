/// \file
/// A WorldLink sends a rank's messages to ranks of other hosts.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "chorale/world.hpp"
#include "ucx_link.hpp"

namespace chorale::ucx {

/// Links this rank to other ranks from one reset of a world to the next. A link that is made after a reset
/// gets no messages from before it. A peer that leaves says goodbye, so that no rank takes it for dead.
///
/// One thread at a time may use it. Any thread may call wake(). The constructor is collective.
class WorldLink {
 public:
  /// Holds callbacks that progress() calls; see UcxLink::Events.
  struct Events {
    std::function<void(int from, std::span<const std::byte> header, Payload payload)> message;
    /// A peer has left and will send nothing more.
    std::function<void(int peer)> left;
  };

  /// Makes a link on every rank; collective.
  /// \throws RunError, on all ranks, if one of them cannot make its link
  WorldLink(World& world, Events events);

  /// Says goodbye to the connected peers after its messages have arrived. Waits for a second at most until
  /// the peers answer.
  ~WorldLink();
  WorldLink(const WorldLink&) = delete;

  /// Returns whether the world has not been reset since the link was made.
  bool current() const { return resets_ == world_.resets(); }

  /// Registers peers that may send messages, so that the destructor says goodbye to them.
  void connect(const std::vector<int>& peers);

  static constexpr size_t most_header = UcxLink::most_header - 8;  ///< bytes

  void send(int peer, std::span<const std::byte> header, Payload payload = {});

  /// Sends and receives pending messages. Returns whether there were any. It stops the world when a peer is
  /// lost.
  bool progress();

  // These functions are described in UcxLink.
  size_t unsent_bytes() const { return link_->unsent_bytes(); }
  bool flushed(UcxLink::Flush& flush) { return link_->flushed(flush); }
  void sleep(std::chrono::milliseconds limit) { link_->sleep(limit); }
  void wake() { link_->wake(); }

  /// Stops the world because there is no memory for a message of `bytes` bytes. Senders and receivers call
  /// it, because no code on their thread could catch an exception.
  void lack(size_t bytes);

  /// Stops reporting lost peers. Call it when the world has stopped.
  void be_quiet() { quiet_ = true; }

 private:
  void come(std::span<const std::byte> bytes, Payload payload);
  void lose(int peer, const std::string& why);
  enum class Word : uint32_t;
  void say(int peer, Word word, std::span<const std::byte> header, Payload payload);

  World& world_;
  const Events events_;
  const uint64_t resets_;  ///< the world's resets() when the link was made
  std::unique_ptr<UcxLink> link_;
  bool quiet_ = false;

  enum class Parting : uint8_t { none, left, heard };
  std::vector<Parting> parting_;  ///< by rank
  std::vector<bool> met_;         ///< by rank
  std::vector<int> unanswered_;   ///< peers whose goodbye is not answered yet
};

}  // namespace chorale::ucx
