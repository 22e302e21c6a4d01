/// \file
/// Strangers are connections to rank 0 that have no seat in the world yet. Complaints warn about connections
/// that never get one.
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

namespace chorale::bootstrap {

/// Holds the strangers. Anyone can connect, so their number and their time are limited. A rank that loses its
/// connection because of these limits calls again.
class Strangers {
 public:
  /// Limits the strangers, in addition to the number of ranks, because all ranks may call at the same time.
  static constexpr size_t most_others = 64;
  static constexpr std::chrono::seconds patience{5};

  /// Strangers calls this when it drops a connection, before it closes it.
  using Dropped = std::function<void(const Connection& connection, const std::string& why)>;

  Strangers(boost::asio::io_context& io, int ranks, Dropped dropped)
      : io_(io), most_(size_t(ranks) + most_others), dropped_(std::move(dropped)) {}
  ~Strangers();

  /// Sets the number of ranks that may call.
  void expect(int ranks) { most_ = size_t(ranks) + most_others; }
  /// Adds a stranger. If there are too many, it drops the oldest connection of the address with the most
  /// connections, so that a flood from one address does not keep others out.
  void add(std::shared_ptr<Connection> connection);
  /// Removes a stranger and returns it. Call it when the connection has a seat now or is closed. Returns null
  /// if the connection is not a stranger.
  std::shared_ptr<Connection> take(const Connection& connection);
  /// Drops a stranger to make room, for example when the process cannot open more files. Returns false if
  /// there are none.
  bool drop_one(const std::string& why);
  std::vector<std::shared_ptr<Connection>> all() const;

 private:
  struct One {
    std::shared_ptr<Connection> connection;
    std::string address;
    uint64_t number;  ///< the count of strangers added up to this one
    boost::asio::steady_timer time;
  };
  using Place = std::list<One>::iterator;

  void drop(Place place, const std::string& why);

  boost::asio::io_context& io_;
  size_t most_;
  const Dropped dropped_;
  std::list<One> all_;  ///< oldest first
  uint64_t added_ = 0;
};

/// Warns about connections that are not ranks. It warns once per address, and only for a few addresses.
class Complaints {
 public:
  static constexpr size_t most_addresses = 8;

  /// \param server  the name of the server's process in the warnings
  explicit Complaints(std::string server) : server_(std::move(server)) {}

  /// \param what  the warning, which names the address
  void note(const std::string& address, const std::string& what);
  /// Returns the last warning that was noted, or "".
  const std::string& last() const { return last_; }

 private:
  const std::string server_;
  std::set<std::string> said_;  ///< the addresses that it has warned about
  std::string last_;
};

}  // namespace chorale::bootstrap
