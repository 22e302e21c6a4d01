// World::reset() clears a stop on all ranks or on none.

#include <fmt/format.h>

#include <span>
#include <string>
#include <utility>

#include "executor/system/thrown.hpp"
#include "group.hpp"
#include "steps.hpp"

namespace chorale::world {

void Group::before_reset(int rank, const void* who, std::function<void()> what) {
  if (what) {
    before_reset_[size_t(rank)][who] = std::move(what);
  } else {
    before_reset_[size_t(rank)].erase(who);
  }
}

/// Runs the functions that before_reset() has registered for this rank.
std::optional<system::Thrown> Group::prepare_reset(int rank, std::exception_ptr& failed) {
  std::optional<system::Thrown> first;
  for (const auto& [who, what] : before_reset_[size_t(rank)]) {
    const std::optional<system::Thrown> thrown = system::thrown_by([&, &step = what] {
      try {
        step();
      } catch (...) {
        if (!failed) failed = std::current_exception();
        throw;
      }
    });
    if (thrown && !first) first = thrown;
  }
  return first;
}

/// Resets the world. The ranks of a stopped world may have entered different numbers of barriers, so all
/// counts start again from 0.
void Group::reset(int rank) {
  require_own_process();
  scheduler_->check_caller();
  std::exception_ptr failed;
  const std::optional<system::Thrown> mine = prepare_reset(rank, failed);
  at_step(CollectiveStep::reset);
  reset_barrier(rank);
  // A second barrier is needed, because a rank that gave up an earlier reset is counted but may not be here.
  // Also, if each process has a scheduler, no rank may stop the world again while a peer's scheduler still
  // holds the report of the last stop. If all ranks share one scheduler, a rank that stops the world now does
  // so after the reset.
  if (!local_) scheduler_->rearm();
  // `said` holds a byte for the reason and then the text. It is empty if there is no error.
  std::string said;
  if (mine) said = char('a' + int(mine->reason)) + mine->text;
  const auto all = allgather(rank, std::as_bytes(std::span(said)), Collective::reset, {}, !local_);
  for (int peer = 0; peer < ranks(); ++peer) {
    if (all[size_t(peer)].empty()) continue;
    const std::string text(reinterpret_cast<const char*>(all[size_t(peer)].data()), all[size_t(peer)].size());
    const std::string why = fmt::format("rank {} could not be reset: {}", peer, text.substr(1));
    // The reset failed on `peer`, so the peer still has the state in which the world stopped.
    raise(Stop::aborted, peer, why);
    if (failed) std::rethrow_exception(failed);
    throw RunError(RunError::Reason(text[0] - 'a'), why);
  }
}

}  // namespace chorale::world
