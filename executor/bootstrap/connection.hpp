/// \file
/// A connection of a rendezvous carries first a greeting, then frames.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "../system/shared_memory.hpp"
#include "frames.hpp"
#include "greeting.hpp"

namespace chorale::net {

using boost::asio::ip::tcp;

/// Keeps `file` from programs that this process starts and, while the result lives, from its forks. They may
/// outlive this process, and keep open what should end.
world::ClosedInForks keep_from_others(int file);

/// A Connection is one end. Its owner runs the io_context, which calls the callbacks.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  struct Listener {
    std::function<void()> met;  ///< the other side knows the secret: frames may be sent, and come
    std::function<void(const Frame&)> frame;
    /// The other side does not know the secret, or speaks something else. Until it closes it may be told so.
    std::function<void(const Greeting&)> refused;
    std::function<void()> closed;  ///< the other side has closed, or the connection is broken
  };

  Connection(tcp::socket socket, std::unique_ptr<Greeting> greeting);

  /// Greets the other side. The last call is of closed(), unless close() was called.
  void listen(Listener listener);
  void send(const Frame& frame) { send_bytes(encode(frame)); }
  bool sending() const { return !outgoing_.empty(); }
  void close();
  /// Limits the frames that come from now on. A longer one breaks the connection.
  void limit(size_t bytes) { reader_.limit(bytes); }
  const Greeting& greeting() const { return *greeting_; }
  /// Gives the socket away. Forks close it. Nothing may be under way in either direction but a read that
  /// finds nothing.
  world::Descriptor release();
  std::string peer() const;  ///< "1.2.3.4", without the port

 private:
  void read();
  void take(std::string_view bytes);
  void greet(std::string_view& bytes);
  void send_bytes(std::string bytes);
  void write();
  void drop();

  tcp::socket socket_;
  world::ClosedInForks closed_in_forks_;
  Listener listener_;
  std::unique_ptr<Greeting> greeting_;
  FrameReader reader_;
  std::deque<std::string> outgoing_;
  char part_[4096];
};

}  // namespace chorale::net
