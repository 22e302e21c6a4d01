/// \file
/// These tests compare the spans that a GPU records of a device program with predicted ones. If every
/// operation took exactly the predicted time, neither side has spans that the other lacks, and there is no
/// gap.

#include "chorale/comparison.hpp"

#include <chorale/json.hpp>
#include <system_error>

#include "chorale/releases.hpp"
#include "chorale/simulate.hpp"
#include "tests/unit/compiler/helpers.hpp"
#include "tests/unit/lowering/bound_ranks.hpp"

namespace chorale::test {
namespace {

/// Returns the operations that a block records, in the order of their last times, as
/// executor/cuda/kernels/interpreter.cuh does.
/// \param batches  whether small copies run in one go
std::vector<uint32_t> noted(ProgramRank& rank, uint32_t block, bool batches) {
  std::vector<uint32_t> ops;
  for (uint32_t page = 0; page < rank.program.pages; ++page) {
    const lowering::PageShape& shape = rank.program.page;
    const char* const from =
        rank.program.bytes.data() + (uint64_t(block) * rank.program.pages + page) * shape.bytes();
    const SettledPage settled(shape, from, 1, rank.in, rank.out);
    for (uint32_t at = 0; at < settled.header.steps; ++at) {
      const lowering::ProgramStep& step = settled.steps[at];
      if (ops.empty() || ops.back() != step.op) {
        std::erase(ops, step.op);
        ops.push_back(step.op);
      }
      if (batches && step.batch > 1) at += step.batch - 1;
    }
    if (!settled.header.more) break;
  }
  return ops;
}

/// Predicts when each operation of a block begins; none for operations that take no time of their own.
struct Predicted {
  std::vector<std::optional<uint64_t>> begins;
  uint64_t end = 0;

  Predicted(const Plan& plan, const std::vector<TraceSpan>& spans, uint32_t rank, uint32_t block)
      : begins(plan.gpus[rank].threadblocks[block].ops.size()) {
    for (const TraceSpan& span : spans) {
      if (span.rank != rank || span.block != block) continue;
      begins[span.op] = span.begin_ns;
      end = std::max(end, span.end_ns);
    }
  }

