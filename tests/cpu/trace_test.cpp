/// \file
/// Tests that traces of the CPU say when each operation of a launch ran, on threads and in seeded orders.
/// tests/trace.py tests ranks that are processes, and the files that the command writes.

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "executor/fibers/sanitizers.hpp"
#include "tests/cpu/harness.hpp"
#include "tests/unit/scarce_memory.hpp"

namespace chorale::test {
namespace {

using Spans = std::vector<TraceSpan>;

Plan shipped(const std::string& name) {
  return load((source_dir() / "plans/shipped" / (name + ".json")).string());
}

Config traced(unsigned launches) {
  Config config = Config::load();
  config.trace = launches;
  return config;
}

/// Returns what each rank's executor has traced after `launches` runs of `plan`.
std::vector<Spans> traces_of(const Plan& plan, const Config& config, int launches,
                             LocalOptions options = {}) {
  std::vector<Spans> traces(plan.ranks());
  run_local(
      int(plan.ranks()),
      [&](World& world) {
        Executor executor(world, config);
        const std::string wrong =
            run_rank(world, executor, plan, {.bytes = some_sizes(plan, {65536})[0], .launches = launches});
        EXPECT_EQ(wrong, "");
        traces[size_t(world.rank())] = executor.trace();
        world.barrier();
      },
      options);
  return traces;
}

/// Returns the spans of one launch by thread block, in the order in which they were given.
std::map<uint32_t, Spans> blocks_of(const Spans& spans, uint64_t launch) {
  std::map<uint32_t, Spans> blocks;
  for (const TraceSpan& span : spans) {
    if (span.launch == launch) blocks[span.block].push_back(span);
  }
  return blocks;
}

/// Returns true for operations that only order or signal, and for packing, which a neighbouring sum may
/// include.
bool may_have_no_step(Opcode code) {
  return code == Opcode::require || code == Opcode::nop || code == Opcode::signal ||
         code == Opcode::relaxed_signal || code == Opcode::copy_packets;
}

/// Expects that each operation of every block has one span, in the plan's order, with its name and the
/// author's line. A span reaches from its beginning to the beginning of the next.
void expect_all_in_order(const Plan& plan, uint32_t rank, const Spans& spans, uint64_t launch) {
  const std::map<uint32_t, Spans> blocks = blocks_of(spans, launch);
  const std::vector<ThreadBlock>& planned = plan.gpus[rank].threadblocks;
  ASSERT_EQ(blocks.size(), planned.size()) << plan.name << " rank " << rank;
  size_t lines = 0;  // the compiler has added some operations
  for (const auto& [block, seen] : blocks) {
    const std::vector<Op>& ops = planned[block].ops;
    // A device program has no step for some operations.
    std::set<uint32_t> missing;
    for (uint32_t op = 0; op < ops.size(); ++op) missing.insert(op);
    for (const TraceSpan& span : seen) missing.erase(span.op);
    for (const uint32_t op : missing) {
      EXPECT_TRUE(may_have_no_step(ops[op].code))
          << plan.name << " rank " << rank << " block " << block << " op " << op;
    }
    for (size_t at = 0; at < seen.size(); ++at) {
      SCOPED_TRACE(testing::Message() << plan.name << " rank " << rank << " block " << block << " op " << at);
      ASSERT_LT(seen[at].op, ops.size());
      const Op& op = ops[seen[at].op];
      const SourceLine line = plan.line_of(op);
      EXPECT_EQ(seen[at].plan, plan.name);
      EXPECT_EQ(seen[at].rank, rank);
      EXPECT_TRUE(at == 0 || seen[at - 1].op < seen[at].op);
      EXPECT_EQ(seen[at].name, info(op.code).name);
      EXPECT_EQ(seen[at].line.file, line.file);
      EXPECT_EQ(seen[at].line.line, line.line);
      lines += line.line != 0;
      EXPECT_LE(seen[at].begin_ns, seen[at].end_ns);
      if (at + 1 < seen.size()) {
        EXPECT_EQ(seen[at].end_ns, seen[at + 1].begin_ns);
      }
    }
  }
  EXPECT_GT(lines, 0u);
}

TEST(Trace, HasASpanOfEveryOperationInThePlansOrder) {
  for (const char* name :
       {"allgather_ring_2", "allgather_by_port_2", "allreduce_two_level_4", "alltoall_packets_4"}) {
    const Plan plan = shipped(name);
    for (const std::optional<uint64_t> seed : {std::optional<uint64_t>(), std::optional<uint64_t>(7)}) {
      const std::vector<Spans> traces = traces_of(plan, traced(1), 3, {.seed = seed});
      for (uint32_t rank = 0; rank < plan.ranks(); ++rank) {
        expect_all_in_order(plan, rank, traces[rank], 3);
        EXPECT_EQ(blocks_of(traces[rank], 2).size(), 0u) << "only the last launch is kept";
      }
    }
  }
}

TEST(Trace, KeepsTheLastLaunches) {
  const Plan plan = shipped("allgather_ring_2");
  const std::vector<Spans> traces = traces_of(plan, traced(2), 5);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    std::map<uint64_t, size_t> spans;
    uint64_t end_of_4 = 0, begin_of_5 = ~uint64_t{0};
    for (const TraceSpan& span : traces[rank]) {
      ++spans[span.launch];
      if (span.launch == 4) end_of_4 = std::max(end_of_4, span.end_ns);
      if (span.launch == 5) begin_of_5 = std::min(begin_of_5, span.begin_ns);
    }
    ASSERT_EQ(spans.size(), 2u);
    EXPECT_EQ(spans.count(4) + spans.count(5), 2u);
    for (const uint64_t launch : {4, 5}) expect_all_in_order(plan, rank, traces[rank], launch);
    EXPECT_LE(end_of_4, begin_of_5);
  }
}

TEST(Trace, IsEmptyUnlessItIsAskedFor) {
  for (const Spans& spans : traces_of(shipped("allgather_ring_2"), Config::load(), 2))
    EXPECT_TRUE(spans.empty());
}

/// Returns the times at which the operations named `name` ran, by memory channel, as (begin, end) in the
/// block's order.
std::map<uint32_t, std::vector<std::pair<uint64_t, uint64_t>>> times_by_channel(const Plan& plan,
                                                                                uint32_t rank,
                                                                                const Spans& spans,
                                                                                Opcode code) {
  std::map<uint32_t, std::vector<std::pair<uint64_t, uint64_t>>> times;
  for (const TraceSpan& span : spans) {
    const ThreadBlock& block = plan.gpus[rank].threadblocks[span.block];
    const Op& op = block.ops[span.op];
    if (op.code != code) continue;
    for (const uint32_t id : block.op_ids(op))
      times[block.channels_of(op.via)->ids[id]].push_back({span.begin_ns, span.end_ns});
  }
  return times;
}

/// The k-th channels of two ranks belong together, and one block uses each of them.
TEST(Trace, AWaitEndsAfterTheSignalHasBegun) {
  const Plan plan = shipped("allgather_ring_2");
  for (int run = 0; run < 20; ++run) {
    const std::vector<Spans> traces = traces_of(plan, traced(1), 2);
    for (const uint32_t rank : {0u, 1u}) {
      const auto waits = times_by_channel(plan, rank, traces[rank], Opcode::wait);
      auto signals = times_by_channel(plan, 1 - rank, traces[1 - rank], Opcode::signal);
      ASSERT_EQ(waits.size(), 4u);
      for (const auto& [channel, times] : waits) {
        ASSERT_EQ(times.size(), 1u);  // and one is relaxed
        ASSERT_EQ(signals[channel].size(), 1u);
        for (size_t at = 0; at < times.size(); ++at)
          EXPECT_GE(times[at].second, signals[channel][at].first) << "channel " << channel << ", wait " << at;
      }
    }
  }
}

/// Has one rank, whose block copies two chunks in a pipeline and then a third.
const char* const in_turns = R"({"name":"in_turns","collective":"test","protocol":"Simple","inplace":false,
"reuse_resources":false,"gpus":[{"id":0,"input_chunks":4,"output_chunks":4,"scratch_chunks":0,"threadblocks":[{"id":0,
"ops":[
{"name":"pipeline","iter_context":{"unit_size":16,"num_chunks":1},"ops":[
{"name":"copy","src_buff":[{"type":"i","index":0,"size":1}],"dst_buff":[{"type":"o","index":0,"size":1}]},
{"name":"copy","src_buff":[{"type":"i","index":1,"size":1}],"dst_buff":[{"type":"o","index":1,"size":1}]}]},
{"name":"copy","src_buff":[{"type":"i","index":2,"size":1}],"dst_buff":[{"type":"o","index":2,"size":1}]}],
"channels":[],"remote_buffer_refs":[]}],"channels":[],"remote_buffers":[],"semaphores":[]}],
"num_threads_per_block":1024,"use_double_scratch_buffer":false,"buffer_alignment":16,
"min_message_size":0,"max_message_size":18446744073709551615})";

