// Times the four collectives with hooks that take a vector at a time: one hook scales the elements that are
// sent, one adds a bias to those that arrive. With NCCL a separate kernel does both at once.

#include <algorithm>

#include "bench/fused/device.cuh"

namespace chorale::fused_bench {
namespace {

constexpr uint32_t cols = 32;  ///< the columns of the bias
constexpr float scale = 2.0f;
constexpr uint32_t per_vector = unit_bytes / sizeof(bf16);

// The data is whole numbers. Their sums over 8 ranks, scaled and with the bias, are exact in bf16.
__device__ float value_of(uint32_t rank, uint64_t at) { return float(int((at * 31 + rank * 17) % 13) - 6); }
__device__ float bias_of(uint64_t at) { return float(int(at % cols % 11) - 5); }

/// Adds a bias that is the same for each row.
struct AddBias {
  const bf16* bias;
  template <class X>
  CHORALE_FN void consume(const Ctx<X>& ctx, Vector<bf16> values) const {
    const Vector<bf16> of_row = load_elements<bf16>(bias, ctx.index % cols, per_vector);
    for (uint32_t item = 0; item < ctx.count; ++item) {
      values.item[item] = narrow<bf16>(widen(values.item[item]) + widen(of_row.item[item]));
    }
    store_elements<bf16>(ctx.out, ctx.index, values, ctx.count);
  }
};

enum class Kind { all_reduce, all_gather, reduce_scatter, all_to_all };

template <Kind kind>
struct Hooked {
  EndpointTable table;
  Leg message;
  Shards shards;
  ScaleProduce<bf16> produce;
  AddBias consume;

  CHORALE_FN Stop operator()(const Group& group, const Deadline& deadline) const {
    if constexpr (kind == Kind::all_reduce) {
      return all_reduce<ReduceOp::sum, bf16>(group, table, message, produce, consume, deadline);
    } else if constexpr (kind == Kind::all_gather) {
      return all_gather<bf16>(group, table, message, shards, produce, consume, deadline);
    } else if constexpr (kind == Kind::reduce_scatter) {
      return reduce_scatter<ReduceOp::sum, bf16>(group, table, message, shards, produce, consume, deadline);
    } else {
      return all_to_all<bf16>(group, table, message, shards, produce, consume, deadline);
    }
  }
};

/// Computes the expected element at a place in the result.
template <Kind kind>
struct Expected {
  uint64_t shard;  ///< elements
  uint32_t self, ranks;

  __device__ float operator()(uint64_t at) const {
    const uint64_t within = kind == Kind::all_reduce ? at : at % shard;
    const uint32_t owner = uint32_t(at / shard);
    float value = 0;
    if constexpr (kind == Kind::all_gather) {
      value = value_of(owner, within);
    } else if constexpr (kind == Kind::all_to_all) {
      value = value_of(owner, self * shard + within);
    } else {
      const uint64_t first = kind == Kind::reduce_scatter ? self * shard : 0;
      for (uint32_t rank = 0; rank < ranks; ++rank) value += value_of(rank, first + within);
    }
    return scale * value + bias_of(within);
  }
};

struct FillInput {
  bf16* data;
  uint32_t self;
  __device__ void operator()(uint64_t at) const { data[at] = narrow<bf16>(value_of(self, at)); }
};
struct FillBias {
  bf16* data;
  __device__ void operator()(uint64_t at) const { data[at] = narrow<bf16>(bias_of(at)); }
};
template <Kind kind>
struct Compare {
  const bf16* data;
  Expected<kind> expected;
  uint64_t* wrong;
  __device__ void operator()(uint64_t at) const {
    if (widen(data[at]) != expected(at)) add(wrong, 1);
  }
};

/// Does the work of the separate kernel, in which each thread takes 16 bytes.
struct ScaleAndAdd {
  bf16* data;
  AddBias bias;
  __device__ void operator()(uint64_t vector) const {
    Ctx<> ctx;
    ctx.out = data;
    ctx.index = vector * per_vector;
    ctx.count = per_vector;
    Vector<bf16> values = load_elements<bf16>(data, ctx.index, ctx.count);
    for (bf16& value : values.item) value = narrow<bf16>(scale * widen(value));
    bias.consume(ctx, values);
  }
};

template <Kind kind>
class ValueHooks final : public Workload {
 public:
  ValueHooks(World& world, Transport& transport)
      : transport_(transport), ranks_(uint32_t(world.ranks())), self_(uint32_t(world.rank())) {
    bias_.resize(cols);
  }

