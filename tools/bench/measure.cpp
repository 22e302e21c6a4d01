#include "tools/bench/measure.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <span>
#include <utility>

#include "chorale/collective.hpp"
#include "tools/bench/nccl.hpp"
#include "tools/check_run.hpp"
#include "tools/device.hpp"
#include "tools/trace.hpp"

namespace chorale::tools {
namespace {

constexpr unsigned most_rounds = 4, least_calls = 5, samples = 5;

/// Holds the work that is timed: a plan's or NCCL's.
struct Timed {
  std::function<void()> prepare, enqueue, wait;
  std::byte *first = nullptr, *second = nullptr;  ///< memory for the largest size
};

class Rank {
 public:
  Rank(World& world, const BenchRequest& request, const Config& config, const BenchReports& reports)
      : world_(world),
        request_(request),
        config_(config),
        reports_(reports),
        rank_(uint32_t(world.rank())),
        device_(make_device(config.backend, world)) {}

  void subject(size_t which) {
    const Subject& subject = request_.subjects[which];
    if (subject.peer == Peer::program) return;  // its program has run before
    MessageSizes most;
    for (const Case& one : subject.cases) {
      if (!one.refused.empty()) continue;
      most.input = std::max(most.input, one.sizes.input);
      most.output = std::max(most.output, one.sizes.output);
    }
    if (most.input == 0) return;
    if (subject.in_place) most.input = most.output = std::max(most.input, most.output);
    std::optional<Executor> executor;
    Timed timed;
    std::string failure = !subject.is_plan() ? open_nccl(subject, most, timed) : attempt([&] {
      executor.emplace(world_, config_);
      open_plan(*executor, most, subject.in_place, timed);
    });
    for (size_t size = 0; size < subject.cases.size(); ++size) {
      const Case& one = subject.cases[size];
      if (!one.refused.empty()) continue;
      if (rank_ == 0) reports_.common().subject = uint32_t(which), reports_.common().size = uint32_t(size);
      if (failure.empty()) {
        bool usage = false;
        const std::string why =
            attempt([&] { run_case(which, size, timed, executor ? &*executor : nullptr); }, &usage);
        if (why.empty()) continue;
        note(which, size, why, !usage);
        // If the plan does not take this size, it may take the next one. After a hang or a death we do not
        // try any other.
        if (!usage) failure = "not tried: it has failed at " + format_bytes(one.bytes);
      } else {
        note(which, size, failure, true);
      }
    }
    if (which == request_.first_plan && failure.empty()) tell(subject, *executor);
    // The barrier keeps a rank from freeing memory that others still use.
    world_.barrier();
  }

 private:
  /// Writes the trace and the profiles of a plan's last launches, if they are asked for.
  void tell(const Subject& subject, const Executor& executor) {
    if (!request_.trace.empty()) write_trace(world_, executor, config_, request_.trace);
    if (!request_.profiles) return;
    std::vector<ProfiledCall> calls;
    for (size_t size = 0; size < subject.cases.size(); ++size) {
      const Case& one = subject.cases[size];
      if (!one.refused.empty()) continue;
      calls.push_back({{.bytes = one.bytes, .dtype = request_.dtype, .packet = subject.packet}});
      // The last launch was in the last mode.
      for (const Mode mode : all_modes) {
        const Report& report = reports_.at(rank_, request_.first_plan, size, mode);
        const double us = slowest(report.finished ? report.us : 0);
        if (us == 0) continue;
        calls.back().eager = mode == Mode::eager;
        calls.back().in_a_row_us = us;
      }
    }
    request_.profiles->add(world_, executor, config_, *subject.plan, calls);
  }

  /// Runs `part` on all ranks. Returns why it failed, or "". The world works again afterwards.
  std::string attempt(const std::function<void()>& part, bool* usage = nullptr) {
    std::optional<std::string> mine;
    try {
      part();
    } catch (const UsageError& error) {
      mine = error.what();  // all ranks have made the same call, so it fails on all of them
      if (usage) *usage = true;
    } catch (const std::exception& error) {
      mine = error.what();
      world_.abort(error.what());  // for the ranks that did not fail and would wait for this one
    }
    try {
      world_.agree(mine);
      return "";
    } catch (const RunError& error) {
      const std::string why = mine ? *mine : error.what();
      try {
        world_.check();
      } catch (const RunError&) {
        world_.reset();
      }
      return why;
    }
  }

