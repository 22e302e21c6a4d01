/// \file
/// Both sides of a rendezvous share the clock and the words.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../system/deadline.hpp"
#include "../world/group.hpp"
#include "address.hpp"
#include "chorale/error.hpp"
#include "connection.hpp"
#include "hello.hpp"
#include "rendezvous.hpp"

namespace chorale::net {

using Clock = std::chrono::steady_clock;
using Reason = RunError::Reason;

/// Says how a rendezvous ended: with a membership, or with an error.
struct Verdict {
  std::optional<Reason> error;
  std::string text;  ///< Membership::encode(), or the message
};

inline Frame frame_of(const Verdict& verdict) {
  if (!verdict.error) return {FrameKind::joined, verdict.text};
  return {FrameKind::failed, char('a' + int(*verdict.error)) + verdict.text};
}

/// Reads the verdict in a joined or failed frame.
inline Verdict verdict_of(const Frame& frame) {
  if (frame.kind == FrameKind::joined) return {{}, frame.text};
  const int reason = frame.text.empty() ? -1 : frame.text[0] - 'a';
  const bool known = reason >= 0 && reason <= int(Reason::other);
  return {known ? Reason(reason) : Reason::other, frame.text.empty() ? "" : frame.text.substr(1)};
}

/// Holds one rank's side: who it is, and until when it waits.
struct Session {
  Session(const Address& at, const Hello& me, std::chrono::nanoseconds limit, const Secret& shared)
      : address(at), mine(me), timeout(limit), secret(shared), start(Clock::now()) {}

  bool expired() const { return timeout.count() > 0 && Clock::now() - start >= timeout; }

  /// Runs what has been started until `done`, `limit` or the deadline. Returns true if it is done.
  bool run_until(const std::function<bool()>& done, Clock::time_point limit = Clock::time_point::max()) {
    return run(done, std::min(limit, world::deadline_after(timeout, start)));
  }

  /// Sends all that is queued, also after the deadline, because errors are sent after it.
  void flush(const std::vector<std::shared_ptr<Connection>>& connections) {
    const auto sent = [&] {
      return std::none_of(connections.begin(), connections.end(),
                          [](const auto& one) { return one->sending(); });
    };
    run(sent, Clock::now() + std::chrono::seconds(2));
  }

  std::string timed_out_text(const std::string& missing) const {
    return fmt::format("{} did not join {} within {}, says rank {}", missing, where(),
                       world::seconds_text(timeout), mine.rank);
  }

  /// Returns timed_out_text(), and what to do about it.
  std::string absent_text(const std::string& missing) const {
    return fmt::format("{}: start all ranks with one address; {}", timed_out_text(missing), world::more_time);
  }

  std::string where() const { return "'" + address.text() + "'"; }

  const Address address;
  const Hello mine;
  const std::chrono::nanoseconds timeout;
  const Secret secret;
  const Clock::time_point start;
  boost::asio::io_context io;

 private:
  bool run(const std::function<bool()>& done, Clock::time_point limit) {
    while (!done()) {
      const Clock::time_point now = Clock::now();
      if (now >= limit) return false;
      io.restart();
      // The wait is in slices, because time_point::max() would overflow in there.
      io.run_one_until(std::min(limit, now + std::chrono::seconds(1)));
    }
    return true;
  }
};

/// Throws if no more files may be open, because no other address, and no time, helps then.
/// \throws RunError as world::throw_errno() if `error` says that
inline void throw_if_full(const boost::system::error_code& error, const std::string& what) {
  if (error != boost::system::errc::too_many_files_open &&
      error != boost::system::errc::too_many_files_open_in_system)
    return;
  errno = error.value();
  world::throw_errno(what);
}

/// Returns the addresses of the host. Retries while the resolver says that it may know later.
/// \throws RunError other
std::vector<tcp::endpoint> resolve(Session& session);

/// Runs the side of rank 0.
/// \throws RunError
Rendezvous serve(Session& session);
/// Runs the side of any other rank.
/// \throws RunError
Rendezvous connect_to_server(Session& session);

/// Asks the server that has taken this rank 0's address, and returns what it says to a second rank 0; none if
/// it is no rendezvous server.
std::optional<Verdict> ask_other_server(Session& session, const tcp::endpoint& at);

}  // namespace chorale::net
