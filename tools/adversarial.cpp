#include "tools/adversarial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <iostream>

#include "chorale/adversary.hpp"

namespace chorale::tools {

namespace {

/// Gives the seconds between lines of progress when stderr is not a terminal.
constexpr double seconds_between_lines = 30;

struct Tried {
  Verdict verdict;
  uint64_t schedules = 0;
};

/// Runs at least one schedule, until one fails, all are done or the time has passed.
Tried try_schedules(Adversary& adversary, const AdversarialRequest& request) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  std::atomic<uint64_t> done{0};
  const uint64_t bytes = adversary.bytes();
  // A schedule of a large message takes long, so another thread tells.
  const auto tell = [&done, &request, bytes, start](Progress& progress) {
    const double of_time =
        request.limit.count() ? (Clock::now() - start) / std::chrono::duration<double>(request.limit) : 0;
    progress(
        fmt::format("{} bytes: {} of {} tried", bytes, done.load(), count(request.schedules, "schedule")),
        std::max(of_time, double(done) / double(request.schedules)));
  };
  const ProgressTicker ticker(tell, seconds_between_lines);
  Verdict verdict;
  while (done < request.schedules && verdict.ok()) {
    if (done && request.limit.count() && Clock::now() - start >= request.limit) break;
    verdict = adversary.run(request.seed + done);
    ++done;
  }
  return {verdict, done};
}

}  // namespace

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
    const auto [verdict, tried] = try_schedules(adversary, request);
    std::printf("%12llu  %8u  %9llu  %s\n", static_cast<unsigned long long>(adversary.bytes()),
                request.launches, static_cast<unsigned long long>(tried), verdict.ok() ? "yes" : "NO");
    std::fflush(stdout);
    if (verdict.ok() && tried < request.schedules) {
      std::cerr << fmt::format("note: {} of {} were tried before the time limit: --limit raises it\n", tried,
                               count(request.schedules, "schedule"));
    }
    if (verdict.ok()) continue;
    if (verdict.kind == Verdict::Kind::refused) throw Failure(Exit::command_wrong, verdict.text);
    throw Failure(Exit::run_failed, fmt::format("seed {}: {}", verdict.seed, verdict.text),
                  fmt::format("--adversarial --seed {} --schedules 1 repeats it", verdict.seed));
  }
  return Exit::well;
}

}  // namespace chorale::tools