TEST(Trace, OfAPipelineHasOneTurn) {
  const Plan plan = read(in_turns);
  Spans spans;
  run_local(1, [&](World& world) {
    Executor executor(world, traced(1));
    Ints in(256), out(256);
    for (int launch = 0; launch < 2; ++launch)
      executor.execute(plan, {.in = in.data(), .out = out.data(), .bytes = 1024, .dtype = DType::i32});
    spans = executor.trace();
  });
  ASSERT_EQ(spans.size(), 4u);
  EXPECT_EQ(spans[0].name, "pipeline");  // all turns but the last
  for (uint32_t at = 0; at < spans.size(); ++at) {
    EXPECT_EQ(spans[at].op, at);
    EXPECT_EQ(spans[at].launch, 2u);
  }
}

/// The trace also shows a launch that hangs.
TEST(Trace, OfAStoppedLaunchEndsWithWhatDidNotEnd) {
  Plan plan = shipped("allgather_ring_2");
  for (Gpu& gpu : plan.gpus) {
    for (ThreadBlock& block : gpu.threadblocks)
      std::erase_if(block.ops, [](const Op& op) { return op.code == Opcode::signal; });
  }
  run_local(2, [&](World& world) {
    Executor executor(world, traced(1));
    EXPECT_THROW(run_rank(world, executor, plan, {.bytes = some_sizes(plan, {64})[0], .launches = 1}),
                 RunError);
    const std::map<uint32_t, Spans> blocks = blocks_of(executor.trace(), 1);
    ASSERT_GE(blocks.size(), 4u);
    for (uint32_t block = 0; block < 4; ++block) {
      const Spans& seen = blocks.at(block);
      for (uint32_t at = 1; at < seen.size(); ++at) EXPECT_LT(seen[at - 1].op, seen[at].op);
      EXPECT_EQ(seen.back().name, "wait");
    }
  });
}

TEST(Trace, ForWhichThereIsNoMemoryIsRefused) {
#if defined(CHORALE_ASAN) || defined(CHORALE_TSAN)
  GTEST_SKIP() << "shadows of the sanitizers are address space";
#endif
  const Plan plan = shipped("allgather_ring_2");
  const ScarceMemory scarce(64);  // the threads that run ranks have stacks
  run_local(2, [&](World& world) {
    Executor executor(world, traced(1u << 20));
    Ints in(256), out(512);
    try {
      executor.prepare(plan, {.in = in.data(), .out = out.data(), .bytes = 2048, .dtype = DType::i32});
      ADD_FAILURE() << "prepared";
    } catch (const RunError& error) {
      EXPECT_EQ(error.reason, RunError::Reason::resources);
      EXPECT_NE(
          std::string(error.what())
              .find("a trace of 1048576 launches of plan 'allgather_ring' needs 1610612736 bytes, which "
                    "cannot be allocated: set CHORALE_TRACE to fewer launches"),
          std::string::npos)
          << error.what();
    }
  });
}

}  // namespace
}  // namespace chorale::test
