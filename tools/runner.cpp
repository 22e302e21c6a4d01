#include "tools/runner.hpp"

#include <algorithm>
#include <atomic>
#include <iostream>

#include "tools/check_run.hpp"
#include "tools/device.hpp"
#include "tools/in_a_row.hpp"
#include "tools/ranks.hpp"
#include "tools/shared.hpp"
#include "tools/trace.hpp"

namespace chorale::tools {
namespace {

/// Holds a rank's report on one size.
struct SizeReport {
  std::atomic<bool> finished;
  bool wrong;
  char what[512];
};

/// Holds the reports of all ranks, in memory that child processes share.
struct Reports {
  Reports(uint32_t ranks, size_t sizes, size_t repeats)
      : reports_(ranks * sizes),
        times_(ranks * sizes * repeats),
        done(ranks),
        sizes_(sizes),
        repeats_(repeats) {}
  SizeReport& size(uint32_t rank, size_t size) const { return reports_[rank * sizes_ + size]; }
  double& time(uint32_t rank, size_t size, size_t repeat) const {
    return times_[(rank * sizes_ + size) * repeats_ + repeat];
  }

 private:
  Shared<SizeReport> reports_;
  Shared<double> times_;

 public:
  Shared<std::atomic<uint32_t>> done;  ///< the number of finished sizes, by rank

 private:
  size_t sizes_, repeats_;
};

class Rank {
 public:
  Rank(World& world, const Plan& plan, const RunRequest& request, const Config& config)
      : world_(world),
        plan_(plan),
        request_(request),
        device_(make_device(config.backend, world)),
        executor_(world, config) {
    MessageSizes most;
    for (const uint64_t bytes : request.sizes) {
      const MessageSizes sizes = message_sizes(plan, bytes, request.dtype);
      most.input = std::max(most.input, sizes.input);
      most.output = std::max(most.output, sizes.output);
    }
    if (request.in_place) most.input = most.output = std::max(most.input, most.output);
    first_ = static_cast<std::byte*>(executor_.allocate(most.input + guard_bytes));
    if (!request.in_place) second_ = static_cast<std::byte*>(executor_.allocate(most.output + guard_bytes));
  }

  void run_size(size_t which, const Oracle& oracle, Reports& reports) {
    const uint32_t rank = uint32_t(world_.rank());
    const uint64_t bytes = request_.sizes[which];
    const Buffers buffers = place(first_, second_, plan_.collective, request_.in_place, rank,
                                  message_sizes(plan_, bytes, request_.dtype));
    arguments_ = {.in = buffers.in, .out = buffers.out, .bytes = bytes, .dtype = request_.dtype};
    if (request_.override_op) arguments_.op = request_.op;
    arguments_.packet = request_.packet;
    executor_.prepare(plan_, arguments_);
    calls_.push_back({arguments_});
    SizeReport& report = reports.size(rank, which);
    const auto note = [&report](const Findings& found) {
      if (found.what.empty() || report.wrong) return;
      report.wrong = true;
      std::snprintf(report.what, sizeof report.what, "%s", found.what.c_str());
    };
    if (request_.in_a_row) {
      LaunchesInARow launches(*device_, executor_, plan_, arguments_, oracle, rank, buffers,
                              request_.in_a_row);
      for (unsigned repeat = 0; repeat < request_.repeat; ++repeat) {
        const uint64_t turn = uint64_t(repeat) * request_.in_a_row;
        launches.fill(turn);
        world_.barrier();
        launches.enqueue();
        executor_.synchronize(device_->stream());
        world_.barrier();
        note(launches.compare(turn));
      }
    } else {
      CheckRun check(*device_, oracle, rank, request_.dtype, buffers);
      for (unsigned repeat = 0; repeat < request_.repeat; ++repeat) {
        check.fill(repeat);
        reports.time(rank, which, repeat) = run();
        note(check.compare(repeat));
      }
    }
    report.finished = true;
    ++reports.done[rank];
  }

  const Executor& executor() const { return executor_; }

  /// Writes the trace and the profiles of each size's last run, if the user wants them. Collective.
  void tell(const Config& config) const {
    if (!request_.trace.empty()) write_trace(world_, executor_, config, request_.trace);
    if (request_.profiles) request_.profiles->add(world_, executor_, config, plan_, calls_);
  }

 private:
  double run() {
    world_.barrier();
    const double time = device_->time_us([&] { executor_.execute(plan_, arguments_, device_->stream()); },
                                         [&] { executor_.synchronize(device_->stream()); });
    // The barrier comes first. Otherwise checking one rank's result would take a core from ranks that still
    // run, and add to their time.
    world_.barrier();
    return time;
  }

  World& world_;
  const Plan& plan_;
  const RunRequest& request_;
  std::unique_ptr<Device> device_;  // is before the executor, which takes the current device
  Executor executor_;
  std::byte *first_ = nullptr, *second_ = nullptr;
  Arguments arguments_;
  std::vector<ProfiledCall> calls_;  ///< one call of each size
};

std::vector<Oracle> oracles_of(const Plan& plan, const RunRequest& request) {
  std::vector<Oracle> oracles;
  for (size_t which = 0; which < request.sizes.size(); ++which) {
    const uint64_t width = dtype_size(request.dtype);
    const MessageSizes sizes = message_sizes(plan, request.sizes[which], request.dtype);
    oracles.emplace_back(plan, Oracle::Case{request.dtype, request.op, sizes.input / width,
                                            sizes.output / width, which, /*special=*/true});
  }
  return oracles;
}

}  // namespace

RunOutcome run_plan(const Plan& plan, const RunRequest& request, const Config& config) {
  const std::vector<Oracle> oracles = oracles_of(plan, request);
  Reports reports(plan.ranks(), request.sizes.size(), request.repeat);
  const Launch launch{.ranks = plan.ranks(), .processes = request.processes, .progress = [&] {
                        return "size " + std::to_string(reports.done[0] + 1) + " of " +
                               std::to_string(request.sizes.size());
                      }};
  std::optional<StoppedTrace> stopped;
  if (!request.trace.empty()) stopped.emplace();
  RunOutcome outcome;
  outcome.error = run_ranks(launch, config, [&](World& world) {
    Rank rank(world, plan, request, config);
    try {
      for (size_t which = 0; which < request.sizes.size(); ++which)
        rank.run_size(which, oracles[which], reports);
      rank.tell(config);
      world.barrier();  // so that no rank leaves while others still read its memory
    } catch (...) {
      if (stopped) stopped->add(rank.executor());
      throw;
    }
  });
  if (stopped && !outcome.error.empty()) {
    try {
      stopped->write(plan, config, request.trace);
    } catch (const Failure& failure) {
      std::cerr << "note: there is no trace: " << failure.what() << "\n";
    }
  }
  for (size_t which = 0; which < request.sizes.size(); ++which) {
    SizeResult& result = outcome.sizes.emplace_back();
    result.finished = true;
    result.times_us.assign(request.repeat, 0);
    for (uint32_t rank = 0; rank < plan.ranks(); ++rank) {
      const SizeReport& report = reports.size(rank, which);
      result.finished = result.finished && report.finished;
      if (report.wrong && !result.wrong) result.wrong = report.what;
      for (unsigned repeat = 0; repeat < request.repeat; ++repeat) {
        result.times_us[repeat] = std::max(result.times_us[repeat], reports.time(rank, which, repeat));
      }
    }
  }
  return outcome;
}

}  // namespace chorale::tools
