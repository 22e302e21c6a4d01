// Times tokens that go to their experts, and back: by dispatch() and combine() of chorale/fused/experts.hpp,
// and by NCCL's sends and receives with a kernel before and after. NCCL needs a host that knows the routes.

#include <chorale/exchange.hpp>
#include <chorale/fused/experts.hpp>
#include <optional>
#include <vector>

#include "bench/fused/device.cuh"

namespace chorale::fused_bench {
namespace {

using fused::Combine;
using fused::combine;
using fused::Dispatch;
using fused::dispatch;
using fused::ExpertExchange;
using fused::ExpertOptions;

constexpr uint32_t hidden = 7168, top_k = 8, experts = 256;

/// Returns the expert in a slot of a token. The experts of a token are different ones.
CHORALE_HD uint32_t expert_of(uint32_t rank, uint32_t token, uint32_t slot) {
  uint64_t value = (uint64_t(rank) << 32 | token) + 1;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value ^= value >> 27;
  return uint32_t(value + slot * 37) % experts;
}
/// Returns small whole numbers, which keep their value as bf16 when the results of all experts are averaged.
__device__ float value_of(uint32_t rank, uint64_t at) { return float(int((at * 31 + rank * 17) % 53)); }

struct FillTokens {
  bf16* tokens;
  int32_t* ids;
  float* weights;
  uint32_t rank;
  uint64_t routes;
  __device__ void operator()(uint64_t at) const {
    tokens[at] = narrow<bf16>(value_of(rank, at));
    if (at >= routes) return;
    ids[at] = int32_t(expert_of(rank, uint32_t(at / top_k), uint32_t(at % top_k)));
    weights[at] = 1.0f / top_k;
  }
};
struct CompareTokens {
  const bf16* tokens;
  uint32_t rank;
  uint64_t* wrong;
  __device__ void operator()(uint64_t at) const {
    if (widen(tokens[at]) != value_of(rank, at)) add(wrong, 1);
  }
};

/// Copies row order[i] of the tokens to row i.
__global__ void gather_rows(const char* tokens, char* rows, const int32_t* order, uint32_t n) {
  const Group block = block_group();
  constexpr uint64_t bytes = hidden * sizeof(bf16);
  block.each_strided(n, [&](uint64_t row) {
    transfer(block, bytes, Mem(tokens + uint64_t(order[row]) * bytes), Mem(rows + row * bytes));
  });
}
/// Adds up the top_k rows of each token; place[] has their numbers.
__global__ void average_rows(const char* rows, char* tokens, const int32_t* place, uint32_t n) {
  const Group block = block_group();
  constexpr uint64_t bytes = hidden * sizeof(bf16);
  block.each_strided(n, [&](uint64_t token) {
    for (uint64_t unit = block.rank; unit < units_of(bytes); unit += block.size) {
      fused::detail::FloatSum<bf16> sum;
      for (uint32_t slot = 0; slot < top_k; ++slot) {
        const uint64_t row = uint64_t(place[token * top_k + slot]);
        sum.add(load_unit(rows + row * bytes + unit * unit_bytes), 1.0f / top_k);
      }
      store_unit(tokens + token * bytes + unit * unit_bytes, sum.rounded());
    }
  });
}

/// Sends tokens of `bytes` bytes to their experts, whose results are the tokens themselves.
class Experts final : public Workload {
 public:
  Experts(World& world, bool combines)
      : world_(world),
        rank_(uint32_t(world.rank())),
        ranks_(uint32_t(world.ranks())),
        combines_(combines),
        experts_here_(experts / ranks_) {}

  std::string name() const override { return combines_ ? "expert dispatch and combine" : "expert dispatch"; }

  void prepare(uint64_t bytes) override {
    n_ = uint32_t(std::max<uint64_t>(1, bytes / (hidden * sizeof(bf16))));
    exchanges_.clear();
    tokens_.resize(elements());
    back_.resize(elements());
    ids_.resize(routes());
    weights_.resize(routes());
    counts_.resize(experts_here_);
    rows_.resize(uint64_t(ranks_) * n_ * top_k * hidden);
    make_routes();
  }

  std::string shape() const override {
    return std::to_string(n_) + " x " + std::to_string(hidden) + ", to peers " +
           std::to_string(sent_ * hidden * sizeof(bf16)) + " bytes";
  }

  std::vector<Candidate> ours() override {
    std::vector<Candidate> all;
    for (const uint32_t blocks : {8u, 16u, 32u, 64u, 128u}) {
      for (const bool packets : {true, false}) {
        if (packets && n_ > 1024) continue;
        ExpertOptions options;
        options.experts_per_rank = experts_here_;
        options.top_k = top_k;
        options.hidden = hidden;
        options.max_tokens = n_;
        options.packet_tokens = packets ? n_ : 0;
        options.blocks = blocks;
        options.space = Space::device;
        const auto exchange = std::make_shared<ExpertExchange>(world_, options);
        exchanges_.push_back(exchange);
        all.push_back({(packets ? "packets, " : "rows, ") + std::to_string(blocks) + " blocks",
                       [=, this](cudaStream_t stream) { call(*exchange, stream); }});
      }
    }
    return all;
  }

