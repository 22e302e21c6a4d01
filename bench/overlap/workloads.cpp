#include "bench/overlap/workloads.hpp"

#include <algorithm>
#include <chorale/schedule.hpp>

#include "bench/overlap/schedules.hpp"

namespace chorale::overlap {
namespace {

using Buffers = std::map<std::string, void*, std::less<>>;

// These candidates are not forms of ours.
constexpr const char* nccl_alone = "NCCL alone";
constexpr const char* product_alone = "product alone";
constexpr const char* serial = "NCCL and cuBLAS, one after the other";
constexpr const char* transfers_alone = "transfers alone";
constexpr const char* slices_alone = "slices alone";
constexpr const char* sum_alone = "sum alone";

/// Holds what both workloads share.
class Base : public Judged {
 public:
  Base(World& world, tools::Nccl* nccl, Shape shape)
      : world_(world),
        nccl_(nccl),
        shape_(shape),
        ranks_(uint64_t(world.ranks())),
        rank_(uint64_t(world.rank())) {}

  std::vector<Candidate>& candidates() override { return candidates_; }

  Judgement judgement() const override {
    Judgement all;
    for (const Candidate& one : candidates_) {
      if (one.name == nccl_alone)
        all.collective = one.ms;
      else if (one.name == product_alone)
        all.product = one.ms;
      else if (one.name == serial)
        all.serial = one.ms;
      else if (one.name == transfers_alone)
        all.transfers = one.ms;
      else if (one.name == slices_alone)
        all.slices = one.ms;
      else if (one.name == sum_alone)
        all.sum = one.ms;
      else
        all.forms.push_back({one.name, one.ms});
    }
    std::sort(all.forms.begin(), all.forms.end(), [](auto& left, auto& right) { return left.ms < right.ms; });
    return all;
  }

 protected:
  /// Binds a schedule, and returns the function that enqueues it.
  std::function<void(cudaStream_t)> bound(const Plan& plan, const Buffers& buffers, Shape params) {
    schedule::Values values;
    for (const schedule::Param& param : plan.extension.schedule->params) {
      const uint64_t value = param.name == "M" ? params.m : param.name == "K" ? params.k : params.n;
      values[param.name] = int64_t(value);
    }
    Config config = Config::load();
    config.backend = std::string("cuda");
    const auto run = std::make_shared<ScheduleRun>(
        world_, plan,
        // Halves leave results out, so they are not checked. Whole schedules are checked for these ranks when
        // they are made.
        ScheduleArguments{.buffers = buffers, .params = values, .check = false}, config);
    return [run](cudaStream_t stream) { run->run(stream); };
  }

  void collective(cudaStream_t stream, const char* kind, const Matrix& from, const Matrix& to) const {
    nccl_->enqueue(kind, from.data(), to.data(), {from.bytes(), to.bytes()}, DType::bf16, ReduceOp::sum,
                   stream);
  }

  World& world_;
  tools::Nccl* const nccl_;
  const Shape shape_;
  const uint64_t ranks_, rank_;
  std::vector<Candidate> candidates_;
};

bool wanted(const Form& form, const std::string& only) { return form.name().find(only) != std::string::npos; }

class AllgatherMatmul final : public Base {
 public:
  AllgatherMatmul(World& world, tools::Nccl* nccl, Shape shape, const std::string& only)
      : Base(world, nccl, shape),
        rows_(shape.m / ranks_),
        a_(rows_ * shape.k),
        b_(shape.k * shape.n),
        g_(shape.m * shape.k),
        c_(shape.m * shape.n) {
    const uint32_t ranks = uint32_t(ranks_);
    const auto product =
        bound(overlap::product(ranks), {{"A", g_.data()}, {"B", b_.data()}, {"C", c_.data()}}, shape);
    candidates_.push_back({product_alone, product});
    if (nccl) {
      const auto gather = [this](cudaStream_t stream) { collective(stream, "allgather", a_, g_); };
      candidates_.push_back({nccl_alone, gather, true, false});
      candidates_.push_back({serial,
                             [=](cudaStream_t stream) {
                               gather(stream);
                               product(stream);
                             },
                             true, true});
    }
    const Buffers all = {{"A", a_.data()}, {"B", b_.data()}, {"G", g_.data()}, {"C", c_.data()}};
    candidates_.push_back(
        {transfers_alone, bound(allgather_matmul(ranks, {}, {true, false}), all, shape), true, false});
    candidates_.push_back({slices_alone, bound(allgather_matmul(ranks, {}, {false, true}), all, shape)});
    for (const Form& form : allgather_matmul_forms())
      if (wanted(form, only))
        candidates_.push_back({form.name(), bound(allgather_matmul(ranks, form), all, shape), true, true});
  }

