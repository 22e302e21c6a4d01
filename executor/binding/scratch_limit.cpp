#include "scratch_limit.hpp"

#include <fmt/format.h>

#include "chorale/byte_count.hpp"
#include "chorale/error.hpp"

namespace chorale {

void require_scratch(const Plan& plan, const Call& call, uint64_t bytes, uint64_t kept) {
  if (call.scratch == 0 || bytes + kept <= call.scratch) return;
  const std::string beside =
      kept == 0
          ? ""
          : fmt::format(", in addition to {} bytes of calls whose launches or graphs still need them", kept);
  throw RunError(
      RunError::Reason::resources,
      fmt::format("plan '{}': a message of {} bytes takes {} bytes of scratch on a rank{}, but the "
                  "setting scratch allows an executor {}\n  help: set CHORALE_SCRATCH to {} or more "
                  "on all ranks, or lower CHORALE_ROUND_SCRATCH ({}){}",
                  plan.name, call.bytes, bytes, beside, byte_count_text(call.scratch), bytes + kept,
                  byte_count_text(call.round_scratch),
                  kept == 0 ? "" : ", or destroy graphs that you no longer need"));
}

}  // namespace chorale
