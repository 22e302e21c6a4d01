// Times an all-reduce whose result is added to a residual and normalised (RMSNorm): as fused kernels, and as
// NCCL plus a separate kernel.

#include <algorithm>
#include <chorale/fused/rms_norm.hpp>
#include <optional>

#include "bench/fused/device.cuh"

namespace chorale::fused_bench {
namespace {

using fused::RmsNormCall;
using fused::StoreRow;

constexpr float epsilon = 1e-5f;

// The data is whole numbers. Their sums over 8 ranks, with the residual, are exact in bf16 in any order.
__device__ float value_of(uint32_t rank, uint64_t at) { return float(int((at * 31 + rank * 17) % 53) - 26); }
__device__ float residual_of(uint64_t at) { return float(int(at % 41) - 20); }
__device__ float weight_of(uint32_t col) { return 0.25f * float(col % 7 + 1); }

struct FillRows {
  bf16 *in, *residual, *weight;
  uint32_t rank, cols;
  __device__ void operator()(uint64_t at) const {
    in[at] = narrow<bf16>(value_of(rank, at));
    residual[at] = narrow<bf16>(residual_of(at));
    if (at < cols) weight[at] = narrow<bf16>(weight_of(uint32_t(at)));
  }
};

/// Compares one row per block. The sums are exact; the result may differ by one rounding.
__global__ void compare_rows(const bf16* out, const bf16* residual, uint32_t ranks, uint32_t rows,
                             uint32_t cols, uint64_t* wrong) {
  const Group group = block_group();
  for (uint64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const auto kept = [&](uint64_t at) {
      float sum = residual_of(at);
      for (uint32_t rank = 0; rank < ranks; ++rank) sum += value_of(rank, at);
      return sum;
    };
    float squares = 0;
    for (uint32_t col = threadIdx.x; col < cols; col += blockDim.x) {
      const float value = kept(row * cols + col);
      squares += value * value;
    }
    const float scale = 1.0f / std::sqrt(add_up(group, squares) / float(cols) + epsilon);
    for (uint32_t col = threadIdx.x; col < cols; col += blockDim.x) {
      const uint64_t at = row * cols + col;
      const float own = kept(at), expected = own * scale * weight_of(col);
      const bool right = widen(residual[at]) == own &&
                         std::fabs(widen(out[at]) - expected) <= std::fabs(expected) * (1.0f / 128);
      if (!right) add(wrong, 1);
    }
  }
}

struct Digest {
  const bf16 *out, *residual;
  uint64_t* to;
  __device__ void operator()(uint64_t at) const {
    add(to, (uint64_t(out[at].bits) << 16 | residual[at].bits) * (2 * at + 1) * 0x9e3779b97f4a7c15u);
  }
};

/// Enqueues the separate kernel, which does the same arithmetic as the fused kernels. `out` has the sums.
__global__ void normalise(fused::detail::Norm<bf16, StoreRow<bf16>> norm) {
  const Group group = block_group();
  group.each_strided(norm.call.rows, [&](uint64_t row) {
    fused::rms_norm_row<2>(group, norm, row, [&](uint32_t unit, Unit& sum) {
      sum = unit_of<bf16>(norm.own(row, unit));
      return Stop::none;
    });
  });
}

class RmsNorm final : public Workload {
 public:
  RmsNorm(World& world, Transport& transport)
      : world_(world),
        transport_(transport),
        ranks_(uint32_t(transport.world_size())),
        rank_(uint32_t(transport.rank())) {}

  std::string name() const override { return "RMSNorm all-reduce"; }

  void prepare(uint64_t bytes) override {
    elements_ = bytes / sizeof(bf16);
    cols_ = uint32_t(std::min<uint64_t>(4096, elements_));
    rows_ = uint32_t(elements_ / cols_);
    window_.reset();
    window_.emplace(shared_memory(world_, 2 * elements_ * sizeof(bf16)));
    library_.reset();
    library_.emplace(world_, rows_, cols_ * sizeof(bf16), fused::Setup{Space::device});
    in_ = reinterpret_cast<bf16*>(window_->local());
    out_ = in_ + elements_;
    plain_in_.resize(elements_);
    plain_out_.resize(elements_);
    residual_.resize(elements_);
    weight_.resize(cols_);
  }

  std::string shape() const override {
    return "bf16 " + std::to_string(rows_) + " x " + std::to_string(cols_);
  }

