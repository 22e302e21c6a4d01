#include "rendezvous.hpp"

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>
#include <set>
#include <thread>

#include "session.hpp"

namespace chorale::bootstrap {

std::vector<tcp::endpoint> resolve(Session& session) {
  tcp::resolver resolver(session.io);
  for (;;) {
    boost::system::error_code error;
    const auto found = resolver.resolve(session.address.host, std::to_string(session.address.port),
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
    throw_if_full(error, "resolve the host of " + session.where());
    if (error != boost::asio::error::host_not_found_try_again || session.expired()) {
      throw RunError(
          Reason::other,
          fmt::format("cannot resolve the host of {}: {}; is the name right, and known on this machine ({})?",
                      session.where(), error.message(), session.mine.host.name));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

Rendezvous connected(const Hello& mine, const std::string& how, const std::function<Rendezvous()>& connect) {
  try {
    return connect();
  } catch (const boost::system::system_error& error) {
    const std::string what = fmt::format("connect rank {} with the other ranks {}", mine.rank, how);
    throw_if_full(error.code(), what);
    throw RunError(Reason::other, fmt::format("cannot {}: {}", what, error.what()));
  }
}

Rendezvous rendezvous(const Address& address, const Hello& mine, std::chrono::nanoseconds timeout,
                      const Secret& secret) {
  return connected(mine, "under '" + address.text() + "'", [&] {
    Session session(address, mine, timeout, secret);
    return mine.rank == 0 ? serve(session) : connect_to_server(session);
  });
}

}  // namespace chorale::bootstrap