  void reset(cudaStream_t stream, uint64_t salt) override {
    enqueue_fill(stream, a_.data(), {rows_, shape_.k, rank_ * rows_, 0}, exact(salt), false, 0);
    enqueue_fill(stream, b_.data(), {shape_.k, shape_.n, 0, 0}, exact(salt), true, rank_);
    check(cudaMemsetAsync(g_.data(), 0xff, g_.bytes(), stream), "wrong results");
    check(cudaMemsetAsync(c_.data(), 0xff, c_.bytes(), stream), "wrong results");
  }
  void compare(cudaStream_t stream, const Candidate& one, uint64_t salt, uint64_t* wrong) override {
    if (one.makes_gathered)
      enqueue_compare_a(stream, g_.data(), {shape_.m, shape_.k, 0, 0}, exact(salt), wrong);
    if (one.makes_product)
      enqueue_compare_c(stream, c_.data(), {shape_.m, shape_.n, 0, 0}, exact(salt), shape_.k, rank_, wrong);
  }
  void randomise(cudaStream_t stream) override {
    enqueue_random(stream, a_.data(), a_.elements(), rank_);
    enqueue_random(stream, b_.data(), b_.elements(), 100 + rank_);
    // Products that are timed alone begin with this matrix.
    enqueue_random(stream, g_.data(), g_.elements(), 200);
  }

 private:
  Exact exact(uint64_t salt) const { return {salt, shape_.k / 8}; }

  const uint64_t rows_;
  const Matrix a_, b_, g_, c_;
};

class MatmulReduceScatter final : public Base {
 public:
  MatmulReduceScatter(World& world, tools::Nccl* nccl, Shape shape, const std::string& only)
      : Base(world, nccl, shape),
        rows_(shape.m / ranks_),
        deep_(shape.k / ranks_),
        a_(shape.m * deep_),
        b_(deep_ * shape.n),
        p_(shape.m * shape.n),
        c_(rows_ * shape.n) {
    const uint32_t ranks = uint32_t(ranks_);
    const auto product =
        bound(overlap::product(ranks), {{"A", a_.data()}, {"B", b_.data()}, {"C", p_.data()}},
              {shape.m, deep_, shape.n});
    candidates_.push_back({product_alone, product});
    if (nccl) {
      const auto scatter = [this](cudaStream_t stream) { collective(stream, "reducescatter", p_, c_); };
      candidates_.push_back({nccl_alone, scatter});
      candidates_.push_back({serial,
                             [=](cudaStream_t stream) {
                               product(stream);
                               scatter(stream);
                             },
                             false, true});
    }
    const Buffers all = {{"A", a_.data()}, {"B", b_.data()}, {"C", c_.data()}};
    candidates_.push_back(
        {transfers_alone, bound(matmul_reduce_scatter(ranks, {}, {true, false}), all, shape)});
    candidates_.push_back({slices_alone, bound(matmul_reduce_scatter(ranks, {}, {false, true}), all, shape)});
    candidates_.push_back({sum_alone, bound(overlap::sum(ranks), {{"R", p_.data()}, {"C", c_.data()}},
                                            {rows_, deep_, shape.n})});
    for (const Form& form : matmul_reduce_scatter_forms())
      if (wanted(form, only))
        candidates_.push_back(
            {form.name(), bound(matmul_reduce_scatter(ranks, form), all, shape), false, true});
  }

  void reset(cudaStream_t stream, uint64_t salt) override {
    enqueue_fill(stream, a_.data(), {shape_.m, deep_, 0, rank_ * deep_}, exact(salt), false, 0);
    enqueue_fill(stream, b_.data(), {deep_, shape_.n, rank_ * deep_, 0}, exact(salt), true, 0);
    check(cudaMemsetAsync(c_.data(), 0xff, c_.bytes(), stream), "wrong results");
  }
  void compare(cudaStream_t stream, const Candidate& one, uint64_t salt, uint64_t* wrong) override {
    if (one.makes_product)
      enqueue_compare_c(stream, c_.data(), {rows_, shape_.n, rank_ * rows_, 0}, exact(salt), shape_.k, 0,
                        wrong);
  }
  void randomise(cudaStream_t stream) override {
    enqueue_random(stream, a_.data(), a_.elements(), rank_);
    enqueue_random(stream, b_.data(), b_.elements(), 100 + rank_);
    enqueue_random(stream, p_.data(), p_.elements(), 200 + rank_);
  }

 private:
  Exact exact(uint64_t salt) const { return {salt, deep_ / 8}; }

  const uint64_t rows_, deep_;
  const Matrix a_, b_, p_, c_;
};

}  // namespace

double Judgement::bound(int ranks) const {
  const double slice = slices / ranks;
  return std::max(transfers + slice, slices) + sum;
}

std::unique_ptr<Judged> allgather_then_matmul(World& world, tools::Nccl* nccl, Shape shape,
                                              const std::string& only) {
  return std::make_unique<AllgatherMatmul>(world, nccl, shape, only);
}
std::unique_ptr<Judged> matmul_then_reduce_scatter(World& world, tools::Nccl* nccl, Shape shape,
                                                   const std::string& only) {
  return std::make_unique<MatmulReduceScatter>(world, nccl, shape, only);
}

}  // namespace chorale::overlap
