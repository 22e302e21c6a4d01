/// \file
/// Tests CUDA graphs: a launch is captured once and replayed, also among eager launches and faults.

#include <cuda_runtime_api.h>

#include "executor/cuda/device/error.hpp"
#include "tests/faults/caller.hpp"

namespace chorale::test {
namespace {

class Graphs : public Faults {};
INSTANTIATE_TEST_SUITE_P(Ranks, Graphs, both_ways, way_name);

/// Holds a captured launch of a plan. Making one is collective. On a GPU that ranks share, CUDA may wait for
/// all kernels when it makes a graph or uploads it. So no rank may wait for another that has no uploaded
/// graph yet; without the upload here the first replay does it. Waits for the whole GPU end captures.
class Graph {
 public:
  Graph(Rank& me, Executor& executor, Data& data, const Plan& plan) : stream_(cudaStream_t(data.stream())) {
    executor.prepare(plan, data.arguments());
    me.world.barrier();
    cuda::check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "the begin of a capture");
    executor.execute(plan, data.arguments(), stream_);
    cudaGraph_t graph = nullptr;
    cuda::check(cudaStreamEndCapture(stream_, &graph), "the end of a capture");
    cuda::check(cudaGraphInstantiate(&launch_, graph, 0), "a graph");
    cuda::check(cudaGraphDestroy(graph), "a graph");
    cuda::check(cudaGraphUpload(launch_, stream_), "the upload of a graph");
    cuda::check(cudaStreamSynchronize(stream_), "the upload of a graph");
    me.world.barrier();
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() { cudaGraphExecDestroy(launch_); }

  void replay() { cuda::check(cudaGraphLaunch(launch_, stream_), "a replay"); }

