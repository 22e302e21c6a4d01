// A world takes a stop back on all ranks, or on none.

#include <fmt/format.h>

#include <span>
#include <string>
#include <utility>

#include "../system/thrown.hpp"
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

/// Runs what this rank's parts of the world do first.
std::optional<Thrown> Group::prepare_reset(int rank, std::exception_ptr& failed) {
  std::optional<Thrown> first;
  for (const auto& [who, what] : before_reset_[size_t(rank)]) {
    const std::optional<Thrown> thrown = thrown_by([&, &step = what] {
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

/// Resets the world. The ranks of a stopped world are anywhere in their barriers, so all start again from
/// none.
void Group::reset(int rank) {
  require_own_process();
  scheduler_->check_caller();
  std::exception_ptr failed;
  const std::optional<Thrown> mine = prepare_reset(rank, failed);
  at_step(Step::reset);
  reset_barrier(rank);
  // A rank that was counted for a reset that it gave up may not have come again. And if each process has a
  // scheduler, nobody may stop the world while a peer's still holds the report of the last stop. If all ranks
  // have one scheduler, a rank that stops the world now does so after the reset.
  if (!local_) scheduler_->rearm();
  // This has a byte for the reason and then the text. It is empty if all went well.
  std::string said;
  if (mine) said = char('a' + int(mine->reason)) + mine->text;
  const auto all = allgather(rank, std::as_bytes(std::span(said)), Collective::reset, {}, !local_);
  for (int peer = 0; peer < ranks(); ++peer) {
    if (all[size_t(peer)].empty()) continue;
    const std::string text(reinterpret_cast<const char*>(all[size_t(peer)].data()), all[size_t(peer)].size());
    const std::string why = fmt::format("rank {} could not be reset: {}", peer, text.substr(1));
    // The state of that rank is as it was when the world stopped.
    raise(Stop::aborted, peer, why);
    if (failed) std::rethrow_exception(failed);
    throw RunError(RunError::Reason(text[0] - 'a'), why);
  }
}

}  // namespace chorale::world