  std::string name() const override { return std::string(words()) + " with value hooks"; }

  void prepare(uint64_t bytes) override {
    sent_ = bytes / sizeof(bf16);
    shard_ = kind == Kind::all_gather || kind == Kind::all_reduce ? sent_ : sent_ / ranks_;
    received_ = kind == Kind::all_gather ? sent_ * ranks_ : kind == Kind::reduce_scatter ? shard_ : sent_;
    in_.resize(sent_);
    out_.resize(received_);
  }

  std::string shape() const override { return "bf16 " + std::to_string(sent_); }

  std::vector<Candidate> ours() override {
    std::vector<Candidate> all;
    Leg message;
    message.in = in_.data();
    message.out = out_.data();
    message.bytes = shard_ * sizeof(bf16);
    const Shards shards{kind == Kind::all_gather ? 0 : message.bytes,
                        kind == Kind::reduce_scatter ? 0 : message.bytes};
    const Hooked<kind> kernel{transport_.table(), message, shards, {scale}, {bias_.data()}};
    for (const LaunchConfig& shape : shapes_for(sent_ * sizeof(bf16))) {
      all.push_back({std::to_string(shape.blocks) + " x " + std::to_string(shape.threads),
                     [=, this](cudaStream_t stream) { launch(transport_, kernel, shape, {stream}); }});
    }
    return all;
  }

  Candidate by_nccl(tools::Nccl& nccl) override {
    return {"NCCL and a kernel", [this, &nccl](cudaStream_t stream) {
              nccl.enqueue(collective(), in_.data(), out_.data(),
                           {sent_ * sizeof(bf16), received_ * sizeof(bf16)}, DType::bf16, ReduceOp::sum,
                           stream);
              // A shard has whole rows.
              enqueue_for_each(stream, received_ / per_vector, ScaleAndAdd{out_.data(), {bias_.data()}});
            }};
  }

  void reset(cudaStream_t stream) override {
    enqueue_for_each(stream, sent_, FillInput{in_.data(), self_});
    enqueue_for_each(stream, cols, FillBias{bias_.data()});
    check(cudaMemsetAsync(out_.data(), 0xee, received_ * sizeof(bf16), stream), "a result");
  }
  void count_wrong(cudaStream_t stream, uint64_t* wrong) override {
    enqueue_for_each(stream, received_, Compare<kind>{out_.data(), {shard_, self_, ranks_}, wrong});
  }

 private:
  static const char* words() {
    constexpr const char* all[] = {"all-reduce", "all-gather", "reduce-scatter", "all-to-all"};
    return all[int(kind)];
  }
  static const char* collective() {
    constexpr const char* all[] = {"allreduce", "allgather", "reducescatter", "alltoall"};
    return all[int(kind)];
  }

  Transport& transport_;
  const uint32_t ranks_, self_;
  uint64_t sent_ = 0, shard_ = 0, received_ = 0;  ///< elements
  Buffer<bf16> in_, out_, bias_;
};

}  // namespace

std::unique_ptr<Workload> hooked_all_reduce(World& world, Transport& transport) {
  return std::make_unique<ValueHooks<Kind::all_reduce>>(world, transport);
}
std::unique_ptr<Workload> hooked_all_gather(World& world, Transport& transport) {
  return std::make_unique<ValueHooks<Kind::all_gather>>(world, transport);
}
std::unique_ptr<Workload> hooked_reduce_scatter(World& world, Transport& transport) {
  return std::make_unique<ValueHooks<Kind::reduce_scatter>>(world, transport);
}
std::unique_ptr<Workload> hooked_all_to_all(World& world, Transport& transport) {
  return std::make_unique<ValueHooks<Kind::all_to_all>>(world, transport);
}

}  // namespace chorale::fused_bench
