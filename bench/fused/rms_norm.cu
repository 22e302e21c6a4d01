// Times an all-reduce whose result is added to a residual and normalised (RMSNorm): as fused kernels, and as
// NCCL plus a separate kernel.

#include <algorithm>
#include <chorale/fused/rms_norm.hpp>
#include <optional>
#include <type_traits>

#include "bench/fused/device.cuh"

namespace chorale::fused_bench {
namespace {

using fused::QuantiseRow;
using fused::RmsNormCall;
using fused::StoreRow;
using Codes = QuantiseRow<fp8_e4m3>;

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

// These read an element of a result, and say by how much it may differ beyond one rounding to bf16.
__device__ float read(const StoreRow<bf16>& stored, uint64_t row, uint32_t col, uint32_t cols, float& off) {
  off = 0;
  return widen(stored.out[row * cols + col]);
}
__device__ float read(const Codes& stored, uint64_t row, uint32_t col, uint32_t cols, float& off) {
  const float scale = stored.scales[row * stored.scale_count(cols) + col / stored.block];
  off = scale * 16.5f;  // half of the distance of the largest codes
  return to_float(stored.out[row * cols + col]) * scale;
}

/// Compares one row per block. The sums are exact; the result may differ by one rounding, and codes by
/// theirs.
template <class Stored>
__global__ void compare_rows(Stored stored, const bf16* residual, uint32_t ranks, uint32_t rows,
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
      float off;
      const float got = read(stored, row, col, cols, off);
      const bool right =
          widen(residual[at]) == own && std::fabs(got - expected) <= std::fabs(expected) * (1.0f / 128) + off;
      if (!right) add(wrong, 1);
    }
  }
}

__device__ uint64_t bits_of(const StoreRow<bf16>& stored, uint64_t at) { return stored.out[at].bits; }
__device__ uint64_t bits_of(const Codes& stored, uint64_t at) { return stored.out[at].bits; }

template <class Stored>
struct Digest {
  Stored stored;
  const bf16* residual;
  uint64_t* to;
  __device__ void operator()(uint64_t at) const {
    add(to, (bits_of(stored, at) << 16 | residual[at].bits) * (2 * at + 1) * 0x9e3779b97f4a7c15u);
  }
};

/// Enqueues the separate kernel, which does the same arithmetic as the fused kernels. `out` has the sums.
template <class Stored>
__global__ void normalise(fused::NormRows<bf16, Stored> norm) {
  const Group group = block_group();
  group.each_strided(norm.call.rows, [&](uint64_t row) {
    fused::rms_norm_row<2>(group, norm, row, [&](uint32_t unit, Unit& sum) {
      sum = unit_of<bf16>(norm.own(row, unit));
      return Stop::none;
    });
  });
}

/// Stores rows of bf16, or codes with a scale for each 128 elements.
template <class Stored>
class RmsNorm final : public Workload {
  static constexpr bool as_codes = std::is_same_v<Stored, Codes>;

 public:
  RmsNorm(World& world, Transport& transport)
      : world_(world),
        transport_(transport),
        ranks_(uint32_t(transport.world_size())),
        rank_(uint32_t(transport.rank())) {}

  std::string name() const override { return as_codes ? "RMSNorm all-reduce to fp8" : "RMSNorm all-reduce"; }

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
    codes_.resize(elements_);
    scales_.resize(rows_ * Codes{nullptr, nullptr, 128}.scale_count(cols_));
  }

  std::string shape() const override {
    return "bf16 " + std::to_string(rows_) + " x " + std::to_string(cols_);
  }

  std::vector<Candidate> ours() override {
    std::vector<Candidate> all;
    const RmsNormCall<bf16> call = call_of(in_);
    const Stored stored = stored_at();
    // Rows without a residual would need more room. These have one.
    const fused::NormRows<bf16, Stored> norm{call, nullptr, 0, stored};
    all.push_back({"as the library chooses",
                   [=, this](cudaStream_t stream) { library_->run<bf16>(call, stored, {stream}); }});
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
      with("one-shot LL16", fused::RmsNormPackets<bf16, Stored>{table, norm}, blocks, a_row);
      if (rows_ < ranks_) continue;
      with("two-shot LL16", fused::RmsNormPacketsTwice<bf16, Stored>{table, norm}, blocks, a_row);
    }
    if (elements_ * sizeof(bf16) < 256 << 10) return all;
    for (const uint32_t blocks : {16u, 32u, 64u, 128u, 256u}) {
      if (blocks > rows_) continue;
      for (const uint32_t of_threads : {256u, 512u}) {
        if (blocks * of_threads > 128 * 512) continue;  // they would not all be resident at once
        with("window", fused::RmsNormWindow<bf16, Stored>{window_->view(), elements_ * sizeof(bf16), norm},
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
              normalise<Stored>
                  <<<std::min(rows_, 1056u), threads, 0, stream>>>({call_of(out_), nullptr, 0, stored_at()});
              check(cudaGetLastError(), "the kernel that normalises");
            }};
  }

  void reset(cudaStream_t stream) override {
    enqueue_for_each(stream, elements_, FillRows{in_, residual_.data(), weight_.data(), rank_, cols_});
    check(cudaMemsetAsync(out_, 0xee, elements_ * sizeof(bf16), stream), "a result");
    check(cudaMemsetAsync(codes_.data(), 0xee, elements_, stream), "a result");
  }
  void count_wrong(cudaStream_t stream, uint64_t* wrong) override {
    compare_rows<<<std::min(rows_, 1024u), 256, 0, stream>>>(stored_at(), residual_.data(), ranks_, rows_,
                                                             cols_, wrong);
    check(cudaGetLastError(), "the kernel that compares");
  }
  void digest(cudaStream_t stream, uint64_t* to) override {
    enqueue_for_each(stream, elements_, Digest<Stored>{stored_at(), residual_.data(), to});
  }

 private:
  RmsNormCall<bf16> call_of(const bf16* in) const {
    return {in, residual_.data(), weight_.data(), epsilon, rows_, cols_};
  }

  Stored stored_at() const {
    if constexpr (as_codes) {
      return {codes_.data(), scales_.data(), 128};
    } else {
      return {out_};
    }
  }

  World& world_;
  Transport& transport_;
  const uint32_t ranks_, rank_;
  uint64_t elements_ = 0;
  uint32_t rows_ = 0, cols_ = 0;
  Buffer<bf16> residual_, weight_, plain_in_, plain_out_;
  Buffer<fp8_e4m3> codes_;
  Buffer<float> scales_;
  std::optional<OneSidedWindow> window_;
  std::optional<fused::RmsNormAllReduce> library_;
  bf16 *in_ = nullptr, *out_ = nullptr;  ///< in the window; for NCCL in separate memory
};

}  // namespace

std::unique_ptr<Workload> rms_norm_all_reduce(World& world, Transport& transport) {
  return std::make_unique<RmsNorm<StoreRow<bf16>>>(world, transport);
}
std::unique_ptr<Workload> rms_norm_to_codes(World& world, Transport& transport) {
  return std::make_unique<RmsNorm<Codes>>(world, transport);
}

}  // namespace chorale::fused_bench
