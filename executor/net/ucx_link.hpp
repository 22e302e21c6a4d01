/// \file
/// Messages between processes of several hosts, by UCX: whole, of any size, in no order.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace chorale::net {

/// The bytes of a message.
struct Payload {
  std::shared_ptr<std::byte[]> data;
  size_t bytes = 0;

  Payload() = default;
  /// Of bytes that nobody has set.
  explicit Payload(size_t size)
      : data(size ? std::make_shared_for_overwrite<std::byte[]>(size) : nullptr), bytes(size) {}
};

/// One process's end. Peers are numbered by who uses it, who also carries the addresses from one to the
/// other.
///
/// Used by one thread at a time, except wake(). Connects to a peer with the first message to it.
class UcxLink {
 public:
  /// What progress() tells. None may throw, but `message` for want of memory, nor destroy the link.
  struct Events {
    std::function<void(std::span<const std::byte> header, Payload payload)> message;
    /// There is no way to a peer any more: told once, with what UCX says of it.
    std::function<void(int peer, const std::string& why)> lost;
    /// A message came for which there is no memory.
    std::function<void(size_t bytes)> too_large;
  };

  /// Why there cannot be a link in this process, with the remedy; "" if there can.
  static std::string missing();

  /// \throws RunError other with what UCX says, if it cannot be set up
  UcxLink(int peers, Events events);

  /// Drops what has not left yet: flush() before. Takes a second at most.
  ~UcxLink();
  UcxLink(const UcxLink&) = delete;
  UcxLink& operator=(const UcxLink&) = delete;

  /// What a peer gives to its connect().
  std::vector<std::byte> address() const;
  void connect(int peer, std::span<const std::byte> address);

  static constexpr size_t most_header = 1024;  ///< bytes

  void send(int peer, std::span<const std::byte> header, Payload payload = {});

  /// Lets messages come and go; whether any did.
  bool progress();

  /// Bytes of payload that have not left yet.
  size_t unsent_bytes() const;

  /// Whether everything sent before this call has left this process; ask again after progress(), with the
  /// same `flush`, until it has. To peers that are lost nothing is left to send.
  struct Flush {
    void* request = nullptr;
    bool begun = false;
  };
  bool flushed(Flush& flush);

  /// Sleeps until something has come, somebody calls wake(), or `limit` is over.
  void sleep(std::chrono::milliseconds limit);
  void wake();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace chorale::net
