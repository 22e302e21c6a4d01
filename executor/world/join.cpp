#include "join.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "board.hpp"
#include "chorale/error.hpp"
#include "executor/system/texts.hpp"
#include "executor/system/thrown.hpp"
#include "group.hpp"
#include "process.hpp"
#include "steps.hpp"

namespace chorale::world {
namespace {

using Clock = std::chrono::steady_clock;
using Reason = RunError::Reason;

/// Lets one rank join the world.
class Joining {
 public:
  Joining(const std::string& name, int rank, const std::vector<uint32_t>& hosts,
          std::chrono::nanoseconds timeout, bool used_once)
      : name_(name),
        // Users share /dev/shm, but a job belongs to one user.
        file_(fmt::format("chorale-{}-{}", getuid(), name)),
        rank_(rank),
        ranks_(int(hosts.size())),
        hosts_(hosts),
        timeout_(timeout),
        used_once_(used_once),
        start_(Clock::now()) {}

  system::Mapping run() {
    self_.pid = getpid();
    const std::optional<system::Thrown> blind = system::thrown_by([this] { self_ = this_process(); });
    Board board(file_, rank_, of_this_host(), self_, used_once_);
    board_ = &board;
    try {
      if (blind) throw RunError(blind->reason, blind->text);
      at_step(CollectiveStep::memory);
      rank_ == first() ? create() : find();
      take_seat();
      at_step(CollectiveStep::seat);
      wait_for_all();
    } catch (...) {
      tell(system::thrown_now());
      throw;
    }
    board.close();
    return std::move(mapping_);
  }

 private:
  /// Tells the others why this rank fails, because otherwise they would wait for it until the deadline.
  void tell(const system::Thrown& thrown) {
    const std::string text = system::told_text(rank_, thrown);
    const bool first_to_refuse = seated_ && control().refusal.write(thrown.reason, text);
    // The rank that made the name removes it even if another rank has refused before, because that rank may
    // have had no seat.
    if (first_to_refuse || published_) system::unpublish(memory_, file_);
    if (seated_) leave();
    board_->fail(thrown.reason, text);
  }

  Control& control() { return *reinterpret_cast<Control*>(mapping_.data()); }
  Seat& seat(int rank) { return control().seats()[rank]; }

  bool near(int rank) const { return hosts_[size_t(rank)] == hosts_[size_t(rank_)]; }
  std::vector<int> of_this_host() const {
    std::vector<int> ranks;
    for (int rank = 0; rank < ranks_; ++rank) {
      if (near(rank)) ranks.push_back(rank);
    }
    return ranks;
  }

  /// Returns the lowest rank of this host.
  int first() const {
    return int(std::find(hosts_.begin(), hosts_.end(), hosts_[size_t(rank_)]) - hosts_.begin());
  }

  /// Makes the memory; only the lowest rank calls it. The memory is complete before it gets its name, so no
  /// rank sees half of it.
  void create() {
    memory_ = system::create_shared(Control::bytes(ranks_));
    mapping_ = system::Mapping(memory_, Control::bytes(ranks_));
    control().magic = Control::version;
    control().ranks = uint32_t(ranks_);
    control().owner = self_;
    for (int rank = 0; rank < ranks_; ++rank) {
      seat(rank).host = hosts_[size_t(rank)];
      if (near(rank)) continue;
      seat(rank).presence = Presence::joined;
      control().joined.fetch_add(1);
    }
    while (!system::publish(memory_, file_)) {
      const system::Descriptor other = system::open_published(file_);
      if (!other) continue;  // the other memory has just lost the name
      const std::optional<Process> owner = owner_of(other);
      if (owner && owner->space != self_.space) {
        throw RunError(Reason::mismatch,
                       fmt::format("another job uses 'shm://{}', or used it, in another process namespace "
                                   "(container): give each job a different name; if no job runs, remove "
                                   "/dev/shm/{}",
                                   name_, file_));
      }
      if (owner && is_alive(*owner)) {
        throw RunError(Reason::mismatch,
                       fmt::format("another job uses 'shm://{}': its rank {} is process {}; give each job a "
                                   "different name",
                                   name_, rank_, owner->pid));
      }
      system::unpublish(other, file_);
      check_deadline();
    }
    published_ = true;
  }

