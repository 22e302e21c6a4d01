#include "bench/overlap/harness.hpp"

#include <algorithm>
#include <cstring>
#include <span>

namespace chorale::overlap {
namespace {

std::vector<double> from_all(World& world, double mine) {
  std::vector<double> values;
  for (const auto& theirs : world.allgather(std::as_bytes(std::span(&mine, 1))))
    std::memcpy(&values.emplace_back(), theirs.data(), sizeof mine);
  return values;
}

/// A graph of calls, of this thread's making only: threads of the library call CUDA meanwhile.
class Graph {
 public:
  Graph(cudaStream_t stream, const Candidate& candidate, int calls) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "the begin of a capture");
    for (int call = 0; call < calls; ++call) candidate.enqueue(stream);
    cudaGraph_t graph = nullptr;
    check(cudaStreamEndCapture(stream, &graph), "the end of a capture");
    const cudaError_t made = cudaGraphInstantiate(&made_, graph, 0);
    cudaGraphDestroy(graph);
    check(made, "a graph");
    check(cudaGraphUpload(made_, stream), "the upload of a graph");
  }
  ~Graph() { cudaGraphExecDestroy(made_); }
  Graph(const Graph&) = delete;

  void launch(cudaStream_t stream) { check(cudaGraphLaunch(made_, stream), "the launch of a graph"); }

 private:
  cudaGraphExec_t made_ = nullptr;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

void check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  throw RunError(RunError::Reason::other, std::string(what) + ": " + cudaGetErrorString(result));
}

Matrix::Matrix(uint64_t elements) : elements_(elements) { check(cudaMalloc(&data_, bytes()), "a matrix"); }
Matrix::~Matrix() { cudaFree(data_); }

Bench::Bench(World& world, Timing timing) : world_(world), timing_(timing) {
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
  check(cudaEventCreate(&begin_), "an event");
  check(cudaEventCreate(&end_), "an event");
  check(cudaMalloc(reinterpret_cast<void**>(&wrong_), sizeof *wrong_), "a count");
}

Bench::~Bench() {
  cudaFree(wrong_);
  cudaEventDestroy(end_);
  cudaEventDestroy(begin_);
  cudaStreamDestroy(stream_);
}

void Bench::finish() {
  check(cudaStreamSynchronize(stream_), "what is timed");
  world_.check();  // a wait that has ended early says so there
}

void Bench::verify(Workload& workload, uint64_t salt) {
  for (const Candidate& candidate : workload.candidates()) {
    if (!candidate.makes_gathered && !candidate.makes_product) continue;
    workload.reset(stream_, salt);
    finish();
    world_.barrier();
    candidate.enqueue(stream_);
    check(cudaMemsetAsync(wrong_, 0, sizeof *wrong_, stream_), "a count");
    workload.compare(stream_, candidate, salt, wrong_);
    uint64_t wrong = 0;
    check(cudaMemcpyAsync(&wrong, wrong_, sizeof wrong, cudaMemcpyDeviceToHost, stream_), "a count");
    finish();
    double all = 0;
    for (const double theirs : from_all(world_, double(wrong))) all += theirs;
    if (all != 0) throw Wrong(candidate.name + ": " + std::to_string(uint64_t(all)) + " elements are wrong");
  }
}

/// Milliseconds of a call on the slowest rank.
double Bench::once(const std::function<void()>& calls) {
  world_.barrier();
  check(cudaEventRecord(begin_, stream_), "an event");
  calls();
  check(cudaEventRecord(end_, stream_), "an event");
  finish();
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begin_, end_), "the time between events");
  const auto all = from_all(world_, double(milliseconds) / timing_.calls);
  return *std::max_element(all.begin(), all.end());
}

void Bench::run(Workload& workload) {
  verify(workload, 1);
  workload.randomise(stream_);
  finish();
  std::vector<Candidate>& candidates = workload.candidates();
  std::vector<std::function<void()>> calls;
  std::vector<std::unique_ptr<Graph>> graphs;
  for (const Candidate& candidate : candidates) {
    if (timing_.graphs) {
      graphs.push_back(std::make_unique<Graph>(stream_, candidate, timing_.calls));
      calls.push_back([this, graph = graphs.back().get()] { graph->launch(stream_); });
    } else {
      calls.push_back([this, &candidate] {
        for (int call = 0; call < timing_.calls; ++call) candidate.enqueue(stream_);
      });
    }
  }
  std::vector<std::vector<double>> times(candidates.size());
  for (int round = 0; round <= timing_.rounds; ++round) {
    for (size_t which = 0; which < candidates.size(); ++which) {
      const double ms = once(calls[which]);
      if (round) times[which].push_back(ms);  // the first round warms up
    }
  }
  for (size_t which = 0; which < candidates.size(); ++which) candidates[which].ms = median(times[which]);
  verify(workload, 2);
}

}  // namespace chorale::overlap
