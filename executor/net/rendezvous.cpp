#include "rendezvous.hpp"

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>
#include <set>
#include <thread>

#include "../world/group.hpp"
#include "meeting.hpp"

namespace chorale::net {

std::vector<tcp::endpoint> resolve(Meeting& meeting) {
  tcp::resolver resolver(meeting.io);
  for (;;) {
    boost::system::error_code error;
    const auto found = resolver.resolve(meeting.address.host, std::to_string(meeting.address.port),
                                        tcp::resolver::numeric_service, error);
    if (!error) {
      // Keep the resolver's order, which has the best endpoint first.
      std::set<tcp::endpoint> seen;
      std::vector<tcp::endpoint> endpoints;
      for (const auto& entry : found) {
        if (seen.insert(entry.endpoint()).second) endpoints.push_back(entry.endpoint());
      }
      return endpoints;
    }
    throw_if_full(error, "resolve the host of " + meeting.where());
    if (error != boost::asio::error::host_not_found_try_again || meeting.expired()) {
      throw RunError(
          Reason::other,
          fmt::format("cannot resolve the host of {}: {}; is the name right, and known on this machine ({})?",
                      meeting.where(), error.message(), meeting.mine.host.name));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

Met rendezvous(const Address& address, const Hello& mine, std::chrono::nanoseconds timeout,
               const Secret& secret) {
  try {
    Meeting meeting(address, mine, timeout, secret);
    return mine.rank == 0 ? lead(meeting) : follow(meeting);
  } catch (const boost::system::system_error& error) {
    const std::string what =
        fmt::format("connect rank {} with the other ranks under '{}'", mine.rank, address.text());
    throw_if_full(error.code(), what);
    throw RunError(Reason::other, fmt::format("cannot {}: {}", what, error.what()));
  }
}

}  // namespace chorale::net
