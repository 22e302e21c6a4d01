// Times an all-to-all of matrices that arrive transposed: as fused kernels, and as a kernel that transposes
// plus NCCL.

#include <chorale/fused/transpose.hpp>
#include <optional>

#include "bench/fused/device.cuh"

namespace chorale::fused_bench {
namespace {

constexpr uint32_t threads = 512;

__device__ float value_of(uint32_t rank, uint64_t at) {
  return float(uint32_t((at * 2654435761u + rank * 40503u) >> 7 & 0xffffff));
}

struct FillMatrix {
  float* data;
  uint32_t rank;
  __device__ void operator()(uint64_t at) const { data[at] = value_of(rank, at); }
};

struct CompareMatrices {
  const float* data;
  uint32_t rank, ranks, rows, cols;
  uint64_t* wrong;
  __device__ void operator()(uint64_t at) const {
    const uint64_t shard = uint64_t(rows) * cols, row = at % rows, col = at / rows % cols;
    const float expected = value_of(uint32_t(at / shard), row * cols * ranks + uint64_t(rank) * cols + col);
    if (data[at] != expected) add(wrong, 1);
  }
};

/// Turns `ranks` matrices side by side into as many transposes, one after the other. This is the separate
/// kernel. Like the library's kernels, each of its blocks takes pieces of `tall` rows and `wide` columns.
__global__ void transpose(const float* in, float* out, uint32_t ranks, uint32_t rows, uint32_t cols,
                          uint32_t tall, uint32_t wide) {
  const uint32_t down = (rows + tall - 1) / tall, across = (cols + wide - 1) / wide;
  const uint32_t row = blockIdx.x % down * tall, col = blockIdx.x / down % across * wide;
  const uint32_t shard = blockIdx.x / down / across;
  const float* const from = in + uint64_t(row) * cols * ranks + uint64_t(shard) * cols + col;
  float* const to = out + uint64_t(shard) * rows * cols + uint64_t(col) * rows + row;
  TransposeTiles<float>::turn(block_group(), from, {uint64_t(cols) * ranks, 1}, min(tall, rows - row),
                              min(wide, cols - col), to, rows);
}

class Transpose final : public Workload {
 public:
  Transpose(World& world, Transport& transport)
      : world_(world),
        transport_(transport),
        ranks_(uint32_t(transport.world_size())),
        rank_(uint32_t(transport.rank())) {}

  std::string name() const override { return "transpose all-to-all"; }

  void prepare(uint64_t bytes) override {
    bytes_ = bytes;
    uint64_t shard = bytes / sizeof(float) / ranks_;
    rows_ = 1;
    while (uint64_t(rows_) * rows_ < shard) rows_ *= 2;
    cols_ = uint32_t(shard / rows_);
    elements_ = uint64_t(rows_) * cols_ * ranks_;
    in_.resize(elements_);
    window_.reset();
    window_.emplace(shared_memory(world_, elements_ * sizeof(float)));
    library_.reset();
    library_.emplace(world_, elements_ * sizeof(float), fused::Setup{Space::device});
    out_ = reinterpret_cast<float*>(window_->local());
    between_.resize(elements_);
    plain_.resize(elements_);
  }

  std::string shape() const override {
    return "f32 " + std::to_string(rows_) + " x " + std::to_string(cols_) + " for each rank";
  }

  std::vector<Candidate> ours() override {
    std::vector<Candidate> all;
    const uint64_t shard = uint64_t(rows_) * cols_ * sizeof(float);
    const fused::TransposeCall<float> call{in_.data(), out_, rows_, cols_};
    all.push_back({"as the library chooses", [=, this](cudaStream_t stream) {
                     library_->run<float>(call.in, call.out, call.rows, call.cols, {stream});
                   }});
    const auto with = [&](const std::string& form, const auto& kernel, uint32_t blocks, uint32_t of_threads) {
      all.push_back({form + ", " + std::to_string(blocks) + " blocks", [=, this](cudaStream_t stream) {
                       launch(transport_, kernel, {blocks, of_threads}, {stream});
                     }});
    };
    for (uint32_t each = 1; each <= 16 && each * ranks_ <= 128; each *= 2) {
      // Elements of a share are whole units, so shares may differ by one unit.
      if (shard / each + 16 > links().packet_bytes || (each > 1 && shard / each < 512)) continue;
      with("LL16", fused::TransposePackets<float>{transport_.table(), call}, each * ranks_,
           shard / each <= 2048 ? 128u : threads);
    }
    if (shard < 8 << 10) return all;
    for (const uint32_t each : {2u, 8u}) {
      const uint32_t wide = 16;
      if (uint64_t(rows_) * wide * sizeof(float) > transport_.slot_bytes() || each * wide > cols_) continue;
      if (each * ranks_ * 2 > links().max_channels) continue;
      with("tiles of " + std::to_string(wide) + " columns",
           fused::TransposeTilesByPeer<float>{transport_.table(), call, wide}, each * ranks_ * 2, threads);
    }
    for (const uint32_t tall : {64u, 256u}) {
      const uint32_t wide = 16, pieces = (rows_ + tall - 1) / tall * ((cols_ + wide - 1) / wide);
      for (const uint32_t blocks : {16u, 32u, 64u, 128u, 256u}) {
        if (blocks > pieces) continue;
        with("window, " + std::to_string(tall) + " x " + std::to_string(wide),
             fused::TransposeIntoWindow<float>{
                 window_->view(), {in_.data(), nullptr, rows_, cols_}, tall, wide},
             blocks, blocks > 128 || tall < 256 ? 256u : threads);
      }
    }
    return all;
  }

  Candidate by_nccl(tools::Nccl& nccl) override {
    out_ = plain_.data();
    return {"NCCL and a kernel", [this, &nccl](cudaStream_t stream) {
              // Among several sizes of pieces, this one gives the GPU the most work at a time and still moves
              // long runs.
              const uint32_t tall = 256, wide = 16;
              const uint32_t blocks = (rows_ + tall - 1) / tall * ((cols_ + wide - 1) / wide) * ranks_;
              transpose<<<blocks, 256, 0, stream>>>(in_.data(), between_.data(), ranks_, rows_, cols_, tall,
                                                    wide);
              check(cudaGetLastError(), "the kernel that transposes");
              nccl.enqueue("alltoall", between_.data(), out_, {bytes_, bytes_}, DType::f32, ReduceOp::sum,
                           stream);
            }};
  }

  void reset(cudaStream_t stream) override {
    enqueue_for_each(stream, elements_, FillMatrix{in_.data(), rank_});
    check(cudaMemsetAsync(out_, 0xee, elements_ * sizeof(float), stream), "a result");
    check(cudaMemsetAsync(between_.data(), 0xee, elements_ * sizeof(float), stream), "a buffer");
  }
  void count_wrong(cudaStream_t stream, uint64_t* wrong) override {
    enqueue_for_each(stream, elements_, CompareMatrices{out_, rank_, ranks_, rows_, cols_, wrong});
  }

 private:
  World& world_;
  Transport& transport_;
  const uint32_t ranks_, rank_;
  uint64_t bytes_ = 0, elements_ = 0;
  uint32_t rows_ = 0, cols_ = 0;
  Buffer<float> in_, between_, plain_;
  std::optional<OneSidedWindow> window_;
  std::optional<fused::TransposeAllToAll> library_;
  float* out_ = nullptr;  ///< in the window; for NCCL in separate memory
};

}  // namespace

std::unique_ptr<Workload> transpose_all_to_all(World& world, Transport& transport) {
  return std::make_unique<Transpose>(world, transport);
}

}  // namespace chorale::fused_bench
