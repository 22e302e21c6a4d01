/// \file
/// A Connection is a TCP connection of a rendezvous. It carries first a greeting and then frames.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "executor/system/shared_memory.hpp"
#include "frames.hpp"
#include "greeting.hpp"

namespace chorale::bootstrap {

using boost::asio::ip::tcp;

/// Closes `file` in programs that this process executes and, while the result lives, in its forks. They may
/// outlive this process, and would keep the connection open.
system::ClosedInForks keep_from_others(int file);

/// Represents one end of a connection. Its owner runs the io_context, which calls the callbacks.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  struct Listener {
    std::function<void()> met;  ///< the other end knows the secret, so frames can be sent and received
    std::function<void(const Frame&)> frame;
    /// The other end does not know the secret, or uses another protocol. You may send it the reason until it
    /// closes.
    std::function<void(const Greeting&)> refused;
    std::function<void()> closed;  ///< the other end has closed, or the connection is broken
  };

  Connection(tcp::socket socket, std::unique_ptr<Greeting> greeting);

  /// Starts the greeting and the callbacks. The last callback is closed(), unless you call close().
  void listen(Listener listener);
  void send(const Frame& frame) { send_bytes(encode(frame)); }
  bool sending() const { return !outgoing_.empty(); }
  void close();
  /// Limits the length of frames that arrive from now on. A longer frame breaks the connection.
  void limit(size_t bytes) { reader_.limit(bytes); }
  const Greeting& greeting() const { return *greeting_; }
  /// Releases the socket to the caller. Forks close it. No transfer may be in progress, except a read that
  /// gets no data.
  system::Descriptor release();
  std::string peer() const;  ///< "1.2.3.4", without the port

 private:
  void read();
  void take(std::string_view bytes);
  void greet(std::string_view& bytes);
  void send_bytes(std::string bytes);
  void write();
  void drop();

  tcp::socket socket_;
  system::ClosedInForks closed_in_forks_;
  Listener listener_;
  std::unique_ptr<Greeting> greeting_;
  FrameReader reader_;
  std::deque<std::string> outgoing_;
  char part_[4096];
};

}  // namespace chorale::bootstrap
