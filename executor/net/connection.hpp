/// \file
/// A connection of a rendezvous: first a greeting, then frames.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "../world/shared_memory.hpp"
#include "frames.hpp"
#include "greeting.hpp"

namespace chorale::net {

using boost::asio::ip::tcp;

/// Neither programs that this process starts nor, while the result lives, its forks get `file`: they may
/// outlive it, and keep open what should end.
world::ClosedInForks keep_from_others(int file);

/// One end. Its owner runs the io_context; the callbacks are called from there.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  struct Listener {
    std::function<void()> met;  ///< the other side knows the secret: frames may be sent, and come
    std::function<void(const Frame&)> frame;
    /// The other side does not know it, or speaks something else. It may still be told so, until it closes.
    std::function<void(const Greeting&)> refused;
    std::function<void()> closed;  ///< by the other side, or broken
  };

  Connection(tcp::socket socket, std::unique_ptr<Greeting> greeting);

  /// Greets the other side. The last call is of closed(), unless close() was called.
  void listen(Listener listener);
  void send(const Frame& frame) { send_bytes(encode(frame)); }
  bool sending() const { return !outgoing_.empty(); }
  void close();
  /// Frames that are longer, and come from now on, break the connection.
  void limit(size_t bytes) { reader_.limit(bytes); }
  const Greeting& greeting() const { return *greeting_; }
  /// Gives the socket away, closed in forks. Nothing may be under way in either direction but a read that
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
