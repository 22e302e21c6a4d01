// Times an all-reduce of bf16 whose data travel as fp8 with a scale for each 128 elements, and NCCL's
// all-reduce of bf16, which sends twice as much.

#include <algorithm>
#include <chorale/fused/quantised.hpp>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "bench/fused/device.cuh"

namespace chorale::fused_bench {
namespace {

constexpr float most = 26;  ///< the largest magnitude of a rank's elements

__device__ float value_of(uint32_t rank, uint64_t at) {
  return float(int((at * 31 + rank * 17) % 53)) - most;
}

struct FillElements {
  bf16* in;
  uint32_t rank;
  __device__ void operator()(uint64_t at) const { in[at] = narrow<bf16>(value_of(rank, at)); }
};

/// Counts elements whose error is above the bound of two shots, and of the rounding to bf16.
struct CompareSums {
  const bf16* out;
  uint32_t ranks;
  double bound;
  uint64_t* wrong;
  __device__ void operator()(uint64_t at) const {
    float exact = 0;
    for (uint32_t rank = 0; rank < ranks; ++rank) exact += value_of(rank, at);
    const float got = widen(out[at]);
    if (!(std::fabs(double(got) - double(exact)) <= bound + std::fabs(got) / 256)) add(wrong, 1);
  }
};

struct DigestSums {
  const bf16* out;
  uint64_t* to;
  __device__ void operator()(uint64_t at) const {
    add(to, uint64_t(out[at].bits) * (2 * at + 1) * 0x9e3779b97f4a7c15u);
  }
};

class QuantisedReduce final : public Workload {
 public:
  explicit QuantisedReduce(World& world) : world_(world) {}

  std::string name() const override { return "quantised all-reduce"; }

  void prepare(uint64_t bytes) override {
    elements_ = bytes / sizeof(bf16);
    in_.resize(elements_);
    out_.resize(elements_);
    reduces_.clear();
    make("as the library chooses", {Space::device});
    for (const uint32_t blocks : {32u, 64u, 128u, 256u}) {
      if (bytes < 256 << 10) break;
      make("window, " + std::to_string(blocks) + " blocks", {Space::device, fused::Form::window, blocks});
    }
  }

  std::string shape() const override { return "bf16 as fp8_e4m3, " + std::to_string(elements_); }

  std::vector<Candidate> ours() override {
    std::vector<Candidate> all;
    for (const Made& made : reduces_) {
      all.push_back({made.name, [this, reduce = made.reduce.get()](cudaStream_t stream) {
                       reduce->run<bf16, fp8_e4m3>(in_.data(), out_.data(), elements_, {stream});
                     }});
    }
    return all;
  }

  Candidate by_nccl(tools::Nccl& nccl) override {
    return {"NCCL in bf16", [this, &nccl](cudaStream_t stream) {
              const uint64_t bytes = elements_ * sizeof(bf16);
              nccl.enqueue("allreduce", in_.data(), out_.data(), {bytes, bytes}, DType::bf16, ReduceOp::sum,
                           stream);
            }};
  }

  void reset(cudaStream_t stream) override {
    enqueue_for_each(stream, elements_, FillElements{in_.data(), uint32_t(world_.rank())});
    check(cudaMemsetAsync(out_.data(), 0xee, elements_ * sizeof(bf16), stream), "a result");
  }
  void count_wrong(cudaStream_t stream, uint64_t* wrong) override {
    const int ranks = world_.ranks();
    const double bound = fused::quantised_error<fp8_e4m3>(ranks * double(most), ranks, 2);
    enqueue_for_each(stream, elements_, CompareSums{out_.data(), uint32_t(ranks), bound, wrong});
  }
  void digest(cudaStream_t stream, uint64_t* to) override {
    enqueue_for_each(stream, elements_, DigestSums{out_.data(), to});
  }

 private:
  struct Made {
    std::string name;
    std::unique_ptr<fused::QuantisedAllReduce> reduce;
  };
  void make(const std::string& name, const fused::Setup& setup) {
    reduces_.push_back({name, std::make_unique<fused::QuantisedAllReduce>(world_, elements_, 128, setup)});
  }

  World& world_;
  uint64_t elements_ = 0;
  Buffer<bf16> in_, out_;
  std::vector<Made> reduces_;
};

}  // namespace

std::unique_ptr<Workload> quantised_all_reduce(World& world, Transport&) {
  return std::make_unique<QuantisedReduce>(world);
}

}  // namespace chorale::fused_bench
