// The rendezvous server runs on rank 0, or in the process that made an invitation.

#include <sys/socket.h>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <random>
#include <set>

#include "chorale/limits.hpp"
#include "executor/system/texts.hpp"
#include "executor/system/warn.hpp"
#include "session.hpp"
#include "strangers.hpp"

namespace chorale::bootstrap {
namespace {

std::string fresh_name() {
  std::random_device random;
  std::string name = "tcp-";
  for (int word = 0; word < 4; ++word) name += fmt::format("{:08x}", random());
  return name;
}

class RendezvousServer {
 public:
  explicit RendezvousServer(Session& session)
      : session_(session),
        ranks_(session.invited() ? 0 : session.mine.ranks),
        first_(session.mine),
        strangers_(session.io, ranks_,
                   [this](const Connection& from, const std::string& why) { tell_of(from, why); }),
        complaints_(session.server()),
        present_(size_t(ranks_)),
        seen_(size_t(ranks_), false) {}

  ~RendezvousServer() {
    for (const Member& member : members_) member.connection->close();
  }

  Rendezvous run() {
    const std::vector<tcp::endpoint> places = own_places();
    for (const tcp::endpoint& endpoint : places) listen(endpoint);
    if (acceptors_.empty()) throw_not_here();
    if (std::any_of(places.begin(), places.end(),
                    [](const tcp::endpoint& one) { return !one.address().is_loopback(); }))
      warn_if_open();
    register_rank(session_.mine);
    if (!session_.run_until([&] { return verdict_.has_value(); })) {
      end({Reason::timed_out, with_complaint(session_.absent_text(missing()))});
    } else if (verdict_->error && verdict_->error != Reason::timed_out) {
      // Wait for ranks that have not called yet, so that they also get the error.
      session_.run_until([&] { return std::count(seen_.begin(), seen_.end(), false) == 0; },
                         Clock::now() + linger);
    }
    session_.flush(connections());
    if (verdict_->error) throw RunError(*verdict_->error, verdict_->text);
    std::vector<system::Descriptor> links = linked();
    return {std::move(membership_), std::move(links)};
  }

  /// Serves the ranks of an invitation. It has no deadline, because each rank has its own and tells this
  /// server when it gives up.
  void run(system::Descriptor listening) {
    tcp::acceptor acceptor(session_.io);
    acceptor.assign(tcp::v4(), listening.get());
    system::ClosedInForks closed_in_forks(listening.get());
    listening.release();
    take_calls(std::move(acceptor), std::move(closed_in_forks));
    session_.run_until([&] { return verdict_.has_value(); });
    if (verdict_->error) {
      session_.run_until([&] { return ranks_ > 0 && std::count(seen_.begin(), seen_.end(), false) == 0; },
                         Clock::now() + invitations_linger);
    }
    session_.flush(connections());
  }

 private:
  static constexpr std::chrono::seconds linger{2};
  /// Sets how long an invitation that has failed reports the reason to ranks that come late. They may come
  /// much later than ranks that a launcher starts.
  static constexpr std::chrono::seconds invitations_linger{60};

  struct Member {
    std::shared_ptr<Connection> connection;
    int rank;
  };

  /// Warns about a missing or short secret. It is called when other machines may reach the address.
  void warn_if_open() const {
    if (!session_.secret.given()) {
      system::warn(fmt::format(
          "rank 0 listens on {} and there is no secret: anyone who can reach that port can join the "
          "world in place of a rank, or end it; {}",
          session_.where(), how_to_make_a_secret));
    } else if (session_.secret.is_short()) {
      system::warn(
          fmt::format("the secret of {} has fewer than {} letters, and somebody who records the greetings of "
                      "ranks may guess it; {}",
                      session_.where(), Secret::short_letters, how_to_make_a_secret));
    }
  }

  std::vector<std::shared_ptr<Connection>> connections() const {
    std::vector<std::shared_ptr<Connection>> all = strangers_.all();
    for (const Member& member : members_) all.push_back(member.connection);
    return all;
  }

