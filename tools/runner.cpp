#include "tools/runner.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "tools/command.hpp"

namespace chorale::tools {
namespace {

constexpr size_t guard_bytes = 64;
constexpr std::byte guard{0x5a};

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

/// One rank's memory for the largest size, and where input and output of the current size are in it.
struct Buffers {
  std::byte *in = nullptr, *out = nullptr;
  std::byte* end = nullptr;  ///< behind the last byte the plan may touch: the guard
  MessageSizes sizes;
};

/// In place, the smaller of input and output is this rank's part of the larger one, as in NCCL.
Buffers place(std::byte* first, std::byte* second, const Plan& plan, bool in_place, uint32_t rank,
              MessageSizes sizes) {
  if (!in_place) return {first, second, second + sizes.output, sizes};
  const uint64_t in_at = plan.collective == "allgather" ? rank * sizes.input : 0;
  const uint64_t out_at = plan.collective == "reducescatter" ? rank * sizes.output : 0;
  return {first + in_at, first + out_at, first + std::max(sizes.input, sizes.output), sizes};
}

class Rank {
 public:
  Rank(World& world, const Plan& plan, const RunRequest& request, const Config& config)
      : world_(world), plan_(plan), request_(request), executor_(world, config) {
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
    buffers_ =
        place(first_, second_, plan_, request_.in_place, rank, message_sizes(plan_, bytes, request_.dtype));
    arguments_ = {.in = buffers_.in, .out = buffers_.out, .bytes = bytes, .dtype = request_.dtype};
    if (request_.override_op) arguments_.op = request_.op;
    arguments_.packet = request_.packet;
    executor_.prepare(plan_, arguments_);
    RankReport::Size& report = reports.size(rank, which);
    const auto checked_run = [&](uint64_t turn) {
      fill(oracle, turn);
      const double time = run();
      if (const std::string wrong = compare(oracle, turn); !wrong.empty() && !report.wrong) {
        report.wrong = true;
        std::snprintf(report.what, sizeof report.what, "%s", wrong.c_str());
      }
      return time;
    };
    uint64_t turn = 0;
    if (request_.bench) checked_run(turn++);
    for (unsigned repeat = 0; repeat < request_.warmup; ++repeat) run();
    for (unsigned repeat = 0; repeat < request_.repeat; ++repeat) {
      reports.time(rank, which, repeat) = request_.bench ? run() : checked_run(turn++);
    }
    if (request_.bench) checked_run(turn++);
    report.finished = true;
    ++reports.rank(rank).done;
  }

 private:
  double run() {
    world_.barrier();
    const double start = now_us();
    executor_.execute(plan_, arguments_);
    const double time = now_us() - start;
    // Checking one rank's result would take a core from ranks that still run, and count as their time.
    world_.barrier();
    return time;
  }

  void fill(const Oracle& oracle, uint64_t turn) {
    std::memset(buffers_.out, int(0xa5 ^ (turn & 0x0f)),
                buffers_.sizes.output);  // stale results must not look right
    oracle.fill(uint32_t(world_.rank()), turn, buffers_.in);
    std::fill_n(buffers_.end, guard_bytes, guard);
    if (!request_.in_place) before_.assign(buffers_.in, buffers_.in + buffers_.sizes.input);
    // No rank starts into memory that its owner still fills.
    world_.barrier();
  }

  std::string compare(const Oracle& oracle, uint64_t turn) {
    const uint32_t rank = uint32_t(world_.rank());
    const std::string who = "rank " + std::to_string(rank);
    const std::string when = turn == 0 ? "" : " in run " + std::to_string(turn + 1);
    if (const std::optional<Mismatch> found = oracle.compare(rank, turn, buffers_.out)) {
      return who + ", output element " + std::to_string(found->index) + when + ": got " + number(found->got) +
             ", expected " + number(found->expected) + " (" + std::to_string(found->elements) + " of its " +
             count(buffers_.sizes.output / dtype_size(request_.dtype), "element") +
             (found->elements == 1 ? " is wrong)" : " are wrong)");
    }
    if (std::any_of(buffers_.end, buffers_.end + guard_bytes, [](std::byte byte) { return byte != guard; })) {
      return who + " was written to behind the end of its buffer" + when;
    }
    if (!request_.in_place && std::memcmp(before_.data(), buffers_.in, before_.size()) != 0) {
      return who + ": its input was changed by a run out of place" + when;
    }
    return "";
  }