  /// Waits for the memory to appear; all ranks but the lowest call it. If a dead lowest rank has left memory
  /// behind, the lowest rank of this job replaces it.
  void find() {
    for (auto pause = std::chrono::microseconds(200);; pause = std::min(pause * 2, longest_pause)) {
      memory_ = system::open_published(file_);
      if (memory_ && !abandoned(memory_)) break;
      if (const std::optional<Board::Dead> dead = heard_of_dead()) {
        memory_ = system::open_published(file_);  // it may have appeared since the last check
        if (memory_ && abandoned(memory_)) system::unpublish(memory_, file_);
        throw_lost(*dead);
      }
      if (expired()) {
        if (memory_) system::unpublish(memory_, file_);  // its owner is dead
        throw_timed_out({first()});
      }
      std::this_thread::sleep_for(pause);
    }
    mapping_ = system::Mapping(memory_, system::size_of(memory_));
    if (refused()) {
      pass_by();
      control().refusal.throw_it();
    }
    const Process& owner = control().owner;
    if (owner.space != self_.space) {
      refuse(
          fmt::format("rank {} (pid {}) and rank {} (pid {}) of 'shm://{}' are in different process "
                      "namespaces, and cannot find each other's memory; run them in one container, or the "
                      "containers with --ipc=host --pid=host; if no rank {} runs, remove /dev/shm/{}",
                      first(), owner.pid, rank_, self_.pid, name_, first(), file_));
    }
    if (control().ranks != uint32_t(ranks_)) {
      refuse(fmt::format("rank {} says that 'shm://{}' has {} ranks, rank {} (pid {}) says {}", rank_, name_,
                         ranks_, first(), owner.pid, control().ranks));
    }
  }

  /// Refuses the join; a rank that cannot get a seat calls it. Otherwise the ranks with a seat would wait for
  /// it until the deadline.
  [[noreturn]] void refuse(const std::string& why) {
    control().refusal.write(Reason::mismatch, why);
    if (refused()) pass_by();
    throw RunError(Reason::mismatch, why);
  }

  bool refused() { return control().refusal.stands(); }

  /// Marks this rank as left, because it has read the refusal.
  void pass_by() {
    Presence absent = Presence::absent;
    if (rank_ < int(control().ranks)) seat(rank_).presence.compare_exchange_strong(absent, Presence::left);
    ring();
  }

  void check_refused() {
    if (!refused()) return;
    if (rank_ == first()) {
      // Ranks that have not come yet should see the refusal too. If it is also on the board, they will.
      const bool late = Reason(control().refusal.reason) == Reason::timed_out;
      for (const auto until = Clock::now() + linger; !late && !absent().empty() && Clock::now() < until;) {
        board_->check();
        std::this_thread::sleep_for(longest_pause);
      }
    }
    control().refusal.throw_it();
  }

  std::optional<Board::Dead> heard_of_dead() {
    board_->check();
    return board_->dead();
  }

  /// Returns whether a dead lowest rank has left this memory, or the memory has no Control yet.
  bool abandoned(const system::Descriptor& memory) {
    const std::optional<Process> owner = owner_of(memory);
    // If the owner is in another namespace, its pid is meaningless here.
    return !owner || (owner->space == self_.space && !is_alive(*owner));
  }

  std::vector<int> absent() {
    std::vector<int> ranks;
    for (int peer = 0; peer < ranks_; ++peer) {
      const Presence presence = seat(peer).presence.load(std::memory_order_acquire);
      if (presence == Presence::absent || presence == Presence::claimed) ranks.push_back(peer);
    }
    return ranks;
  }

