#include "caller.hpp"

#include <chorale/device/deadline.hpp>
#include <chorale/dsl.hpp>
#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>
#include <thread>

namespace chorale::test {
namespace {

using Clock = std::chrono::steady_clock;

float value(int run, int rank, uint64_t at) {
  return float((uint64_t(run) * 31 + uint64_t(rank) * 7 + at * 3) % 1000);
}

}  // namespace

const Plan& built(std::string_view name, int ranks) {
  const std::string algorithm(name);
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<Plan>> known;
  const std::lock_guard lock(mutex);
  std::unique_ptr<Plan>& plan = known[algorithm + " " + std::to_string(ranks)];
  if (!plan) {
    dsl::Compiled compiled = dsl::build(algorithm, {{"ranks", std::to_string(ranks)}}).compile();
    must(compiled.ok(), algorithm + " compiles");
    plan = std::make_unique<Plan>(std::move(compiled.plan));
  }
  return *plan;
}

Plan both_wait_first(ChannelType type) {
  Plan plan;
  plan.name = "both_wait_first";
  plan.collective = "allreduce";
  plan.source = {{"mine.cpp", 11}, {"mine.cpp", 12}};
  for (uint32_t rank = 0; rank < 2; ++rank) {
    Gpu gpu;
    gpu.id = rank;
    gpu.chunks[0] = gpu.chunks[1] = 1;
    gpu.channels.push_back({.type = type, .connected_to = {1 - rank}, .rank_groups = {}});
    ThreadBlock block;
    block.channels.push_back({type, {0}});
    const uint32_t channel[] = {0};
    for (const Opcode code : {Opcode::wait, Opcode::signal}) {
      Op& op = append(block, code, {}, {}, channel);
      op.via = type;
      op.at = code == Opcode::wait ? 1 : 2;
    }
    gpu.threadblocks.push_back(block);
    plan.gpus.push_back(gpu);
  }
  return plan;
}

Failure failure_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const RunError& error) {
    return {error.reason, false, error.what()};
  } catch (const UsageError& error) {
    return {RunError::Reason::other, true, error.what()};
  }
  must(false, "something is thrown");
  return {};
}

Data::Data(const Rank& of, int rows)
    : rank_(of.rank()),
      ranks_(of.ranks()),
      rows_(rows),
      stream_(device().make_stream()),
      in_(device().allocate(bytes)),
      out_(device().allocate(bytes)),
      fed_(device().allocate(uint64_t(rows) * bytes)),
      kept_(device().allocate(uint64_t(rows) * bytes)) {}

void Data::use(std::shared_ptr<void> in, std::shared_ptr<void> out) {
  in_ = std::move(in);
  out_ = std::move(out);
}

char* Data::row(const std::shared_ptr<void>& of, int row) const {
  return static_cast<char*>(of.get()) + uint64_t(row) * bytes;
}

void Data::load(int first) {
  first_ = first;
  std::vector<float> all(size_t(rows_) * elements);
  for (int row = 0; row < rows_; ++row) {
    for (uint64_t at = 0; at < elements; ++at)
      all[uint64_t(row) * elements + at] = value(first + row, rank_, at);
  }
  device().copy(fed_.get(), all.data(), all.size() * sizeof(float), stream());
  device().wait(stream());
}

void Data::before(int at) { device().copy(in_.get(), row(fed_, at), bytes, stream()); }
void Data::after(int at) { device().copy(row(kept_, at), out_.get(), bytes, stream()); }

void Data::compare() {
  std::vector<float> all(size_t(rows_) * elements);
  device().copy(all.data(), kept_.get(), all.size() * sizeof(float), stream());
  device().wait(stream());
  for (int row = 0; row < rows_; ++row) {
    for (uint64_t at = 0; at < elements; ++at) {
      float wanted = 0;
      for (int of = 0; of < ranks_; ++of) wanted += value(first_ + row, of, at);
      const float seen = all[uint64_t(row) * elements + at];
      if (seen == wanted) continue;
      throw std::runtime_error("run " + std::to_string(first_ + row) + ", element " + std::to_string(at) +
                               ": " + std::to_string(seen) + ", not " + std::to_string(wanted));
    }
  }
}

void Caller::run_well(const Plan& plan, int number) {
  data.load(number);
  data.before(0);
  executor.execute(plan, data.arguments(), data.stream());
  data.after(0);
  executor.synchronize(data.stream());
  data.compare();
}

Failure Caller::failure(const Plan& plan, Arguments arguments) {
  const auto start = Clock::now();
  Failure seen = failure_of([&] { run(plan, arguments); });
  seen.after_s = std::chrono::duration<double>(Clock::now() - start).count();
  std::printf("    %s: an error %.3f s after the call\n", plan.name.c_str(), seen.after_s);
  return seen;
}

Failure Caller::hear_of_stop(Rank& me) {
  while (load_acquire(&me.world.abort_word()->stop) == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return failure_of([&] { executor.check(); });
}

}  // namespace chorale::test
