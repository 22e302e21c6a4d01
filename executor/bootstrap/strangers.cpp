#include "strangers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "executor/system/warn.hpp"

namespace chorale::bootstrap {

Strangers::~Strangers() {
  for (const One& one : all_) one.connection->close();
}

void Strangers::add(std::shared_ptr<Connection> connection) {
  if (all_.size() >= most_)
    drop_one(fmt::format("it was the oldest of {} that had no seat yet", all_.size()));
  std::string address = connection->peer();
  all_.push_back(
      {std::move(connection), std::move(address), ++added_, boost::asio::steady_timer(io_, patience)});
  all_.back().time.async_wait([this, number = added_](const boost::system::error_code& error) {
    // The timer of a connection that was just removed may still call this.
    const Place place =
        std::find_if(all_.begin(), all_.end(), [&](const One& one) { return one.number == number; });
    if (error || place == all_.end()) return;
    drop(place, fmt::format("it did not authenticate itself within {} s", patience.count()));
  });
}

std::shared_ptr<Connection> Strangers::take(const Connection& connection) {
  const Place place = std::find_if(all_.begin(), all_.end(),
                                   [&](const One& one) { return one.connection.get() == &connection; });
  if (place == all_.end()) return nullptr;
  std::shared_ptr<Connection> taken = std::move(place->connection);
  all_.erase(place);
  return taken;
}

bool Strangers::drop_one(const std::string& why) {
  std::map<std::string, size_t> count;
  size_t highest = 0;
  for (const One& one : all_) highest = std::max(highest, ++count[one.address]);
  const Place place =
      std::find_if(all_.begin(), all_.end(), [&](const One& one) { return count[one.address] == highest; });
  if (place == all_.end()) return false;
  drop(place, why);
  return true;
}

void Strangers::drop(Place place, const std::string& why) {
  const std::shared_ptr<Connection> connection = std::move(place->connection);
  all_.erase(place);
  dropped_(*connection, why);
  connection->close();
}

std::vector<std::shared_ptr<Connection>> Strangers::all() const {
  std::vector<std::shared_ptr<Connection>> connections;
  for (const One& one : all_) connections.push_back(one.connection);
  return connections;
}

void Complaints::note(const std::string& address, const std::string& what) {
  last_ = what;
  if (said_.size() > most_addresses || !said_.insert(address).second) return;
  system::warn(what + "; " + server_ + " still waits for the ranks");
  if (said_.size() > most_addresses)
    system::warn("there are no warnings about connections of further addresses that are not ranks");
}

}  // namespace chorale::bootstrap