  void open_plan(Executor& executor, MessageSizes most, bool in_place, Timed& timed) {
    timed.first = static_cast<std::byte*>(executor.allocate(most.input + guard_bytes));
    if (!in_place) timed.second = static_cast<std::byte*>(executor.allocate(most.output + guard_bytes));
    timed.wait = [&] { executor.synchronize(device_->stream()); };
  }

  std::string open_nccl(const Subject& subject, MessageSizes most, Timed& timed) {
    Communicator& of = communicator_of(subject);
    if (!of.nccl && of.problem.empty()) {
      of.nccl = Nccl::join(world_, of.problem, subject.policy(), subject.blocks);
      if (of.nccl && rank_ == 0) {
        std::snprintf(reports_.common().nccl_version, sizeof reports_.common().nccl_version, "%s",
                      of.nccl->version().c_str());
      }
    }
    if (!of.nccl) return of.problem;
    return attempt([&] {
      const bool symmetric = subject.peer != Peer::nccl;
      Memory* const memory = symmetric ? of.symmetric : plain_;
      grow(memory[0], most.input + guard_bytes, symmetric ? &*of.nccl : nullptr);
      grow(memory[1], most.output + guard_bytes, symmetric ? &*of.nccl : nullptr);
      timed.first = memory[0].memory;
      timed.second = memory[1].memory;
      timed.wait = [&] { device_->finish(world_); };
    });
  }

  /// Binds `timed` to one size and measures it in every mode.
  void run_case(size_t which, size_t size, Timed& timed, Executor* executor) {
    const Subject& subject = request_.subjects[which];
    const Case& one = subject.cases[size];
    const Buffers buffers =
        place(timed.first, timed.second, subject.collective, subject.in_place, rank_, one.sizes);
    if (!subject.is_plan()) {
      timed.prepare = [] {};
      timed.enqueue = [&] {
        communicator_of(subject).nccl->enqueue(subject.collective, buffers.in, buffers.out, one.sizes,
                                               request_.dtype, subject.op, device_->stream());
      };
    } else {
      const PacketForm form = subject.packet.value_or(executor->packet_form(*subject.plan, one.bytes));
      for (const Mode mode : all_modes) reports_.at(rank_, which, size, mode).packet = form;
      const Arguments arguments{.in = buffers.in,
                                .out = buffers.out,
                                .bytes = one.bytes,
                                .dtype = request_.dtype,
                                .op = request_.override_op,
                                .packet = form};
      timed.prepare = [=, &subject] { executor->prepare(*subject.plan, arguments); };
      timed.enqueue = [=, this, &subject] { executor->execute(*subject.plan, arguments, device_->stream()); };
    }
    CheckRun check(*device_, *one.oracle, rank_, request_.dtype, buffers);
    measure(which, size, timed, check);
  }

  void measure(size_t which, size_t size, const Timed& timed, CheckRun& check) {
    const Subject& subject = request_.subjects[which];
    uint64_t turn = 0;
    timed.prepare();
    const Findings before = checked(check, turn++, timed.enqueue, timed.wait);
    world_.barrier();
    const double warm = device_->time_us([&] { repeat(request_.warmup, timed.enqueue); }, timed.wait);
    const double one_call = slowest(request_.warmup ? warm / request_.warmup : 0);
    const unsigned calls = fitting(one_call, request_.calls, std::min(least_calls, request_.calls));
    const unsigned rounds = fitting(one_call * calls, most_rounds, 1);
    if (request_.eager) {
      const double time = sample([&] { repeat(calls * rounds, timed.enqueue); }, timed.wait);
      const Findings after = checked(check, turn++, timed.enqueue, timed.wait);
      finish(which, size, Mode::eager, time / (calls * rounds), {before, after});
    }
    if (!request_.graph) return;
    const std::unique_ptr<Graph> graph = device_->capture([&] { repeat(calls, timed.enqueue); });
    if (!graph) return;
    const auto launch = [&] { graph->launch(); };
    launch();
    timed.wait();
    const double time = sample([&] { repeat(rounds, launch); }, timed.wait);
    // A call in place may read the output of the previous call. Then only the first call has a known result.
    const bool repeatable = !subject.in_place || collective_info(subject.collective).repeats_in_place();
    const std::unique_ptr<Graph> single = repeatable ? nullptr : device_->capture(timed.enqueue);
    const Findings after = checked(
        check, turn++, [&] { (single ? *single : *graph).launch(); }, timed.wait);
    finish(which, size, Mode::graph, time / (calls * rounds), {before, after});
  }