  World& world_;
  const Plan& plan_;
  const RunRequest& request_;
  Executor executor_;
  std::byte *first_ = nullptr, *second_ = nullptr;
  Buffers buffers_;
  Arguments arguments_;
  std::vector<std::byte> before_;
};

}  // namespace

Reports::Reports(uint32_t ranks, size_t sizes, size_t repeats) : sizes_(sizes), repeats_(repeats) {
  stride_ = sizeof(RankReport) + sizes * (sizeof(RankReport::Size) + repeats * sizeof(double));
  stride_ = (stride_ + 63) / 64 * 64;
  bytes_ = stride_ * ranks;
  void* memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw Failure(Exit::run_failed, "no memory for the reports of the ranks");
  memory_ = static_cast<std::byte*>(memory);  // zeroed: an empty report of every rank
}

Reports::~Reports() { ::munmap(memory_, bytes_); }

RankReport& Reports::rank(uint32_t rank) const {
  return *reinterpret_cast<RankReport*>(memory_ + rank * stride_);
}

double& Reports::time(uint32_t rank, size_t size, size_t repeat) const {
  auto* times = reinterpret_cast<double*>(memory_ + rank * stride_ + sizeof(RankReport));
  return times[size * repeats_ + repeat];
}

RankReport::Size& Reports::size(uint32_t rank, size_t size) const {
  std::byte* at = memory_ + rank * stride_ + sizeof(RankReport) + sizes_ * repeats_ * sizeof(double);
  return reinterpret_cast<RankReport::Size*>(at)[size];
}

void Reports::fail(uint32_t who, RunError::Reason reason, const std::string& message) {
  RankReport& report = rank(who);
  report.reason = reason;
  std::snprintf(report.error, sizeof report.error, "%s", message.c_str());
  report.failed = true;
}

void run_rank(World& world, const Plan& plan, const RunRequest& request, const Config& config,
              const std::vector<Oracle>& oracles, Reports& reports) {
  Rank rank(world, plan, request, config);
  for (size_t which = 0; which < request.sizes.size(); ++which) rank.run_size(which, oracles[which], reports);
  world.barrier();  // nobody leaves while others still read its memory
}

RunOutcome run_plan(const Plan& plan, const RunRequest& request, const Config& config) {
  std::vector<Oracle> oracles;
  for (size_t which = 0; which < request.sizes.size(); ++which) {
    const uint64_t width = dtype_size(request.dtype);
    const MessageSizes sizes = message_sizes(plan, request.sizes[which], request.dtype);
    oracles.emplace_back(
        plan, Oracle::Case{request.dtype, request.op, sizes.input / width, sizes.output / width, which});
  }
  Reports reports(plan.ranks(), request.sizes.size(), request.repeat);
  RunOutcome outcome;
  if (request.processes) {
    outcome.error = run_processes(plan, request, config, oracles, reports);
  } else {
    try {
      run_local(
          int(plan.ranks()), [&](World& world) { run_rank(world, plan, request, config, oracles, reports); },
          config.local());
    } catch (const RunError& error) {
      outcome.error = error.what();
    }
  }
  for (size_t which = 0; which < request.sizes.size(); ++which) {
    SizeResult& result = outcome.sizes.emplace_back();
    result.finished = true;
    result.times_us.assign(request.repeat, 0);
    for (uint32_t rank = 0; rank < plan.ranks(); ++rank) {
      const RankReport::Size& report = reports.size(rank, which);
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
