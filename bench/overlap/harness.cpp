#include "bench/overlap/harness.hpp"

#include <algorithm>

namespace chorale::overlap {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

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
  world_.check();  // throws if a wait has ended early
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
    for (const double theirs : bench::from_all(world_, double(wrong))) all += theirs;
    if (all != 0) throw Wrong(candidate.name + ": " + std::to_string(uint64_t(all)) + " elements are wrong");
  }
}

/// Returns the milliseconds of a call on the slowest rank.
double Bench::once(const std::function<void()>& calls) {
  world_.barrier();
  check(cudaEventRecord(begin_, stream_), "an event");
  calls();
  check(cudaEventRecord(end_, stream_), "an event");
  finish();
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begin_, end_), "the time between events");
  const auto all = bench::from_all(world_, double(milliseconds) / timing_.calls);
  return *std::max_element(all.begin(), all.end());
}

void Bench::run(Workload& workload) {
  verify(workload, 1);
  workload.randomise(stream_);
  finish();
  std::vector<Candidate>& candidates = workload.candidates();
  std::vector<std::function<void()>> calls;
  std::vector<std::unique_ptr<bench::Graph>> graphs;
  for (const Candidate& candidate : candidates) {
    if (timing_.graphs) {
      graphs.push_back(std::make_unique<bench::Graph>(stream_, timing_.calls, candidate.enqueue));
      calls.push_back([graph = graphs.back().get()] { graph->launch(); });
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
