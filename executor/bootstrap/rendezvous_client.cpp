// The rendezvous client runs on all ranks except rank 0, or on all ranks of an invitation.

#include <poll.h>
#include <sys/socket.h>

#include <thread>

#include "session.hpp"

namespace chorale::bootstrap {
namespace {

class RendezvousClient {
 public:
  explicit RendezvousClient(Session& session) : session_(session) {}

  Rendezvous run() {
    const std::vector<tcp::endpoint> endpoints = resolve(session_);
    // Rank 0 may start later, so a refused connection is not an error yet.
    for (auto pause = std::chrono::milliseconds(5);; pause = std::min(pause * 2, longest_pause)) {
      for (const tcp::endpoint& endpoint : endpoints) {
        if (!connect(endpoint)) continue;
        const std::optional<Verdict> verdict = talk(Clock::time_point::max());
        if (!verdict) continue;
        if (verdict->error) throw RunError(*verdict->error, verdict->text);
        return {std::move(membership_), std::move(links_)};
      }
      if (session_.expired()) throw_unanswered();
      std::this_thread::sleep_for(pause);
    }
  }

  bool connect(const tcp::endpoint& endpoint) {
    tcp::socket socket(session_.io);
    // The handler shares ownership, because it may run after the deadline, when this function has returned.
    const auto result = std::make_shared<std::optional<boost::system::error_code>>();
    socket.async_connect(endpoint, [result](const boost::system::error_code& error) { *result = error; });
    if (!session_.run_until([&] { return result->has_value(); })) {
      if (problem_.empty()) problem_ = "connections are not answered; does a firewall drop them?";
      return false;
    }
    boost::system::error_code error = **result;
    // If the port is in the range of ephemeral ports, a socket may connect to itself.
    if (!error && socket.local_endpoint(error) == endpoint) error = boost::asio::error::connection_refused;
    throw_if_full(error, fmt::format("connect rank {} to {}", session_.mine.rank, session_.where()));
    // The process that made an invitation listened before any rank had the invitation.
    if (session_.invited() && error == boost::asio::error::connection_refused)
      throw RunError(Reason::mismatch, over_text());
    if (error) {
      problem_ = error.message();
      return false;
    }
    const Claim claim{uint32_t(session_.mine.rank), uint32_t(session_.mine.ranks), session_.address.port};
    connection_ = std::make_shared<Connection>(std::move(socket),
                                               std::make_unique<ClientsGreeting>(session_.secret, claim));
    return true;
  }

  /// Greets the server, sends a hello, and returns the server's verdict; none if another try may help.
  std::optional<Verdict> talk(Clock::time_point limit) {
    std::optional<Verdict> verdict;
    std::optional<std::string> refused, missing;
    bool closed = false;
    const auto on_frame = [&](const Frame& frame) {
      if (frame.kind == FrameKind::waiting) {
        missing = frame.text;
      } else {
        verdict = verdict_of(frame);
      }
    };
    connection_->listen({.met =
                             [this] {
                               connection_->send({FrameKind::hello, encode(session_.mine)});
                             },
                         .frame = on_frame,
                         .refused = [&](const Greeting& greeting) { refused = refusal_text(greeting); },
                         .closed = [&] { closed = true; }});
    const bool ended = session_.run_until([&] { return verdict || refused || closed; }, limit);
    if (!ended && missing) give_up(*missing);
    if (verdict && !verdict->error) take_membership(verdict->text);
    connection_->close();
    if (verdict) return verdict;
    if (refused) throw RunError(Reason::mismatch, *refused);
    if (ended && missing) {
      throw RunError(Reason::peer_lost, fmt::format("{} died while {} was being joined; see what it said",
                                                    session_.server(), session_.where()));
    }
    problem_ = closed ? "connections are closed without an answer" : "connections are taken but not answered";
    if (!session_.invited()) problem_ += "; is it Chorale's rank 0 that listens there?";
    return std::nullopt;
  }

 private:
  static constexpr std::chrono::milliseconds longest_pause{100};