  /// Returns the microseconds of `enqueue`. It is the median of several times, because a machine is sometimes
  /// busy for milliseconds.
  double sample(const std::function<void()>& enqueue, const std::function<void()>& wait) {
    std::array<double, samples> times;
    for (double& time : times) {
      world_.barrier();
      time = device_->time_us(enqueue, wait);
    }
    world_.barrier();
    std::nth_element(times.begin(), times.begin() + samples / 2, times.end());
    return times[samples / 2];
  }

  Findings checked(CheckRun& check, uint64_t turn, const std::function<void()>& enqueue,
                   const std::function<void()>& wait) {
    check.fill(turn);
    world_.barrier();
    enqueue();
    wait();
    world_.barrier();
    return check.compare(turn);
  }

  static void repeat(unsigned times, const std::function<void()>& call) {
    for (unsigned time = 0; time < times; ++time) call();
  }

  /// Returns the largest value of all ranks, because all ranks must make the same number of calls.
  double slowest(double mine) {
    double most = mine;
    for (const std::vector<std::byte>& other : world_.allgather(std::as_bytes(std::span(&mine, 1)))) {
      double value = 0;
      std::memcpy(&value, other.data(), std::min(sizeof value, other.size()));
      most = std::max(most, value);
    }
    return most;
  }

  unsigned fitting(double us_each, unsigned most, unsigned least) const {
    if (us_each <= 0 || request_.budget_us / us_each >= most) return most;
    return std::max(least, unsigned(request_.budget_us / us_each));
  }

  void finish(size_t which, size_t size, Mode mode, double us, const std::vector<Findings>& checks) {
    Report& report = reports_.at(rank_, which, size, mode);
    report.us = us;
    for (const Findings& found : checks) {
      if (report.wrong == 0) std::snprintf(report.what, sizeof report.what, "%s", found.what.c_str());
      report.wrong += found.elements;
    }
    report.finished = true;
    report.done = true;
  }

  void note(size_t which, size_t size, const std::string& why, bool failed) {
    for (const Mode mode : all_modes) {
      Report& report = reports_.at(rank_, which, size, mode);
      std::snprintf(report.note, sizeof report.note, "%s", why.c_str());
      report.failed = failed;
      report.done = true;
    }
  }

  struct Memory {
    std::byte* memory = nullptr;
    uint64_t bytes = 0;
  };
  /// Makes memory larger. The memory is in a symmetric window of `window`, unless it is null.
  void grow(Memory& memory, uint64_t bytes, Nccl* window) {
    if (memory.bytes >= bytes) return;
    memory = {window ? window->allocate_symmetric(world_, bytes) : device_->allocate(bytes), bytes};
  }

  /// Holds a communicator of NCCL and its symmetric windows.
  struct Communicator {
    std::unique_ptr<Nccl> nccl;
    std::string problem;  ///< why there is none
    Memory symmetric[2];
  };
  Communicator& communicator_of(const Subject& subject) {
    return communicators_[{subject.policy(), subject.blocks}];
  }

  World& world_;
  const BenchRequest& request_;
  const Config& config_;
  const BenchReports& reports_;
  uint32_t rank_;
  std::unique_ptr<Device> device_;
  std::map<std::pair<Nccl::Policy, uint32_t>, Communicator> communicators_;  ///< by policy and limit
  Memory plain_[2];  ///< of NCCL's calls without symmetric windows
};

}  // namespace

void bench_rank(World& world, const BenchRequest& request, const Config& config,
                const BenchReports& reports) {
  Rank rank(world, request, config, reports);
  for (size_t which = 0; which < request.subjects.size(); ++which) rank.subject(which);
  world.barrier();
}

}  // namespace chorale::tools