  std::vector<Candidate> ours() override {
    std::vector<Candidate> all;
    const RmsNormCall<bf16> call = call_of(in_);
    const fused::detail::Norm<bf16, StoreRow<bf16>> norm{call, nullptr, 0, {out_}};
    all.push_back({"as the library chooses", [=, this](cudaStream_t stream) {
                     library_->run<bf16>(call, StoreRow<bf16>{out_}, {stream});
                   }});
    const auto with = [&](const std::string& form, const auto& kernel, uint32_t blocks, uint32_t threads) {
      all.push_back({form + ", " + std::to_string(blocks) + " x " + std::to_string(threads),
                     [=, this](cudaStream_t stream) {
                       launch(transport_, kernel, {blocks, threads}, {stream});
                     }});
    };
    const uint64_t row_bytes = cols_ * sizeof(bf16), slots = 2 * links().packet_bytes;
    const auto fit = [&](uint32_t blocks) {
      return (rows_ + blocks - 1) / blocks * packet_bytes<LL16>(row_bytes) <= slots;
    };
    const uint32_t a_row = uint32_t(std::max<uint64_t>(32, (row_bytes / unit_bytes + 31) / 32 * 32));
    for (const uint32_t blocks : {1u, 2u, 4u, 8u, 16u, 32u, 64u, 128u}) {
      if (blocks > rows_ || blocks * 4 < rows_ || !fit(blocks)) continue;
      const EndpointTable table = transport_.table();
      with("one-shot LL16", fused::RmsNormPackets<bf16, StoreRow<bf16>>{table, norm}, blocks, a_row);
      if (rows_ < ranks_) continue;
      with("two-shot LL16", fused::RmsNormPacketsTwice<bf16, StoreRow<bf16>>{table, norm}, blocks, a_row);
    }
    if (elements_ * sizeof(bf16) < 256 << 10) return all;
    for (const uint32_t blocks : {16u, 32u, 64u, 128u, 256u}) {
      if (blocks > rows_) continue;
      for (const uint32_t of_threads : {256u, 512u}) {
        if (blocks * of_threads > 128 * 512) continue;  // they would not all be resident at once
        with("window",
             fused::RmsNormWindow<bf16, StoreRow<bf16>>{window_->view(), elements_ * sizeof(bf16), norm},
             blocks, of_threads);
      }
    }
    return all;
  }

  Candidate by_nccl(tools::Nccl& nccl) override {
    in_ = plain_in_.data();
    out_ = plain_out_.data();
    return {"NCCL and a kernel", [this, &nccl](cudaStream_t stream) {
              const uint64_t bytes = elements_ * sizeof(bf16);
              nccl.enqueue("allreduce", in_, out_, {bytes, bytes}, DType::bf16, ReduceOp::sum, stream);
              const uint32_t threads = std::max<uint32_t>(32, (cols_ / 16 + 31) / 32 * 32);
              normalise<<<std::min(rows_, 1056u), threads, 0, stream>>>({call_of(out_), nullptr, 0, {out_}});
              check(cudaGetLastError(), "the kernel that normalises");
            }};
  }

  void reset(cudaStream_t stream) override {
    enqueue_for_each(stream, elements_, FillRows{in_, residual_.data(), weight_.data(), rank_, cols_});
    check(cudaMemsetAsync(out_, 0xee, elements_ * sizeof(bf16), stream), "a result");
  }
  void count_wrong(cudaStream_t stream, uint64_t* wrong) override {
    compare_rows<<<std::min(rows_, 1024u), 256, 0, stream>>>(out_, residual_.data(), ranks_, rows_, cols_,
                                                             wrong);
    check(cudaGetLastError(), "the kernel that compares");
  }
  void digest(cudaStream_t stream, uint64_t* to) override {
    enqueue_for_each(stream, elements_, Digest{out_, residual_.data(), to});
  }

 private:
  RmsNormCall<bf16> call_of(const bf16* in) const {
    return {in, residual_.data(), weight_.data(), epsilon, rows_, cols_};
  }

  World& world_;
  Transport& transport_;
  const uint32_t ranks_, rank_;
  uint64_t elements_ = 0;
  uint32_t rows_ = 0, cols_ = 0;
  Buffer<bf16> residual_, weight_, plain_in_, plain_out_;
  std::optional<OneSidedWindow> window_;
  std::optional<fused::RmsNormAllReduce> library_;
  bf16 *in_ = nullptr, *out_ = nullptr;  ///< in the window; for NCCL in separate memory
};

}  // namespace

std::unique_ptr<Workload> rms_norm_all_reduce(World& world, Transport& transport) {
  return std::make_unique<RmsNorm>(world, transport);
}

}  // namespace chorale::fused_bench