  /// Synchronisation takes no time here. Data that is packed for a following sum is part of the sum, unless
  /// `all` that the GPU has recorded contains it.
  uint64_t begin_of(const std::vector<Op>& ops, uint32_t op, const std::vector<uint32_t>& all) const {
    uint32_t from = op;
    const auto passed = [&](Opcode code) { return code == Opcode::nop || code == Opcode::copy_packets; };
    while (info(ops[op].code).has(Role::Reduce) && from > 0 && passed(ops[from - 1].code)) {
      if (ops[--from].code != Opcode::copy_packets) continue;
      if (!begins[from] || std::find(all.begin(), all.end(), from) != all.end()) break;
      return *begins[from];
    }
    for (from = op; from < begins.size(); ++from)
      if (begins[from]) return *begins[from];
    return end;
  }
};

std::vector<TraceSpan> as_noted(const Plan& plan, const std::vector<TraceSpan>& predicted, BoundRanks& bound,
                                bool batches) {
  std::vector<TraceSpan> spans;
  for (uint32_t rank = 0; rank < plan.ranks(); ++rank) {
    for (uint32_t block = 0; block < bound.ranks()[rank].program.blocks; ++block) {
      const std::vector<Op>& ops = plan.gpus[rank].threadblocks[block].ops;
      const Predicted times(plan, predicted, rank, block);
      const std::vector<uint32_t> all = noted(bound.ranks()[rank], block, batches);
      for (size_t at = 0; at < all.size(); ++at) {
        const uint64_t begin = times.begin_of(ops, all[at], all),
                       end = at + 1 < all.size() ? times.begin_of(ops, all[at + 1], all) : times.end;
        // The clocks of ranks differ.
        const uint64_t clock = 1000000000 * uint64_t(rank + 1);
        spans.push_back({plan.name, rank, block, all[at], info(ops[all[at]].code).name,
                         plan.line_of(ops[all[at]]), 7, clock + begin, clock + end, predicted[0].bytes});
      }
    }
  }
  return spans;
}

/// Returns shipped plans for up to four ranks, and MSCCL++'s if they are there.
std::vector<std::filesystem::path> small_plans() {
  std::vector<std::filesystem::path> files;
  for (const char* folder : {"plans/shipped", "../shared/mscclpp-plans"}) {
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(source_dir() / folder, none)) {
      const std::string name = entry.path().stem().string();
      const bool large = name.ends_with("8") || name.find("_b") != name.npos ||
                         name.find("_quantised_") != name.npos;  // it takes no integers
      if (entry.path().extension() != ".json" || large) continue;
      files.push_back(entry.path());
    }
  }
  return files;
}

bool shipped(const std::filesystem::path& file) { return file.parent_path().filename() == "shipped"; }

/// Some of MSCCL++'s tests are only parts of plans.
bool comes_to_its_end(const Plan& plan) {
  const AwaitedByOp awaited = list_awaited(plan, 1024);
  for (const auto& rank : awaited)
    for (const auto& block : rank)
      for (const Awaited& op : block)
        if (!op.known) return false;
  return true;
}

bool has_ports(const Plan& plan) {
  const auto over_port = [](const Op& op) { return op.via == ChannelType::port; };
  for (const Gpu& gpu : plan.gpus)
    for (const ThreadBlock& block : gpu.threadblocks)
      if (std::any_of(block.ops.begin(), block.ops.end(), over_port)) return true;
  return false;
}

struct Counted {
  size_t plans = 0, lines = 0, with = 0, fewer = 0;  ///< fewer: calls with fewer spans than predicted
};

/// \param whole  true if there is data at all places
void expect_no_gaps(const Plan& plan, const ProgramRuns& runs, bool batches, bool whole, Counted& counted) {
  static const Machine machine = load_machine((source_dir() / "plans/machines/nvidia_h200.json").string());
  const SimulatedCall call{.bytes = runs.bytes, .dtype = DType::i32, .packet = runs.packet, .spans = true};
  const std::vector<TraceSpan> predicted = simulate(plan, call, machine).spans;
  BoundRanks bound(plan, runs);
  const std::vector<TraceSpan> spans = as_noted(plan, predicted, bound, batches);
  const Comparison found = compare(plan, runs.bytes, spans, Clocks::per_rank, predicted);
  EXPECT_EQ(found.launch, 7u);
  EXPECT_EQ(found.measured_ns, found.predicted_ns);
  for (const ComparedLine& line : found.lines) {
    const testing::Message what = testing::Message() << line.place.name << " " << line.place.line.line;
    EXPECT_EQ(line.gap_ns(), 0) << what;
    EXPECT_EQ(line.measured.longest_ns, line.predicted.longest_ns) << what;
    counted.with += line.with.size();
  }
  // If a message ends within a chunk, a GPU executes operations that have no data, and divides what blocks
  // share by lines of packets.
  for (const ComparedLine& line : whole ? found.only_predicted : std::vector<ComparedLine>())
    ADD_FAILURE() << "no span: " << line.place.name << " " << line.place.line.line;
  for (const ComparedLine& line : whole ? found.only_measured : std::vector<ComparedLine>()) {
    // At its end a block waits, as its last operation, for what it has handed to the proxy.
    if (line.place.name == "nop" && has_ports(plan)) continue;
    ADD_FAILURE() << "no prediction: " << line.place.name << " " << line.place.line.line;
  }
  counted.lines += found.lines.size();
  counted.fewer += spans.size() < predicted.size();
}

TEST(ComparisonOfPrograms, NothingIsLeftOver) {
  Counted counted;
  for (const std::filesystem::path& file : small_plans()) {
    const Plan plan = load(file.string());
    if (!shipped(file) && !comes_to_its_end(plan)) continue;
    ++counted.plans;
    for (const uint64_t part : {17, 1024, 16384}) {
      for (const uint64_t bytes : some_sizes(plan, {part})) {
        for (const PacketForm form : {PacketForm::ll16, PacketForm::ll128}) {
          for (const bool batches : {false, true}) {
            SCOPED_TRACE(testing::Message() << file.stem() << ", " << bytes << " bytes, form " << int(form)
                                            << (batches ? ", batches" : ""));
            expect_no_gaps(plan, {.bytes = bytes, .packet = form, .loop_bytes = 0}, batches, part % 1024 == 0,
                           counted);
          }
        }
      }
    }
  }
  EXPECT_GT(counted.plans, 20u);
  EXPECT_GT(counted.lines, 100u);
  EXPECT_GT(counted.with, 0u);
  EXPECT_GT(counted.fewer, 0u) << "no program did two operations together";
}

TEST(ComparisonOfPrograms, TurnsOfPipelines) {
  Plan plan = two_ranks();
  for (const uint32_t rank : {0u, 1u}) {
    add(block(plan, rank), Opcode::signal, {}, {}, {0}, ChannelType::memory);
    Op& pipeline = add(block(plan, rank), Opcode::pipeline);
    pipeline.body = 2;
    pipeline.unit_bytes = 1024;
    pipeline.chunks = 1;
    add(block(plan, rank), Opcode::copy, {in(0)}, {scratch(0)});
    add(block(plan, rank), Opcode::copy, {scratch(0)}, {out(0)});
    add(block(plan, rank), Opcode::wait, {}, {}, {0}, ChannelType::memory);
  }
  Counted counted;
  for (const uint64_t bytes : {8192, 16384, 65536})
    expect_no_gaps(plan, {.bytes = bytes, .loop_bytes = 0}, false, true, counted);
  EXPECT_EQ(counted.lines, 3u * 3) << "signal, both copies, wait";
  EXPECT_EQ(counted.with, 2u) << "of two sizes there is more than one turn";
}

}  // namespace
}  // namespace chorale::test
