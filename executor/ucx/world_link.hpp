/// \file
/// A WorldLink carries a rank's messages to ranks of other hosts.
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

namespace chorale::net {

/// Links this rank to others from one reset of a world to the next. A link that is made after a reset hears
/// nothing of what was sent before. A peer that goes says so, so that nobody takes it for dead.
///
/// One thread at a time may use it; any thread may call wake(). All ranks make it together.
class WorldLink {
 public:
  /// progress() calls these; see UcxLink::Events.
  struct Events {
    std::function<void(int from, std::span<const std::byte> header, Payload payload)> message;
    /// A peer has gone: it has done all that it will do.
    std::function<void(int peer)> left;
  };

  /// Collective: makes a link on every rank.
  /// \throws RunError on all ranks if one of them cannot have a link
  WorldLink(World& world, Events events);

  /// Says goodbye to the peers it has met, when its messages have arrived. Waits for a second at most until
  /// they have heard it.
  ~WorldLink();
  WorldLink(const WorldLink&) = delete;

  /// Returns whether the world has not been reset since this was made.
  bool current() const { return resets_ == world_.resets(); }

  /// Notes peers from which messages may come, so that the destructor says goodbye to them.
  void meet(const std::vector<int>& peers);

  static constexpr size_t most_header = UcxLink::most_header - 8;  ///< bytes

  void send(int peer, std::span<const std::byte> header, Payload payload = {});

  /// Lets messages come and go. Returns whether any did. A peer that is lost stops the world.
  bool progress();

  // These are UcxLink's.
  size_t unsent_bytes() const { return link_->unsent_bytes(); }
  bool flushed(UcxLink::Flush& flush) { return link_->flushed(flush); }
  void sleep(std::chrono::milliseconds limit) { link_->sleep(limit); }
  void wake() { link_->wake(); }

  /// Stops the world because there is no memory for a message of so many bytes. Senders and receivers call
  /// it, because nobody could catch an exception on their thread.
  void lack(size_t bytes);

  /// Reports no more losses, because the world has stopped.
  void be_quiet() { quiet_ = true; }

 private:
  void come(std::span<const std::byte> bytes, Payload payload);
  void lose(int peer, const std::string& why);
  enum class Word : uint32_t;
  void say(int peer, Word word, std::span<const std::byte> header, Payload payload);

  World& world_;
  const Events events_;
  const uint64_t resets_;  ///< of the world, when this was made
  std::unique_ptr<UcxLink> link_;
  bool quiet_ = false;

  enum class Parting : uint8_t { none, left, heard };
  std::vector<Parting> parting_;  ///< by rank
  std::vector<bool> met_;         ///< by rank
  std::vector<int> unanswered_;   ///< peers that have said goodbye, and have not been told that it was heard
};

}  // namespace chorale::net
