#pragma once
/// \file
/// All that has to be looked at for a plan to be proved.

#include "../checks/report.hpp"
#include "player.hpp"

namespace chorale::proof {

/// Orders of blocks that compete for a semaphore or a channel: more are not walked through.
inline constexpr uint32_t max_executions = 1024;

/// Whether input and output of a rank are one memory: what the executor may make of the plan.
std::vector<bool> list_storages(const Plan&);

/// Calls visit(Player&, Choices&) for every message, storage and outcome of a competition; it returns false
/// where something was found, and then that was the last call. Says so where a plan is too large to be
/// proved.
template <class Visit>
void for_each_execution(const Plan& plan, Report& report, Visit&& visit) {
  const auto too_large = [&](const std::string& what) {
    report.add({}, "this plan cannot be proved: " + what);
  };
  const std::vector<Message> messages = list_messages(plan);
  if (messages.empty()) return too_large("its pipelines and thread block groups have no common measure");
  for (const Message& message : messages) {
    for (const bool one_storage : list_storages(plan)) {
      const Memory memory(plan, message, one_storage);
      if (!memory.fits())
        return too_large("its pipelines take too many turns, or its operands are cut too finely");
      Player player(plan, memory);
      Choices choices;
      uint32_t executions = 0;
      do {
        if (++executions > max_executions) {
          return too_large("its thread blocks compete for semaphores or channels in more than " +
                           number(max_executions) + " orders");
        }
        if (!visit(player, choices)) return;
      } while (choices.next());
    }
  }
}

}  // namespace chorale::proof
