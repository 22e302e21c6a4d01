/// \file
/// A session holds the state that the rendezvous server and client both use.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "address.hpp"
#include "chorale/error.hpp"
#include "connection.hpp"
#include "executor/system/deadline.hpp"
#include "executor/system/shared_memory.hpp"
#include "executor/system/texts.hpp"
#include "hello.hpp"
#include "rendezvous.hpp"

namespace chorale::bootstrap {

using Clock = std::chrono::steady_clock;
using Reason = RunError::Reason;

/// Holds the result of a rendezvous: a membership, or an error.
struct Verdict {
  std::optional<Reason> error;
  std::string text;  ///< the encoded membership, or the error message
};

inline Frame frame_of(const Verdict& verdict) {
  if (!verdict.error) return {FrameKind::joined, verdict.text};
  return {FrameKind::failed, char('a' + int(*verdict.error)) + verdict.text};
}

/// Decodes the verdict in a `joined` or `failed` frame.
inline Verdict verdict_of(const Frame& frame) {
  if (frame.kind == FrameKind::joined) return {{}, frame.text};
  const int reason = frame.text.empty() ? -1 : frame.text[0] - 'a';
  const bool known = reason >= 0 && reason <= int(Reason::other);
  return {known ? Reason(reason) : Reason::other, frame.text.empty() ? "" : frame.text.substr(1)};
}

/// Tells how the ranks of a rendezvous find each other.
enum class JoinBy : uint8_t {
  address,    ///< rank 0 listens on an address that all ranks know
  invitation  ///< the process that made an invitation listens, and all ranks call it
};

/// Holds one process's side of a rendezvous: its hello, its secret and its deadline.
struct Session {
  /// \param me  the hello of this rank. The server of an invitation has no rank, and its hello has rank -1
  Session(const Address& at, const Hello& me, std::chrono::nanoseconds limit, const Secret& shared,
          JoinBy how = JoinBy::address)
      : address(at), mine(me), timeout(limit), secret(shared), join_by(how), start(Clock::now()) {}

  bool invited() const { return join_by == JoinBy::invitation; }

  bool expired() const { return timeout.count() > 0 && Clock::now() - start >= timeout; }

  /// Runs the started operations until `done` returns true, or until `limit` or the deadline. Returns whether
  /// `done` returned true.
  bool run_until(const std::function<bool()>& done, Clock::time_point limit = Clock::time_point::max()) {
    return run(done, std::min(limit, system::deadline_after(timeout, start)));
  }

  /// Sends all queued data. It also works after the deadline, because errors are sent after it.
  void flush(const std::vector<std::shared_ptr<Connection>>& connections) {
    const auto sent = [&] {
      return std::none_of(connections.begin(), connections.end(),
                          [](const auto& one) { return one->sending(); });
    };
    run(sent, Clock::now() + std::chrono::seconds(2));
  }

  std::string timed_out_text(const std::string& missing) const {
    return fmt::format("{} did not join {} within {}, says rank {}", missing, where(),
                       system::seconds_text(timeout), mine.rank);
  }

  /// Returns timed_out_text() and the remedy.
  std::string absent_text(const std::string& missing) const {
    return fmt::format("{}: {}; {}", timed_out_text(missing),
                       invited() ? "give all ranks one invitation" : "start all ranks with one address",
                       system::more_time);
  }

  /// Returns the world's name in messages.
  std::string where() const { return invited() ? "the invitation's world" : "'" + address.text() + "'"; }
  /// Returns the name of the process that runs the server, in messages.
  const char* server() const { return invited() ? "the process that made the invitation" : "rank 0"; }

  const Address address;
  const Hello mine;
  const std::chrono::nanoseconds timeout;
  const Secret secret;
  const JoinBy join_by;
  const Clock::time_point start;
  boost::asio::io_context io;

 private:
  bool run(const std::function<bool()>& done, Clock::time_point limit) {
    while (!done()) {
      const Clock::time_point now = Clock::now();
      if (now >= limit) return false;
      io.restart();
      // Wait in slices, because time_point::max() would overflow inside run_one_until().
      io.run_one_until(std::min(limit, now + std::chrono::seconds(1)));
    }
    return true;
  }
};

/// Throws if this process cannot open more files, because then neither another address nor another try helps.
/// \throws RunError as system::throw_errno() if `error` is of that kind
inline void throw_if_full(const boost::system::error_code& error, const std::string& what) {
  if (error != boost::system::errc::too_many_files_open &&
      error != boost::system::errc::too_many_files_open_in_system)
    return;
  errno = error.value();
  system::throw_errno(what);
}

/// Returns the endpoints of the host. It retries while the resolver reports a temporary failure.
/// \throws RunError other
std::vector<tcp::endpoint> resolve(Session& session);

/// Runs a rendezvous, and reports errors of sockets as a RunError.
/// \param how  how the rank connects, such as "under 'tcp://node7:5000'"
/// \throws RunError
Rendezvous connected(const Hello& mine, const std::string& how, const std::function<Rendezvous()>& connect);

/// Runs the rendezvous server, on rank 0.
/// \throws RunError
Rendezvous serve(Session& session);
/// Runs the rendezvous server of an invitation, until the ranks have joined or have failed to join.
/// \param listening  a TCP socket of IPv4 that listens
void serve_invitation(Session& session, system::Descriptor listening) noexcept;
/// Runs the rendezvous client, on all other ranks, or on all ranks of an invitation.
/// \throws RunError
Rendezvous connect_to_server(Session& session);

/// Asks the program that already listens on rank 0's address, and returns its verdict about a second rank 0;
/// none if it is not a rendezvous server.
std::optional<Verdict> ask_other_server(Session& session, const tcp::endpoint& at);

}  // namespace chorale::bootstrap
