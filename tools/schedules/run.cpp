#include "tools/schedules/run.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "tools/device.hpp"
#include "tools/ranks.hpp"
#include "tools/schedule_options.hpp"
#include "tools/schedules/reference.hpp"
#include "tools/shared.hpp"

namespace chorale::tools {
namespace {

/// Holds one rank's report.
struct Report {
  bool wrong = false, finished = false;
  char what[512];
};

/// Holds one rank's device, tensors and binding.
class Rank {
 public:
  Rank(World& world, const Plan& plan, const ScheduleRequest& request, const Config& config,
       const schedule::Concrete& made, const BlockPlans& plans)
      : world_(world), made_(made), device_(make_device(config.backend, world)) {
    ScheduleArguments arguments{.params = request.params, .plans = plans, .mover = request.mover};
    for (const schedule::ConcreteTensor& tensor : made.tensors) {
      if (tensor.role == schedule::Role::temp) {
        memory_.push_back(nullptr);
        continue;
      }
      memory_.push_back(device_->allocate(std::max<uint64_t>(tensor.bytes, 1)));
      arguments.buffers[tensor.name] = memory_.back();
    }
    run_ = std::make_unique<ScheduleRun>(world, plan, arguments, config);
  }

  void fill(const Reference& reference) {
    for (uint32_t tensor = 0; tensor < memory_.size(); ++tensor) {
      if (made_.tensors[tensor].role == schedule::Role::in) {
        const std::vector<std::byte> data = reference.input_bytes(uint32_t(world_.rank()), tensor);
        device_->fill(memory_[tensor], data.size(), [&](std::byte* piece, uint64_t offset, uint64_t bytes) {
          std::memcpy(piece, data.data() + offset, bytes);
        });
      } else if (memory_[tensor]) {
        device_->set(memory_[tensor], 0xee, made_.tensors[tensor].bytes);
      }
    }
  }

  double run() {
    world_.barrier();
    const double time = device_->time_us([&] { run_->run(device_->stream()); },
                                         [&] { run_->synchronize(device_->stream()); });
    world_.barrier();
    return time;
  }

  std::optional<std::string> compare(const Reference& reference) {
    for (uint32_t tensor = 0; tensor < memory_.size(); ++tensor) {
      if (made_.tensors[tensor].role != schedule::Role::out) continue;
      std::vector<std::byte> found(made_.tensors[tensor].bytes);
      device_->look(memory_[tensor], found.size(),
                    [&](const std::byte* piece, uint64_t offset, uint64_t bytes) {
                      std::memcpy(found.data() + offset, piece, bytes);
                    });
      if (auto wrong = reference.differs(uint32_t(world_.rank()), tensor, found.data())) return wrong;
    }
    return {};
  }

 private:
  World& world_;
  const schedule::Concrete& made_;
  std::unique_ptr<Device> device_;  // is before the binding, which takes the current device
  std::vector<std::byte*> memory_;  // by tensor; null: a temporary
  std::unique_ptr<ScheduleRun> run_;
};

}  // namespace

RunOutcome run_schedule(const Plan& plan, const ScheduleRequest& request, const Config& config) {
  const schedule::Concrete made = unroll(plan, request.ranks, request.params, request.mover);
  const BlockPlans plans = launched_plans(plan, made, request.plans, request.allow);
  // The reference runs before the ranks start, so that ranks that are processes share its results.
  std::vector<Reference> expected;
  for (unsigned turn = 0; turn < request.repeat; ++turn) {
    expected.emplace_back(plan, made, plans, request.params);
    expected.back().run(turn);
  }
  Shared<Report> reports(request.ranks);
  Shared<double> times(size_t(request.ranks) * request.repeat);
  RunOutcome outcome;
  outcome.error =
      run_ranks({.ranks = request.ranks, .processes = request.processes}, config, [&](World& world) {
        const uint32_t self = uint32_t(world.rank());
        Rank rank(world, plan, request, config, made, plans);
        for (unsigned turn = 0; turn < request.repeat; ++turn) {
          rank.fill(expected[turn]);
          times[size_t(self) * request.repeat + turn] = rank.run();
          const auto wrong = rank.compare(expected[turn]);
          if (!wrong || reports[self].wrong) continue;
          reports[self].wrong = true;
          std::snprintf(reports[self].what, sizeof reports[self].what, "run %u: %s", turn + 1,
                        wrong->c_str());
        }
        reports[self].finished = true;
        world.barrier();  // so that no rank leaves while others still read its memory
      });
  SizeResult& result = outcome.sizes.emplace_back();
  result.finished = true;
  result.times_us.assign(request.repeat, 0);
  for (uint32_t rank = 0; rank < request.ranks; ++rank) {
    result.finished = result.finished && reports[rank].finished;
    if (reports[rank].wrong && !result.wrong) result.wrong = reports[rank].what;
    for (unsigned turn = 0; turn < request.repeat; ++turn)
      result.times_us[turn] = std::max(result.times_us[turn], times[size_t(rank) * request.repeat + turn]);
  }
  return outcome;
}

}  // namespace chorale::tools