  /// Waits until the lowest ranks of the other hosts have released their connections. Returns the connections
  /// by host.
  std::vector<system::Descriptor> linked() {
    const auto all = [&] {
      return lost_ >= 0 || std::all_of(links_.begin() + (links_.empty() ? 0 : 1), links_.end(),
                                       [](const system::Descriptor& link) { return bool(link); });
    };
    const bool came = session_.run_until(all);
    if (lost_ >= 0) {
      throw RunError(Reason::peer_lost,
                     fmt::format("rank {} ({}) died while {} was being joined", lost_,
                                 present_[size_t(lost_)]->process_text(), session_.where()));
    }
    if (came) {
      for (const system::Descriptor& link : links_) {
        const char go = 0;
        if (link && ::send(link.get(), &go, 1, MSG_NOSIGNAL) != 1)
          system::throw_errno("tell a host that " + session_.where() + " is joined");
      }
      return std::move(links_);
    }
    std::vector<int> silent;
    for (uint32_t host = 1; host < links_.size(); ++host) {
      if (!links_[host]) silent.push_back(membership_.lowest_rank(host));
    }
    throw RunError(Reason::timed_out, session_.absent_text(system::ranks_text(silent)));
  }

  /// Takes over the connection of another host's lowest rank after its last frame.
  void free_link(const Member& member) {
    if (!verdict_ || verdict_->error) return;
    const uint32_t host = membership_.hosts[size_t(member.rank)];
    if (host < links_.size()) links_[host] = member.connection->release();
  }

  /// Returns the endpoints to listen on. On many machines the host name resolves to a loopback address
  /// (127.0.1.1 in /etc/hosts), and on other machines to an address that all can reach. This machine cannot
  /// know that address, so it listens on all addresses. It does not do so if the user names localhost.
  std::vector<tcp::endpoint> own_places() const {
    std::vector<tcp::endpoint> found = resolve(session_);
    const std::string& host = session_.address.host;
    boost::system::error_code is_name;
    boost::asio::ip::make_address(host, is_name);
    const auto alone = [](const tcp::endpoint& one) { return one.address().is_loopback(); };
    if (!is_name || host.find("localhost") != host.npos || !std::all_of(found.begin(), found.end(), alone))
      return found;
    std::set<tcp::endpoint> any;
    for (const tcp::endpoint& one : found) any.insert({one.protocol(), one.port()});
    return {any.begin(), any.end()};
  }

