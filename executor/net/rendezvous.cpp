#include "rendezvous.hpp"

#include <boost/asio/error.hpp>
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
      // The order is the resolver's: the best first.
      std::set<tcp::endpoint> seen;
      std::vector<tcp::endpoint> endpoints;
      for (const auto& entry : found) {
        if (seen.insert(entry.endpoint()).second) endpoints.push_back(entry.endpoint());
      }
      return endpoints;
    }
    if (error != boost::asio::error::host_not_found_try_again || meeting.expired()) {
      throw RunError(
          Reason::other,
          fmt::format("cannot resolve the host of {}: {}; is the name right, and known on this machine ({})?",
                      meeting.where(), error.message(), meeting.mine.host.name));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

Met rendezvous(const Address& address, const Hello& mine, std::chrono::nanoseconds timeout) {
  Meeting meeting(address, mine, timeout);
  return mine.rank == 0 ? lead(meeting) : follow(meeting);
}

}  // namespace chorale::net
