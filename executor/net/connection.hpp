/// \file
/// The frames of a rendezvous, and a connection that carries them.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "../world/shared_memory.hpp"

namespace chorale::net {

using boost::asio::ip::tcp;

/// The letters are those on the wire.
enum class FrameKind : char {
  hello = 'h',    ///< to rank 0: encode(Hello)
  gave_up = 'g',  ///< to rank 0: why
  waiting = 'w',  ///< from rank 0: heard; the text names the ranks that are missing
  joined = 'j',   ///< from rank 0: a Roster
  ready = 'r',    ///< to rank 0, of the lowest rank of another host: the last frame of its connection
  failed = 'f'    ///< from rank 0: a letter for the reason, then the message
};

struct Frame {
  FrameKind kind;
  std::string text;
};

/// As it goes over the wire.
std::string encode(const Frame& frame);

/// Neither programs that this process starts nor, while the result lives, its forks get `file`: they may
/// outlive it, and keep open what should end.
world::ClosedInForks keep_from_others(int file);

/// One end. Its owner runs the io_context; the callbacks are called from there.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  struct Listener {
    std::function<void(const Frame&)> frame;
    std::function<void(const std::string& seen)> foreign;  ///< the other side speaks something else
    std::function<void()> closed;                          ///< by the other side, or broken
  };

  explicit Connection(tcp::socket socket);

  /// From now on frames come; the last call is of foreign() or closed(), unless close() was called.
  void listen(Listener listener);
  void send(const Frame& frame);
  bool sending() const { return !outgoing_.empty(); }
  void close();
  /// Gives the socket away, closed in forks. Nothing may be under way in either direction but a read that
  /// finds nothing.
  world::Descriptor release();
  std::string peer() const;  ///< "1.2.3.4:567"

 private:
  void read();
  void take_frames();
  void write();
  void drop(const std::function<void()>& last_call);

  tcp::socket socket_;
  world::ClosedInForks closed_in_forks_;
  Listener listener_;
  std::string incoming_;
  std::deque<std::string> outgoing_;
  char part_[4096];
};

}  // namespace chorale::net
