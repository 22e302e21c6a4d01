/// \file
/// Strangers are connections to rank 0 that have no seat in the world yet. Complaints tell of those that get
/// none.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "connection.hpp"

namespace chorale::net {

/// Holds the strangers. Anybody can be one, so their number and their time are limited. A rank that loses its
/// connection by these limits calls again.
class Strangers {
 public:
  /// The limit is this many more than the ranks of the world, because all ranks may call at once.
  static constexpr size_t most_others = 64;
  static constexpr std::chrono::seconds patience{5};

  /// This is told of a connection that is dropped, before the connection is closed.
  using Dropped = std::function<void(const Connection& connection, const std::string& why)>;

  Strangers(boost::asio::io_context& io, int ranks, Dropped dropped)
      : io_(io), most_(size_t(ranks) + most_others), dropped_(std::move(dropped)) {}
  ~Strangers();

  /// Adds one. If there are too many, the oldest of the address that has most of them goes, so that a flood
  /// from one address does not keep others out.
  void add(std::shared_ptr<Connection> connection);
  /// Takes one out, because it has a seat now or is closed. Returns null if it is no stranger.
  std::shared_ptr<Connection> take(const Connection& connection);
  /// Drops one to make room, for example when no more files may be open. Returns false if there are none.
  bool drop_one(const std::string& why);
  std::vector<std::shared_ptr<Connection>> all() const;

 private:
  struct One {
    std::shared_ptr<Connection> connection;
    std::string address;
    uint64_t number;  ///< its number among all that were added
    boost::asio::steady_timer time;
  };
  using Place = std::list<One>::iterator;

  void drop(Place place, const std::string& why);

  boost::asio::io_context& io_;
  const size_t most_;
  const Dropped dropped_;
  std::list<One> all_;  ///< the oldest first
  uint64_t added_ = 0;
};

/// Warns of connections that are no ranks: of the first of each address, and of few addresses.
class Complaints {
 public:
  static constexpr size_t most_addresses = 8;

  /// \param what  a sentence that names the address
  void note(const std::string& address, const std::string& what);
  /// Returns the last of all that were noted, or "".
  const std::string& last() const { return last_; }

 private:
  std::set<std::string> said_;  ///< addresses
  std::string last_;
};

/// Warns in the log of this library, which goes to standard error.
void warn(const std::string& text);

}  // namespace chorale::net