  Candidate by_nccl(tools::Nccl& nccl) override {
    nccl_ = &nccl;
    exchange_ = nullptr;
    return {"NCCL and kernels", [this](cudaStream_t stream) {
              gather_rows<<<1024, 256, 0, stream>>>(bytes_of(tokens_), bytes_of(send_), order_.data(),
                                                    uint32_t(routes()));
              nccl_->exchange(messages(send_, to_, SendTo{}), messages(rows_, from_, RecvFrom{}), stream);
              if (combines_) bring_back_by_nccl(stream);
              check(cudaGetLastError(), "kernels of tokens");
            }};
  }

  void reset(cudaStream_t stream) override {
    enqueue_for_each(stream, elements(),
                     FillTokens{tokens_.data(), ids_.data(), weights_.data(), rank_, routes()});
    check(cudaMemsetAsync(rows_.data(), 0xee, uint64_t(ranks_) * n_ * top_k * hidden * sizeof(bf16), stream),
          "rows");
    check(cudaMemsetAsync(back_.data(), 0xee, elements() * sizeof(bf16), stream), "results");
  }
  void count_wrong(cudaStream_t stream, uint64_t* wrong) override {
    if (!combines_) exchange_ ? bring_back(*exchange_, stream) : bring_back_by_nccl(stream);
    enqueue_for_each(stream, elements(), CompareTokens{back_.data(), rank_, wrong});
  }

 private:
  uint64_t elements() const { return uint64_t(n_) * hidden; }
  uint64_t routes() const { return uint64_t(n_) * top_k; }
  static char* bytes_of(const Buffer<bf16>& of) { return reinterpret_cast<char*>(of.data()); }

  void call(ExpertExchange& exchange, cudaStream_t stream) {
    exchange_ = &exchange;
    Dispatch<int32_t> out;
    out.tokens = tokens_.data();
    out.experts = ids_.data();
    out.weights = weights_.data();
    out.n = n_;
    out.rows = rows_.data();
    out.counts = counts_.data();
    out.room = exchange.max_rows();
    dispatch<int32_t>(exchange, out, {stream});
    if (combines_) bring_back(exchange, stream);
  }
  void bring_back(ExpertExchange& exchange, cudaStream_t stream) {
    combine<bf16>(exchange, {.rows = rows_.data(), .out = back_.data(), .n = n_}, {stream});
  }

  void bring_back_by_nccl(cudaStream_t stream) {
    nccl_->exchange(messages(rows_, from_, SendTo{}), messages(send_, to_, RecvFrom{}), stream);
    average_rows<<<1024, 256, 0, stream>>>(bytes_of(send_), bytes_of(back_), place_.data(), n_);
  }

  /// Finds what the host of NCCL's candidate knows: the tokens in the order of their experts' ranks, and how
  /// many go to each rank and come from it.
  void make_routes() {
    to_.assign(ranks_, 0);
    from_.assign(ranks_, 0);
    std::vector<int32_t> order, place(routes());
    sent_ = 0;
    for (uint32_t peer = 0; peer < ranks_; ++peer) {
      for (uint32_t token = 0; token < n_; ++token) {
        bool goes = false;
        for (uint32_t slot = 0; slot < top_k; ++slot) {
          if (expert_of(peer, token, slot) / experts_here_ == rank_) ++from_[peer];
          if (expert_of(rank_, token, slot) / experts_here_ != peer) continue;
          place[token * top_k + slot] = int32_t(order.size());
          order.push_back(int32_t(token));
          ++to_[peer];
          goes = true;
        }
        sent_ += goes && peer != rank_ ? 1 : 0;
      }
    }
    order_.resize(routes());
    place_.resize(routes());
    send_.resize(routes() * hidden);
    for (const auto& [to, values] : {std::pair(order_.data(), &order), std::pair(place_.data(), &place)}) {
      check(cudaMemcpy(to, values->data(), values->size() * sizeof(int32_t), cudaMemcpyHostToDevice),
            "routes");
    }
    check(cudaStreamSynchronize(nullptr), "routes");  // other streams do not wait for the default stream
  }

  template <class Message>
  std::vector<Message> messages(const Buffer<bf16>& buffer, const std::vector<uint64_t>& rows,
                                Message) const {
    std::vector<Message> all;
    uint64_t begin = 0;
    for (uint32_t peer = 0; peer < ranks_; ++peer) {
      all.push_back({buffer.data() + begin * hidden, rows[peer] * hidden * sizeof(bf16), int(peer)});
      begin += rows[peer];
    }
    return all;
  }

  World& world_;
  const uint32_t rank_, ranks_;
  const bool combines_;
  const uint32_t experts_here_;
  uint32_t n_ = 0;
  uint64_t sent_ = 0;  ///< tokens that dispatch() sends to other ranks, each once per rank
  std::vector<std::shared_ptr<ExpertExchange>> exchanges_;
  ExpertExchange* exchange_ = nullptr;  ///< of the last call; null: NCCL's
  tools::Nccl* nccl_ = nullptr;
  Buffer<bf16> tokens_, back_, rows_, send_;
  Buffer<int32_t> ids_, counts_, order_, place_;
  Buffer<float> weights_;
  std::vector<uint64_t> to_, from_;
};

}  // namespace

std::unique_ptr<Workload> expert_dispatch(World& world, Transport&) {
  return std::make_unique<Experts>(world, false);
}
std::unique_ptr<Workload> expert_exchange(World& world, Transport&) {
  return std::make_unique<Experts>(world, true);
}

}  // namespace chorale::fused_bench