  void listen(const tcp::endpoint& endpoint) {
    boost::system::error_code error;
    tcp::acceptor acceptor(session_.io);
    acceptor.open(endpoint.protocol(), error);
    system::ClosedInForks closed_in_forks;
    if (!error) closed_in_forks = keep_from_others(acceptor.native_handle());
    // This allows a port of a job that has just ended, but not a port in use.
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error && endpoint.protocol() == tcp::v6())
      acceptor.set_option(boost::asio::ip::v6_only(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(boost::asio::socket_base::max_listen_connections, error);
    if (error == boost::asio::error::address_in_use) throw_in_use(endpoint);
    throw_if_full(error, "listen as rank 0 on " + session_.where());
    if (error) {
      problem_ = error.message();
      return;  // a name may have several addresses, and this machine may have only one of them
    }
    take_calls(std::move(acceptor), std::move(closed_in_forks));
  }

  void take_calls(tcp::acceptor acceptor, system::ClosedInForks closed_in_forks) {
    acceptors_.push_back(std::make_unique<tcp::acceptor>(std::move(acceptor)));
    closed_in_forks_.push_back(std::move(closed_in_forks));
    accept(*acceptors_.back());
  }

  [[noreturn]] void throw_in_use(const tcp::endpoint& endpoint) {
    // If rank 0 of this job listens there, two processes have rank 0. The other one reports that to all
    // ranks.
    const std::optional<Verdict> verdict = ask_other_server(session_, endpoint);
    if (verdict && verdict->error) throw RunError(*verdict->error, verdict->text);
    throw RunError(
        Reason::resources,
        fmt::format("rank 0 cannot listen on {}: the port is in use by another program; choose another port "
                    "for all ranks (under a launcher that uses MASTER_PORT itself: CHORALE_PORT)",
                    session_.where()));
  }

  [[noreturn]] void throw_not_here() {
    throw RunError(
        Reason::other,
        fmt::format("rank 0 cannot listen on {}: {}; the address must be one of the machine that rank 0 runs "
                    "on ({})",
                    session_.where(), problem_, session_.mine.host.name));
  }

  void accept(tcp::acceptor& acceptor) {
    acceptor.async_accept([this, &acceptor](const boost::system::error_code& error, tcp::socket socket) {
      if (!acceptor.is_open()) return;
      const bool mended = error == boost::system::errc::too_many_files_open &&
                          strangers_.drop_one(std::string(session_.server()) + " cannot open more files");
      if (error && !mended && error != boost::asio::error::connection_aborted) {
        return end({Reason::resources,
                    fmt::format("{} cannot accept connections of {}: {}; raise its limit of open files "
                                "(ulimit -n)",
                                session_.server(), session_.where(), error.message())});
      }
      if (!error) greet(std::move(socket));
      accept(acceptor);
    });
  }

  void greet(tcp::socket socket) {
    const auto connection = std::make_shared<Connection>(
        std::move(socket), std::make_unique<ServersGreeting>(session_.secret, session_.address.port));
    connection->limit(FrameReader::most_hello_bytes);
    strangers_.add(connection);
    Connection* const from = connection.get();
    connection->listen({.met = [] {},
                        .frame = [this, from](const Frame& frame) { take(*from, frame); },
                        .refused = [this, from](const Greeting& greeting) { refuse(*from, greeting); },
                        .closed = [this, from] { lose(*from); }});
  }

  /// Warns about a caller whose greeting failed. Such a caller cannot stop the world from starting, but it
  /// may be a rank with wrong settings.
  void refuse(const Connection& from, const Greeting& greeting) {
    const std::string keeper = session_.invited() ? "the invitation" : "rank 0";
    const std::string remedy = session_.invited()
                                   ? "; if that is a rank of this world, give it this invitation"
                                   : "; if that is a rank of this world, start it with the secret of rank 0";
    switch (greeting.refusal()) {
      case Refusal::foreign:
        return tell_of(from,
                       fmt::format("it is not a rank of Chorale: it speaks {}", greeting.sounds_like()));
      case Refusal::other_protocol:
        return tell_of(from,
                       fmt::format("it is another version of Chorale than this {}; start all ranks with "
                                   "the same version",
                                   own_version()));
      case Refusal::secret_missing:
        return tell_of(from, "it has no secret, and " + keeper + " has one" + remedy);
      case Refusal::secret_wanted:
        return tell_of(from, "it has a secret, and " + keeper + " has none" + remedy);
      case Refusal::wrong_port:
        return tell_of(from,
                       fmt::format("it has the right secret, but calls port {}; start all ranks with the "
                                   "same address",
                                   greeting.claim().port));
      default:
        return tell_of(from, "its secret differs from the secret of " + keeper + remedy);
    }
  }

  void tell_of(const Connection& from, const std::string& why) {
    const std::string address = from.peer();
    complaints_.note(address, fmt::format("somebody at {} failed to authenticate for {}: {}", address,
                                          session_.where(), why));
  }

  std::string with_complaint(const std::string& why) const {
    return complaints_.last().empty() ? why : why + "; " + complaints_.last();
  }

  void take(Connection& from, const Frame& frame) {
    if (const Member* const member = member_of(from)) {
      if (frame.kind == FrameKind::gave_up) end({Reason::timed_out, with_complaint(frame.text)});
      if (frame.kind == FrameKind::ready) free_link(*member);
      return;
    }
    const std::optional<Hello> hello = decode_hello(frame.text);
    // A caller without a seat can ask only for the seat of the rank that it has proved to be.
    if (frame.kind != FrameKind::hello || !hello || hello->rank != int(from.greeting().claim().rank)) return;
    if (!verdict_) check(*hello);
    if (hello->rank >= 0 && hello->rank < ranks_) seen_[size_t(hello->rank)] = true;
    if (verdict_) return from.send(frame_of(*verdict_));
    from.limit(FrameReader::most_rank_bytes);
    members_.push_back({strangers_.take(from), hello->rank});
    register_rank(*hello);
  }

  const Member* member_of(const Connection& connection) const {
    const auto at = std::find_if(members_.begin(), members_.end(), [&](const Member& member) {
      return member.connection.get() == &connection;
    });
    return at == members_.end() ? nullptr : &*at;
  }

  void check(const Hello& hello) {
    const Hello& mine = session_.mine;
    const auto mismatch = [&](const std::string& why) { end({Reason::mismatch, why}); };
    if (hello.version != mine.version) {
      return mismatch(
          fmt::format("a rank of {} is Chorale {}, but {} ({}) is Chorale {}; start all ranks with the "
                      "same version",
                      session_.where(), hello.version, session_.server(), mine.process_text(), mine.version));
    }
    if (ranks_ == 0) expect_ranks_of(hello);
    if (hello.ranks != ranks_) {
      return mismatch(fmt::format("rank {} ({}) says that {} has {} ranks, but rank {} ({}) says {}",
                                  hello.rank, hello.process_text(), session_.where(), hello.ranks,
                                  first_.rank, first_.process_text(), ranks_));
    }
    if (hello.rank < 0 || hello.rank >= ranks_)
      return mismatch(fmt::format("there is no rank {}", hello.rank));
    if (const std::optional<Hello>& other = present_[size_t(hello.rank)]) {
      if (session_.invited()) {
        return mismatch(fmt::format(
            "rank {} of {} came twice, from {} and from {}: each rank joins once, and an invitation serves "
            "one world",
            hello.rank, session_.where(), other->process_text(), hello.process_text()));
      }
      mismatch(fmt::format("two processes are rank {} of {}: {} and {}; do two jobs use one address?",
                           hello.rank, session_.where(), other->process_text(), hello.process_text()));
    }
  }

  /// Takes the number of ranks from the first rank of an invitation.
  void expect_ranks_of(const Hello& hello) {
    if (hello.ranks < 1 || hello.ranks > int(max_ranks)) {
      return end({Reason::mismatch, fmt::format("rank {} ({}) says that {} has {} ranks", hello.rank,
                                                hello.process_text(), session_.where(), hello.ranks)});
    }
    ranks_ = hello.ranks;
    first_ = hello;
    present_.resize(size_t(ranks_));
    seen_.resize(size_t(ranks_), false);
    strangers_.expect(ranks_);
  }

  void register_rank(const Hello& hello) {
    present_[size_t(hello.rank)] = hello;
    seen_[size_t(hello.rank)] = true;
    if (absent().empty()) {
      std::vector<Hello> all;
      for (const std::optional<Hello>& one : present_) all.push_back(*one);
      std::string apart = why_apart(all);
      if (apart.empty() && session_.invited()) apart = why_no_invitation(all);
      if (!apart.empty()) return end({Reason::mismatch, apart});
      membership_ = Membership::of(fresh_name(), all);
      membership_.one_process = session_.invited() && in_one_process(all);
      if (membership_.host_names.size() > 1) links_.resize(membership_.host_names.size());
      return end({{}, membership_.encode()});
    }
    for (const Member& member : members_) member.connection->send({FrameKind::waiting, missing()});
  }

  void lose(const Connection& connection) {
    const Member* const member = member_of(connection);
    if (!member) {
      strangers_.take(connection);
      return;
    }
    if (verdict_ && !verdict_->error) {
      const uint32_t host = membership_.hosts[size_t(member->rank)];
      if (host < links_.size() && membership_.lowest_rank(host) == member->rank && host != 0)
        lost_ = member->rank;
      return;
    }
    end({Reason::peer_lost, fmt::format("rank {} ({}) died while {} was being joined", member->rank,
                                        present_[size_t(member->rank)]->process_text(), session_.where())});
  }

  void end(const Verdict& verdict) {
    if (verdict_) return;
    verdict_ = verdict;
    // Free the address before any rank gets the verdict, because the ranks may join under it again at once.
    if (!verdict.error) {
      closed_in_forks_.clear();
      for (const auto& acceptor : acceptors_) acceptor->close();
    }
    for (const Member& member : members_) member.connection->send(frame_of(verdict));
  }

  std::vector<int> absent() const {
    std::vector<int> ranks;
    for (int rank = 0; rank < ranks_; ++rank) {
      if (!present_[size_t(rank)]) ranks.push_back(rank);
    }
    return ranks;
  }
  std::string missing() const { return system::ranks_text(absent()); }

  Session& session_;
  int ranks_;    ///< 0: no rank has told their number yet
  Hello first_;  ///< the hello that ranks_ comes from
  std::vector<std::unique_ptr<tcp::acceptor>> acceptors_;
  std::vector<system::ClosedInForks> closed_in_forks_;  ///< for the acceptors; destroyed before them
  Strangers strangers_;
  Complaints complaints_;
  std::vector<Member> members_;                ///< the ranks with a seat
  std::vector<std::optional<Hello>> present_;  ///< by rank
  std::vector<bool> seen_;                     ///< by rank: whether it has sent a hello, right or wrong
  std::optional<Verdict> verdict_;
  Membership membership_;                  ///< valid when all ranks are there
  std::vector<system::Descriptor> links_;  ///< by host, if there are several
  int lost_ = -1;                          ///< the lowest rank of a host that died before it released its
                                           ///< connection; -1: none
  std::string problem_;
};

}  // namespace

Rendezvous serve(Session& session) { return RendezvousServer(session).run(); }

void serve_invitation(Session& session, system::Descriptor listening) noexcept {
  try {
    RendezvousServer(session).run(std::move(listening));
  } catch (...) {
    // The ranks see that their connections end.
  }
}

}  // namespace chorale::bootstrap