  std::optional<Process> owner_of(const system::Descriptor& memory) {
    const uint64_t bytes = system::size_of(memory);
    if (bytes < sizeof(Control)) return std::nullopt;
    const system::Mapping mapping(memory, bytes);
    const Control& found = *reinterpret_cast<const Control*>(mapping.data());
    if (found.magic != Control::version || bytes < Control::bytes(int(found.ranks))) {
      throw RunError(Reason::mismatch,
                     fmt::format("/dev/shm/{} is not of this version of Chorale; remove it", file_));
    }
    return found.owner;
  }

  void take_seat() {
    Seat& mine = seat(rank_);
    Presence absent = Presence::absent;
    if (!mine.presence.compare_exchange_strong(absent, Presence::claimed)) {
      throw RunError(
          Reason::mismatch,
          fmt::format("rank {} of 'shm://{}' is taken by process {}: two processes have one rank, or "
                      "two jobs have one name",
                      rank_, name_, mine.process.pid));
    }
    seated_ = true;
    mine.process = self_;
    mine.presence.store(Presence::joined, std::memory_order_release);
    // The rank that completes the world removes the name, so that the next job can use it at once.
    if (control().joined.fetch_add(1) + 1 == uint32_t(ranks_)) system::unpublish(memory_, file_);
    ring();
  }

  void wait_for_all() {
    for (;;) {
      const uint32_t seen = control().bell.load();
      check_refused();
      if (control().joined.load(std::memory_order_acquire) >= uint32_t(ranks_)) return;
      for (int peer = 0; peer < ranks_; ++peer) {
        const Presence presence = seat(peer).presence.load(std::memory_order_acquire);
        if (presence == Presence::joined && peer != rank_ && near(peer) && !is_alive(seat(peer).process)) {
          // The rank may have given up and ended since the first check.
          check_refused();
          throw_lost({peer, seat(peer).process.pid});
        }
      }
      if (const std::optional<Board::Dead> dead = heard_of_dead()) throw_lost(*dead);
      if (expired()) throw_timed_out(absent());
      sleep_on(control().bell, seen, std::chrono::milliseconds(20));
    }
  }

  [[noreturn]] void throw_lost(const Board::Dead& dead) {
    throw RunError(Reason::peer_lost, fmt::format("rank {} (pid {}) died while 'shm://{}' was being joined",
                                                  dead.rank, dead.pid, name_));
  }

  [[noreturn]] void throw_timed_out(const std::vector<int>& absent) {
    throw RunError(
        Reason::timed_out,
        fmt::format("{} did not join 'shm://{}' within {}, says rank {}: start all ranks with one name; {}",
                    system::ranks_text(absent), name_, system::seconds_text(timeout_), rank_,
                    system::more_time));
  }

  void leave() {
    seat(rank_).presence.store(Presence::left, std::memory_order_release);
    ring();
  }

  void ring() {
    control().bell.fetch_add(1);
    wake_all(control().bell);
  }

  bool expired() const { return timeout_.count() > 0 && Clock::now() - start_ > timeout_; }
  void check_deadline() {
    if (expired()) throw_timed_out({first()});
  }

  static constexpr std::chrono::microseconds longest_pause{10000};
  static constexpr std::chrono::seconds linger{2};

  const std::string name_, file_;
  const int rank_, ranks_;
  const std::vector<uint32_t> hosts_;  ///< by rank
  const std::chrono::nanoseconds timeout_;
  const bool used_once_;
  const Clock::time_point start_;
  Process self_;
  Board* board_ = nullptr;
  system::Descriptor memory_;
  system::Mapping mapping_;
  bool published_ = false;  ///< this rank gave the memory its name
  bool seated_ = false;
};

}  // namespace

system::Mapping join_under(const std::string& name, int rank, const std::vector<uint32_t>& hosts,
                           std::chrono::nanoseconds timeout, bool used_once) {
  return Joining(name, rank, hosts, timeout, used_once).run();
}

}  // namespace chorale::world
