/// \file
/// A UcxLink carries messages between processes of several hosts: whole, of any size, in no order.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace chorale::net {

/// Holds the bytes of a message.
struct Payload {
  std::shared_ptr<std::byte[]> data;
  size_t bytes = 0;

  Payload() = default;
  /// Makes a payload of uninitialised bytes.
  explicit Payload(size_t size)
      : data(size ? std::make_shared_for_overwrite<std::byte[]>(size) : nullptr), bytes(size) {}
};

/// A UcxLink is one process's end. Its user numbers the peers, and carries the addresses from one to the
/// other.
///
/// One thread at a time may use it; any thread may call wake(). It connects to a peer with the first message
/// to it.
class UcxLink {
 public:
  /// progress() calls these. None may throw, except `message` if memory runs out, and none may destroy the
  /// link.
  struct Events {
    std::function<void(std::span<const std::byte> header, Payload payload)> message;
    /// There is no way to a peer any more. It is told once, with what UCX says of it.
    std::function<void(int peer, const std::string& why)> lost;
    /// A message came for which there is no memory.
    std::function<void(size_t bytes)> too_large;
  };

  /// Returns why there cannot be a link in this process, with the remedy; "" if there can.
  static std::string missing();

  /// \throws RunError other with what UCX says, if it cannot be set up
  UcxLink(int peers, Events events);

  /// Drops what has not left yet, so wait for flushed() before. Takes a second at most.
  ~UcxLink();
  UcxLink(const UcxLink&) = delete;
  UcxLink& operator=(const UcxLink&) = delete;

  /// Returns the address that a peer gives to its connect().
  std::vector<std::byte> address() const;
  void connect(int peer, std::span<const std::byte> address);

  static constexpr size_t most_header = 1024;  ///< bytes

  void send(int peer, std::span<const std::byte> header, Payload payload = {});

  /// Lets messages come and go. Returns whether any did.
  bool progress();

  /// Returns the bytes of payload that have not left yet.
  size_t unsent_bytes() const;

  /// flushed() returns whether everything sent before its first call with a `flush` has left this process.
  /// Until it has, ask again after progress(), with the same `flush`. To lost peers nothing is left to send.
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
