#include "tools/adversarial.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <iostream>

#include "chorale/adversary.hpp"

namespace chorale::tools {

Exit run_adversarial(const Plan& plan, const AdversarialRequest& request) {
  std::cout << plan.name << ": " << plan.collective << " of " << count(plan.ranks(), "rank")
            << (request.in_place ? ", in place" : ", out of place") << ", adversarial\n"
            << std::flush;
  std::printf("%12s  %8s  %9s  stands\n", "bytes", "launches", "schedules");
  std::vector<uint64_t> sizes = request.sizes;
  if (sizes.empty()) sizes.push_back(0);
  for (const uint64_t bytes : sizes) {
    Adversary adversary(plan, {.bytes = bytes,
                               .dtype = bytes ? request.dtype : DType::u8,
                               .packet = request.packet,
                               .launches = request.launches,
                               .in_place = request.in_place});
    const Verdict verdict = adversary.run_all(request.seed, request.schedules);
    std::printf(
        "%12llu  %8u  %9llu  %s\n", static_cast<unsigned long long>(adversary.bytes()), request.launches,
        static_cast<unsigned long long>(verdict.ok() ? request.schedules : verdict.seed - request.seed + 1),
        verdict.ok() ? "yes" : "NO");
    std::fflush(stdout);
    if (verdict.ok()) continue;
    if (verdict.kind == Verdict::Kind::refused) throw Failure(Exit::command_wrong, verdict.text);
    throw Failure(Exit::run_failed, fmt::format("seed {}: {}", verdict.seed, verdict.text),
                  fmt::format("--adversarial --seed {} --schedules 1 repeats it", verdict.seed));
  }
  return Exit::well;
}

}  // namespace chorale::tools