  std::string refusal_text(const Greeting& greeting) const {
    const int rank = session_.mine.rank;
    const std::string where = session_.where();
    constexpr const char* remedy =
        "give all ranks one CHORALE_SECRET: export it on every host before torchrun or srun, or mpirun -x "
        "CHORALE_SECRET";
    if (session_.invited()) {
      if (greeting.refusal() != Refusal::other_protocol) return over_text();  // another program has the port
      return fmt::format(
          "the process that made the invitation is another version of Chorale, and rank {} is {}; start all "
          "ranks with the same version",
          rank, own_version());
    }
    switch (greeting.refusal()) {
      case Refusal::foreign:
        return fmt::format(
            "the program that listens on {} is not rank 0 of Chorale: it speaks {}; choose another port",
            where, greeting.sounds_like());
      case Refusal::other_protocol:
        return fmt::format(
            "rank 0 of {} is another version of Chorale, and rank {} is {}; start all ranks with the same "
            "version",
            where, rank, own_version());
      case Refusal::secret_wanted:
        return fmt::format("rank 0 of {} has a secret, and rank {} has none; {}", where, rank, remedy);
      case Refusal::secret_missing:
        return fmt::format("rank {} has a secret, and rank 0 of {} has none; {}", rank, where, remedy);
      case Refusal::wrong_port:
        return fmt::format(
            "rank 0 does not listen on the port of {}, which rank {} has called; start all ranks with the "
            "same address",
            where, rank);
      default:
        return fmt::format("the secret of rank {} differs from the secret of rank 0 of {}; {}", rank, where,
                           remedy);
    }
  }

  /// Reads the membership. If this rank is the lowest of a host other than rank 0's, it keeps the connection.
  void take_membership(const std::string& text) {
    std::optional<Membership> membership = Membership::decode(text);
    if (!membership || membership->hosts.size() != size_t(session_.mine.ranks)) {
      throw RunError(
          Reason::mismatch,
          fmt::format("{} has not sent a list of the {} ranks of {}; start all ranks with the same "
                      "version",
                      session_.server(), session_.mine.ranks, session_.where()));
    }
    membership_ = std::move(*membership);
    const uint32_t host = membership_.hosts[size_t(session_.mine.rank)];
    if (host == 0 || membership_.lowest_rank(host) != session_.mine.rank) return;
    links_.resize(membership_.host_names.size());
    links_[0] = connection_->release();
    // The connection surely has room for these few bytes.
    const std::string ready = encode(Frame{FrameKind::ready, {}});
    const int link = links_[0].get();
    if (::send(link, ready.data(), ready.size(), MSG_NOSIGNAL) != ssize_t(ready.size()))
      system::throw_errno("tell rank 0 that " + session_.where() + " is joined");
    // Wait until rank 0 has taken over the connection. Otherwise rank 0 might read the next bytes together
    // with the `ready` frame and lose them.
    pollfd polled{link, POLLIN, 0};
    char go = 0;
    while (::poll(&polled, 1, 100) <= 0) {
      if (session_.expired()) throw RunError(Reason::timed_out, session_.absent_text("rank 0"));
    }
    if (::recv(link, &go, 1, 0) != 1) {
      throw RunError(Reason::peer_lost, fmt::format("rank 0 died while {} was being joined; see what it said",
                                                    session_.where()));
    }
  }

  /// Tells the server that this rank gives up, so that the others need not wait until their deadlines.
  [[noreturn]] void give_up(const std::string& missing) {
    const std::string why = session_.absent_text(missing);
    connection_->send({FrameKind::gave_up, why});
    session_.flush({connection_});
    connection_->close();
    throw RunError(Reason::timed_out, why);
  }

  std::string over_text() const {
    return fmt::format(
        "rank {} cannot join by its invitation: the invitation has already been used, or the process that "
        "made it has ended; make an invitation for each world, in a process that lives until all ranks have "
        "joined",
        session_.mine.rank);
  }

  [[noreturn]] void throw_unanswered() {
    if (session_.invited()) {
      throw RunError(
          Reason::timed_out,
          fmt::format("rank {} waited {} for an answer of the process that made the invitation: {}; "
                      "{}",
                      session_.mine.rank, system::seconds_text(session_.timeout), problem_,
                      system::more_time));
    }
    throw RunError(Reason::timed_out, fmt::format("{}: {}; does rank 0 run there, with the same address?",
                                                  session_.timed_out_text("rank 0"), problem_));
  }

  Session& session_;
  std::shared_ptr<Connection> connection_;
  Membership membership_;                  ///< valid when the server has sent it
  std::vector<system::Descriptor> links_;  ///< by host
  std::string problem_;                    ///< the problem of the last try
};

}  // namespace

Rendezvous connect_to_server(Session& session) { return RendezvousClient(session).run(); }

std::optional<Verdict> ask_other_server(Session& session, const tcp::endpoint& at) {
  RendezvousClient client(session);
  try {
    if (client.connect(at)) return client.talk(Clock::now() + std::chrono::seconds(2));
  } catch (const RunError&) {  // so it is not a rendezvous server
  }
  return std::nullopt;
}

}  // namespace chorale::bootstrap
