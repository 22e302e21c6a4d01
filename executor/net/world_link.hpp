/// \file
/// A rank's messages to ranks of other hosts.
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

/// A link for one life of a world, from a reset to the next: who makes another one then hears nothing of what
/// was sent before. A peer that goes says so, so that nobody takes it for a death.
///
/// Used by one thread at a time, except wake(); made by all ranks together.
class WorldLink {
 public:
  /// What progress() tells; see UcxLink::Events.
  struct Events {
    std::function<void(int from, std::span<const std::byte> header, Payload payload)> message;
    /// A peer has gone: it has done all that it will do.
    std::function<void(int peer)> left;
  };

  /// Collective.
  /// \throws RunError on all ranks if one of them cannot have a link
  WorldLink(World& world, Events events);

  /// Tells those it has met, and waits for a second at most until they have heard it.
  ~WorldLink();
  WorldLink(const WorldLink&) = delete;

  /// Whether the world has not been reset since it was made.
  bool current() const { return resets_ == world_.resets(); }

  /// Messages may come from there, or may still: it is to hear of our going.
  void meet(const std::vector<int>& peers);

  static constexpr size_t most_header = UcxLink::most_header - 8;  ///< bytes

  void send(int peer, std::span<const std::byte> header, Payload payload = {});

  /// Lets messages come and go; whether any did. A peer that is lost stops the world.
  bool progress();

  /// As UcxLink's.
  size_t unsent_bytes() const { return link_->unsent_bytes(); }
  bool flushed(UcxLink::Flush& flush) { return link_->flushed(flush); }
  void sleep(std::chrono::milliseconds limit) { link_->sleep(limit); }
  void wake() { link_->wake(); }

  /// Stops the world for want of memory for a message of so many bytes. For who sends and for who receives:
  /// nobody could catch it on their thread.
  void lack(size_t bytes);

  /// The world has stopped: losses are no news any more.
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
};

}  // namespace chorale::net
