/// \file
/// A UcxLink sends messages between processes of several hosts. Messages may have any size, arrive whole, and
/// may arrive in any order.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace chorale::ucx {

/// Holds the bytes of a message.
struct Payload {
  std::shared_ptr<std::byte[]> data;
  size_t bytes = 0;

  Payload() = default;
  /// Makes a payload of uninitialised bytes.
  explicit Payload(size_t size)
      : data(size ? std::make_shared_for_overwrite<std::byte[]>(size) : nullptr), bytes(size) {}
};

/// Represents one process's end of the links. Its user numbers the peers and passes the addresses between
/// them.
///
/// One thread at a time may use it. Any thread may call wake(). It connects to a peer when it sends the first
/// message there.
class UcxLink {
 public:
  /// Holds callbacks that progress() calls. They must not throw, except `message` if memory runs out, and
  /// must not destroy the link.
  struct Events {
    std::function<void(std::span<const std::byte> header, Payload payload)> message;
    /// The link calls this once per peer whose connection is lost, with UCX's error.
    std::function<void(int peer, const std::string& why)> lost;
    /// The link calls this when a message arrives for which there is no memory.
    std::function<void(size_t bytes)> too_large;
  };

  /// Returns why this process cannot make a link, with the remedy; "" if it can.
  static std::string missing();

  /// \throws RunError other, with UCX's error, if the link cannot be set up
  UcxLink(int peers, Events events);

  /// Drops unsent messages, so wait for flushed() before. It takes a second at most.
  ~UcxLink();
  UcxLink(const UcxLink&) = delete;
  UcxLink& operator=(const UcxLink&) = delete;

  /// Returns the address that a peer passes to its connect().
  std::vector<std::byte> address() const;
  void connect(int peer, std::span<const std::byte> address);

  static constexpr size_t most_header = 1024;  ///< bytes

  void send(int peer, std::span<const std::byte> header, Payload payload = {});

  /// Sends and receives pending messages. Returns whether there were any.
  bool progress();

  /// Returns the payload bytes that have not left this process yet.
  size_t unsent_bytes() const;

  /// Represents the state of a flush. flushed() returns whether everything that was sent before its first
  /// call with this `flush` has left this process. Until it returns true, call it again after progress(),
  /// with the same `flush`. Messages to lost peers do not count.
  struct Flush {
    void* request = nullptr;
    bool begun = false;
  };
  bool flushed(Flush& flush);

  /// Sleeps until a message arrives, a thread calls wake(), or `limit` has passed.
  void sleep(std::chrono::milliseconds limit);
  void wake();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace chorale::ucx