 private:
  cudaStream_t stream_;
  cudaGraphExec_t launch_ = nullptr;
};

TEST_P(Graphs, and_eager_launches_mixed_are_exact) {
  expect_good({.body = [](Rank& me) {
    const int runs = device().many();
    Executor executor(me.world, me.config);
    Data data(me, runs);
    for (const Plan* plan : {&by_signals(me), &by_packets(me), &in_two_steps(me)}) {
      Graph graph(me, executor, data, *plan);
      data.load(3);
      for (int run = 0; run < runs; ++run) {
        data.before(run);
        if (run % 7 == 3) {
          executor.execute(*plan, data.arguments(), data.stream());
        } else {
          graph.replay();
        }
        data.after(run);
      }
      executor.synchronize(data.stream());
      data.compare();
    }
  }});
}

TEST_P(Graphs, that_wait_in_vain_end_as_eager_launches_do) {
  expect_good({.body =
                   [](Rank& me) {
                     Caller caller(me);
                     {
                       Graph graph(me, caller.executor, caller.data, by_signals(me));
                       graph.replay();
                       caller.executor.synchronize(caller.data.stream());
                       me.world.barrier();
                       if (!me.last()) {
                         for (int times = 0; times < 3; ++times) graph.replay();  // only the first one waits
                       }
                       const Failure seen =
                           me.last() ? caller.hear_of_stop(me)
                                     : failure_of([&] { caller.executor.synchronize(caller.data.stream()); });
                       must(seen.reason == RunError::Reason::timed_out, "it is a time-out: " + seen.text);
                       must_match(seen.text, "on memory channel [0-9]+ from rank " +
                                                 std::to_string(me.ranks() - 1) +
                                                 ": expected [0-9]+, seen [0-9]+");
                     }
                     me.world.reset();
                     Graph again(me, caller.executor, caller.data, by_signals(me));
                     for (int run = 1; run < 5; ++run) {
                       caller.data.load(run);
                       caller.data.before(0);
                       again.replay();
                       caller.data.after(0);
                       caller.executor.synchronize(caller.data.stream());
                       caller.data.compare();
                     }
                   },
               .deadline = soon});
}

TEST_P(Graphs, of_what_was_not_prepared_are_refused) {
  expect_good({.body = [](Rank& me) {
    Caller caller(me);
    const cudaStream_t stream = cudaStream_t(caller.data.stream());
    cuda::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "the begin of a capture");
    const Failure seen =
        failure_of([&] { caller.executor.execute(by_packets(me), caller.data.arguments(), stream); });
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(stream, &graph);
    if (graph) cudaGraphDestroy(graph);
    cudaGetLastError();
    must(seen.usage, "it is a wrong call: " + seen.text);
    must_have(seen.text, "Executor::prepare()");
    caller.run_well(by_packets(me), 1);
  }});
}

TEST_P(Graphs, keep_their_bindings_until_they_are_destroyed) {
  expect_good({.body = [](Rank& me) {
    me.config.bindings = 1;
    Executor executor(me.world, me.config);
    Data data(me);
    int run = 0;
    const auto well = [&](const std::function<void()>& launch) {
      data.load(++run);
      data.before(0);
      launch();
      data.after(0);
      executor.synchronize(data.stream());
      data.compare();
    };
    const auto eagerly = [&](const Plan& plan) {
      well([&] { executor.execute(plan, data.arguments(), data.stream()); });
    };
    {
      Graph graph(me, executor, data, by_packets(me));
      for (int round = 0; round < 3; ++round) {
        eagerly(by_signals(me));
        eagerly(in_two_steps(me));
        well([&] { graph.replay(); });
      }
    }
    eagerly(by_signals(me));
    eagerly(in_two_steps(me));
    eagerly(by_packets(me));
  }});
}

/// Checks that every thread block of the rank has spans, in order, with the author's lines, from this launch
/// only.
void must_be_traced(const Rank& me, const Executor& executor, const Plan& plan, uint64_t launch) {
  const std::vector<TraceSpan> spans = executor.trace();
  const std::vector<ThreadBlock>& blocks = plan.gpus[size_t(me.rank())].threadblocks;
  std::vector<std::vector<TraceSpan>> of(blocks.size());
  for (const TraceSpan& span : spans) {
    must(span.plan == plan.name && span.rank == uint32_t(me.rank()) && span.bytes == Data::bytes,
         "it is a span of what ran");
    must(span.launch == launch,
         "it is launch " + std::to_string(launch) + ", not " + std::to_string(span.launch));
    of.at(span.block).push_back(span);
  }
  size_t waits = 0, lines = 0;
  for (size_t block = 0; block < of.size(); ++block) {
    const std::string where = "block " + std::to_string(block);
    must(!of[block].empty(), where + " has spans");
    for (size_t at = 0; at < of[block].size(); ++at) {
      const TraceSpan& span = of[block][at];
      const Op& op = blocks[block].ops.at(span.op);
      const SourceLine line = plan.line_of(op);
      must(span.name == info(op.code).name, where + ": " + std::string(span.name) + " is the operation");
      must(span.line.file == line.file && span.line.line == line.line, where + " has the author's line");
      must(span.begin_ns <= span.end_ns, where + ": a span ends after it has begun");
      must(at == 0 || (of[block][at - 1].op < span.op && of[block][at - 1].end_ns == span.begin_ns),
           where + " has its operations in the plan's order, each from the end of the one before");
      waits += op.code == Opcode::wait;
      lines += line.line != 0;
    }
  }
  must(waits != 0 && lines != 0, "there are waits, and lines");
}

TEST_P(Graphs, and_eager_launches_are_traced) {
  expect_good({.body = [](Rank& me) {
    Caller quiet(me);
    quiet.run_well(by_signals(me), 1);
    must(quiet.executor.trace().empty(), "nothing is traced that is not asked for");
    me.world.barrier();
    me.config.trace = 1;
    Caller caller(me);
    const auto well = [&](int run, const std::function<void()>& launch) {
      caller.data.load(run);
      caller.data.before(0);
      launch();
      caller.data.after(0);
      caller.executor.synchronize(caller.data.stream());
      caller.data.compare();
    };
    // No launch may be running while a rank waits for its GPU, which another rank may share.
    const auto must_have_traced = [&](uint64_t launch) {
      me.world.barrier();
      must_be_traced(me, caller.executor, by_signals(me), launch);
      me.world.barrier();
    };
    Graph graph(me, caller.executor, caller.data, by_signals(me));
    for (int run = 1; run < 4; ++run) well(run, [&] { graph.replay(); });
    must_have_traced(3);
    well(4, [&] { caller.executor.execute(by_signals(me), caller.data.arguments(), caller.data.stream()); });
    must_have_traced(4);
    well(5, [&] { graph.replay(); });
    must_have_traced(5);
  }});
}

}  // namespace
}  // namespace chorale::test
