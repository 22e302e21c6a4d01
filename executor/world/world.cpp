#include "chorale/world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "chorale/invitation.hpp"
#include "control_relay.hpp"
#include "executor/bootstrap/rendezvous.hpp"
#include "executor/bootstrap/secret.hpp"
#include "executor/system/deadline.hpp"
#include "executor/system/thrown.hpp"
#include "group.hpp"
#include "join.hpp"
#include "shrink.hpp"

namespace chorale {
namespace {

/// Holds a group until all of its ranks have it.
struct Handover {
  std::shared_ptr<world::Group> group;
  std::optional<system::Thrown> failed;  ///< why there is no group
  int missing = 0;                       ///< the number of ranks that have not come
};

struct Handovers {
  std::mutex mutex;
  std::map<std::string, Handover> by_name;
};

Handovers& handovers() {
  static Handovers& all = *new Handovers;  // threads may still join at exit
  return all;
}

/// Returns the group of the ranks that share `name`; all `ranks` ranks call it once. The first rank makes it.
/// \param name  the name of a membership, which no other world has
/// \param options  the options of the first rank count
/// \throws RunError resources on all ranks if there is no memory
std::shared_ptr<world::Group> group_of_threads(const std::string& name, int ranks,
                                               const world::Group::Options& options) {
  Handovers& all = handovers();
  const std::lock_guard lock(all.mutex);
  Handover& handover = all.by_name[name];
  if (!handover.group && !handover.failed) {
    handover.missing = ranks;
    handover.failed =
        system::thrown_by([&] { handover.group = std::make_shared<world::Group>(ranks, options); });
  }
  const Handover mine = handover;
  if (--handover.missing == 0) all.by_name.erase(name);
  if (mine.failed) throw RunError(mine.failed->reason, mine.failed->text);
  return mine.group;
}

/// Returns the part of `address` after "shm://".
std::string shm_name(const std::string& address) {
  constexpr std::string_view shm = "shm://";
  const std::string name = address.starts_with(shm) ? address.substr(shm.size()) : std::string();
  if (name.empty() || name.size() > 200 || name.find('/') != std::string::npos) {
    throw UsageError(
        fmt::format("'{}' is no address: it should be tcp://host:port, or shm://name with a name of at most "
                    "200 characters and no '/'",
                    address));
  }
  return name;
}

/// Reads the secret from the options, or else from the environment. Launchers pass it as a variable, so a
/// program that joins without a Config must use it too.
bootstrap::Secret secret_of(const JoinOptions& options) {
  const char* const variable = options.secret.empty() ? std::getenv("CHORALE_SECRET") : nullptr;
  try {
    if (variable) bootstrap::check_secret_setting(variable);
    return bootstrap::Secret::read(variable ? variable : options.secret);
  } catch (const UsageError& error) {
    throw UsageError(
        fmt::format("{}: {}", variable ? "CHORALE_SECRET" : "JoinOptions::secret", error.what()));
  }
}

void check_place(int rank, int ranks) {
  if (ranks < 1 || rank < 0 || rank >= ranks) {
    throw UsageError(
        fmt::format("rank {} of {} ranks: a rank is at least 0 and less than their number", rank, ranks));
  }
  if (ranks > World::most_ranks) {
    throw UsageError(
        fmt::format("rank {} of {} ranks: a world has {} at most", rank, ranks, World::most_ranks));
  }
}

void check_host(const JoinOptions& options) {
  if (!options.host.empty() && !is_host_name(options.host)) {
    throw UsageError(
        fmt::format("JoinOptions::host '{}' is no name of 1 to 200 printable characters", options.host));
  }
}

/// Joins the other ranks of the host, after a rendezvous if there is one.
/// \param used_once  no other job has or had the membership's name
/// \param start  the time at which the join began
std::shared_ptr<world::Group> group_of_processes(bootstrap::Rendezvous met, int rank,
                                                 const JoinOptions& options, bool used_once,
                                                 std::chrono::steady_clock::time_point start) {
  std::chrono::nanoseconds left = options.timeout;
  // The rest must stay above 0, because 0 means no limit.
  if (left.count() > 0)
    left = std::max(left - (std::chrono::steady_clock::now() - start), std::chrono::nanoseconds(1));
  // Several hosts on one machine share one /dev/shm, so the name includes the host's number.
  std::string name = met.membership.name;
  if (const uint32_t host = met.membership.hosts.at(size_t(rank)); host != 0)
    name += fmt::format("-{}", host);
  system::Mapping control;
  try {
    control = world::join_under(name, rank, met.membership.hosts, left, used_once);
  } catch (...) {
    world::tell_hosts(met.links, rank, system::thrown_now());
    throw;
  }
  return std::make_shared<world::Group>(
      std::move(control), rank, world::Group::Options{options.workers, {}, options.timeout},
      world::Hosts{std::move(met.membership.host_names), std::move(met.links)});
}

}  // namespace

bool is_host_name(const std::string& name) {
  return !name.empty() && name.size() <= 200 &&
         std::all_of(name.begin(), name.end(), [](char letter) { return letter >= ' ' && letter <= '~'; });
}

World::World(std::shared_ptr<world::Group> group, int rank) : group_(std::move(group)), rank_(rank) {}
World::World(World&&) noexcept = default;

World& World::operator=(World&& other) noexcept {
  std::swap(group_, other.group_);
  std::swap(rank_, other.rank_);
  return *this;
}

World::~World() {
  if (!group_) return;
  if (group_->forked()) {
    system::keep_for_ever(std::move(group_));
    return;
  }
  group_->leave(rank_);
}

World World::join(const std::string& address, int rank, int ranks, JoinOptions options) {
  check_place(rank, ranks);
  std::optional<bootstrap::Address> rendezvous;
  bootstrap::Rendezvous met;
  if (address.starts_with("tcp://")) {
    rendezvous = bootstrap::parse_address(address);
  } else {
    met.membership = bootstrap::Membership::of_one_host(shm_name(address), ranks);
  }
  check_host(options);
  if (!rendezvous && !options.host.empty()) {
    throw UsageError(
        fmt::format("ranks that join at '{}' share memory, so JoinOptions::host ('{}') cannot "
                    "separate them: join at tcp://host:port",
                    address, options.host));
  }
  system::check_timeout(options.timeout, "JoinOptions::timeout");
  const auto start = std::chrono::steady_clock::now();
  if (rendezvous) {
    met = bootstrap::rendezvous(*rendezvous, bootstrap::hello_of(rank, ranks, options.host), options.timeout,
                                secret_of(options));
  }
  const std::shared_ptr<world::Group> group =
      group_of_processes(std::move(met), rank, options, rendezvous.has_value(), start);
  World world(group, rank);
  group->complete_join(rank);
  return world;
}

World World::join(const Invitation& invitation, int rank, int ranks, JoinOptions options) {
  check_place(rank, ranks);
  check_host(options);
  system::check_timeout(options.timeout, "JoinOptions::timeout");
  const auto start = std::chrono::steady_clock::now();
  bootstrap::Rendezvous met =
      bootstrap::rendezvous(invitation, bootstrap::hello_of(rank, ranks, options.host), options.timeout);
  if (met.membership.one_process) {
    const world::Group::Options of_group{options.workers, {}, options.timeout};
    World world(group_of_threads(met.membership.name, ranks, of_group), rank);
    world.group_->barrier(rank, world::Collective::join);
    return world;
  }
  const std::shared_ptr<world::Group> group = group_of_processes(std::move(met), rank, options, true, start);
  World world(group, rank);
  group->complete_join(rank);
  return world;
}

int World::ranks() const { return group_->ranks(); }
std::chrono::nanoseconds World::timeout() const { return group_->timeout(); }
bool World::local() const { return group_->local(); }
int World::host(int rank) const { return int(group_->host(rank)); }
void World::barrier() { group_->barrier(rank_); }

std::vector<std::vector<std::byte>> World::allgather(std::span<const std::byte> mine) {
  return group_->allgather(rank_, mine);
}

void World::agree(const std::optional<std::string>& my_error, RunError::Reason reason) {
  // `mine` holds a byte for the reason and then the message. It is empty if there is no error.
  std::vector<std::byte> mine;
  if (my_error) {
    mine.resize(1 + my_error->size());
    mine[0] = std::byte(reason);
    std::memcpy(mine.data() + 1, my_error->data(), my_error->size());
  }
  const std::vector<std::vector<std::byte>> all =
      group_->allgather(rank_, mine, world::Collective::agreement);
  for (int rank = 0; rank < ranks(); ++rank) {
    if (all[rank].empty()) continue;
    const std::string message(reinterpret_cast<const char*>(all[rank].data()) + 1, all[rank].size() - 1);
    throw RunError(RunError::Reason(all[rank][0]), fmt::format("rank {}: {}", rank, message));
  }
}

void World::abort(const std::string& why) { group_->raise(Stop::aborted, rank_, why); }
void World::reset() { group_->reset(rank_); }

World World::survivors(std::span<const int> without) {
  group_->require_own_process();
  if (group_->several_hosts()) {
    throw UsageError(
        "survivors() is for worlds of one host, and this one has several: the remaining ranks can join a new "
        "world under another address");
  }
  for (const int out : without) {
    if (out < 0 || out >= ranks() || out == rank_) {
      throw UsageError(
          fmt::format("rank {} of {} ranks cannot leave out rank {}: that must be another rank of the world",
                      rank_, ranks(), out));
    }
  }
  world::Place place = world::next_of(*group_, rank_, without);
  return World(std::move(place.group), place.rank);
}

std::vector<int> World::former_ranks() const { return group_->former_ranks(); }
uint64_t World::resets() const { return group_->resets(rank_); }
void World::check() const { group_->check(); }
AbortWord* World::abort_word() const { return group_->abort_word(); }
fibers::Scheduler& World::scheduler() const { return group_->scheduler(); }

}  // namespace chorale
