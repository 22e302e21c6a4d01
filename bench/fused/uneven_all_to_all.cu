// Times an all-to-all of messages of different sizes, such as tokens for their experts, in three ways.
// Exchange needs a host that knows the sizes. The kernel of all_to_all_v() reads the sizes from memory.
// NCCL's sends and receives in a group need a host that knows the sizes as well.

#include <chorale/exchange.hpp>
#include <vector>

#include "bench/fused/device.cuh"

namespace chorale::fused_bench {
namespace {

constexpr uint32_t most_peers = 8;
constexpr uint64_t run_words = 4;  ///< the elements that count as one

/// Holds the places of the messages in a buffer, one after the other.
struct Segments {
  uint32_t n = 0;
  uint64_t begin[most_peers + 1] = {};  ///< in elements; the last is the end

  __device__ uint32_t of(uint64_t at) const {
    uint32_t segment = 0;
    while (segment + 1 < n && at >= begin[segment + 1]) ++segment;
    return segment;
  }
};

__device__ uint32_t value_of(uint32_t from, uint32_t to, uint64_t at) {
  return uint32_t(at * 2654435761u) ^ (from * 40503u + to * 7919u);
}

struct FillMessages {
  uint32_t* data;
  Segments to;
  uint32_t self;
  __device__ void operator()(uint64_t at) const {
    const uint32_t peer = to.of(at);
    data[at] = value_of(self, peer, at - to.begin[peer]);
  }
};

struct CompareMessages {
  const uint32_t* data;
  Segments from;
  uint32_t self;
  uint64_t* wrong;
  __device__ void operator()(uint64_t at) const {
    const uint32_t peer = from.of(at);
    if (data[at] != value_of(peer, self, at - from.begin[peer])) add(wrong, 1);
  }
};

struct CountedAllToAll {
  EndpointTable table;
  Leg message;
  Counts<int64_t> counts;
  CHORALE_FN Stop operator()(const Group& group, const Deadline& deadline) const {
    return all_to_all_v<uint32_t>(group, table, message, counts, CopyProduce{}, CopyConsume{}, deadline);
  }
};

class UnevenAllToAll final : public Workload {
 public:
  UnevenAllToAll(World& world, Transport& transport)
      : world_(world), transport_(transport), config_(cuda_config(world)), exchange_(world, {}, config_) {
    counts_.resize(2 * most_peers);
  }

  std::string name() const override { return "uneven all-to-all"; }

  void prepare(uint64_t bytes) override {
    const int self = world_.rank(), ranks = world_.ranks();
    const uint64_t runs = bytes / (run_words * sizeof(uint32_t));
    to_ = from_ = {uint32_t(ranks)};
    std::vector<int64_t> counts;
    for (int peer = 0; peer < ranks; ++peer) {
      counts.push_back(int64_t(runs_of(runs, self, peer)));
      to_.begin[peer + 1] = to_.begin[peer] + runs_of(runs, self, peer) * run_words;
      from_.begin[peer + 1] = from_.begin[peer] + runs_of(runs, peer, self) * run_words;
    }
    check(cudaMemcpy(counts_.data(), counts.data(), counts.size() * sizeof(int64_t), cudaMemcpyHostToDevice),
          "counts");
    check(cudaStreamSynchronize(nullptr), "counts");  // other streams do not wait for the default stream
    in_.resize(sent());
    out_.resize(received());
  }

  std::string shape() const override {
    return "received by rank " + std::to_string(world_.rank()) + ": " + std::to_string(received() * 4) +
           " bytes";
  }

  std::vector<Candidate> ours() override {
    std::vector<Candidate> all{{"Exchange", [this](cudaStream_t stream) {
                                  const Messages messages = this->messages();
                                  exchange_.exchange(messages.sends, messages.recvs, stream);
                                }}};
    Counts<int64_t> counts;
    counts.send = counts_.data();
    counts.received = counts_.data() + most_peers;
    counts.each = run_words;
    Leg message;
    message.in = in_.data();
    message.out = out_.data();
    message.elem = sizeof(uint32_t);
    const CountedAllToAll kernel{transport_.table(), message, counts};
    for (const LaunchConfig& shape : shapes_for(sent() * sizeof(uint32_t))) {
      all.push_back({"all_to_all_v, " + std::to_string(shape.blocks) + " x " + std::to_string(shape.threads),
                     [=, this](cudaStream_t stream) { launch(transport_, kernel, shape, {stream}); }});
    }
    return all;
  }

  Candidate by_nccl(tools::Nccl& nccl) override {
    return {"NCCL", [this, &nccl](cudaStream_t stream) {
              const Messages messages = this->messages();
              nccl.exchange(messages.sends, messages.recvs, stream);
            }};
  }

  void reset(cudaStream_t stream) override {
    enqueue_for_each(stream, sent(), FillMessages{in_.data(), to_, uint32_t(world_.rank())});
    check(cudaMemsetAsync(out_.data(), 0xee, received() * sizeof(uint32_t), stream), "a result");
  }
  void count_wrong(cudaStream_t stream, uint64_t* wrong) override {
    enqueue_for_each(stream, received(), CompareMessages{out_.data(), from_, uint32_t(world_.rank()), wrong});
  }

 private:
  struct Messages {
    std::vector<SendTo> sends;
    std::vector<RecvFrom> recvs;
  };

  static Config cuda_config(const World& world) {
    Config config;
    config.backend = "cuda";
    config.timeout = world.timeout();
    return config;
  }

  /// Returns the runs from rank `from` to rank `to`. `from` sends `runs` runs in all. A destination gets one,
  /// two, three or four parts of them, depending on the distance.
  uint64_t runs_of(uint64_t runs, int from, int to) const {
    uint64_t parts = 0;
    for (int peer = 0; peer < world_.ranks(); ++peer) parts += weight(from, peer);
    return runs * weight(from, to) / parts;
  }
  uint64_t weight(int from, int to) const {
    return 1 + uint64_t(to - from + world_.ranks()) % uint64_t(world_.ranks()) % 4;
  }

  uint64_t sent() const { return to_.begin[world_.ranks()]; }
  uint64_t received() const { return from_.begin[world_.ranks()]; }

  Messages messages() const {
    Messages messages;
    for (int peer = 0; peer < world_.ranks(); ++peer) {
      const auto bytes = [&](const Segments& of) {
        return (of.begin[peer + 1] - of.begin[peer]) * sizeof(uint32_t);
      };
      messages.sends.push_back({in_.data() + to_.begin[peer], bytes(to_), peer});
      messages.recvs.push_back({out_.data() + from_.begin[peer], bytes(from_), peer});
    }
    return messages;
  }

  World& world_;
  Transport& transport_;
  const Config config_;
  Exchange exchange_;
  Segments to_, from_;
  Buffer<int64_t> counts_;  ///< how much this rank sends to each rank, and how much it has received from each
  Buffer<uint32_t> in_, out_;
};

}  // namespace

std::unique_ptr<Workload> uneven_all_to_all(World& world, Transport& transport) {
  return std::make_unique<UnevenAllToAll>(world, transport);
}

}  // namespace chorale::fused_bench
