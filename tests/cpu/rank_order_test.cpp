/// \file
/// What is said of plans that add in the order of the ranks: a sum's bits depend on its addends alone. So
/// those of all sizes, places and plans are compared with one sum that is computed here.

#include <chorale/device.hpp>
#include <cmath>
#include <cstring>
#include <random>
#include <type_traits>

#include "chorale/proof.hpp"
#include "tests/cpu/harness.hpp"

namespace chorale::test {
namespace {

constexpr uint32_t ranks = 4;
constexpr uint64_t different = 61;  // sums; elements take them in turn

template <class T>
float wide(T value) {
  if constexpr (std::is_same_v<T, float>)
    return value;
  else
    return to_float(value);
}

template <class T>
T narrow(float value) {
  if constexpr (std::is_same_v<T, float>)
    return value;
  else
    return from_float<T>(value);
}

/// Large and small numbers of either sign, so that another order gives another sum.
template <class T>
std::vector<T> addends(uint32_t rank) {
  std::mt19937 random(rank + 1);
  std::vector<T> all;
  for (uint64_t at = 0; at < different; ++at) {
    const int exponent = int(random() % 22) - 10;
    const float sign = random() % 2 ? -1.f : 1.f, mantissa = 1 + std::ldexp(float(random() % (1 << 23)), -23);
    all.push_back(narrow<T>(sign * std::ldexp(mantissa, exponent)));
  }
  return all;
}

/// In the order of the ranks, and rounded once.
template <class T>
std::vector<T> sums() {
  std::vector<std::vector<T>> of;
  for (uint32_t rank = 0; rank < ranks; ++rank) of.push_back(addends<T>(rank));
  std::vector<T> all;
  for (uint64_t at = 0; at < different; ++at) {
    float sum = wide(of[0][at]);
    for (uint32_t rank = 1; rank < ranks; ++rank) sum += wide(of[rank][at]);
    all.push_back(narrow<T>(sum));
  }
  return all;
}

/// Elements whose bits are not those of sums(), on all ranks, in a message of so many.
template <class T>
uint64_t others(const Plan& plan, DType dtype, uint64_t elements) {
  const std::vector<T> expected = sums<T>();
  std::vector<uint64_t> wrong(ranks);
  run_local(int(ranks), [&](World& world) {
    const auto rank = uint32_t(world.rank());
    const std::vector<T> of = addends<T>(rank);
    std::vector<T> in(elements);
    for (uint64_t at = 0; at < elements; ++at) in[at] = of[at % different];
    const MessageSizes sizes = message_sizes(plan, elements * sizeof(T), dtype);
    std::vector<T> out(sizes.output / sizeof(T));
    Executor executor(world);
    executor.execute(plan,
                     {.in = in.data(), .out = out.data(), .bytes = elements * sizeof(T), .dtype = dtype});
    const uint64_t first = plan.collective == "reducescatter" ? rank * out.size() : 0;
    for (uint64_t at = 0; at < out.size(); ++at) {
      const T& right = expected[(first + at) % different];
      wrong[rank] += std::memcmp(&out[at], &right, sizeof(T)) != 0;
    }
  });
  uint64_t all = 0;
  for (const uint64_t one : wrong) all += one;
  return all;
}

Plan shipped(const std::string& name) { return load(source_dir() / "plans/shipped" / (name + ".json")); }

TEST(RankOrder, SumsHaveTheSameBitsInEveryPlanAndSize) {
  for (const char* const name :
       {"allreduce_one_shot_4", "allreduce_two_shot_ordered_b16_4", "allreduce_staged_4",
        "allreduce_staged_b16_4", "reducescatter_packets_ordered_b4_4", "reducescatter_staged_4",
        "reducescatter_staged_b16_4"}) {
    const Plan plan = shipped(name);
    EXPECT_TRUE(in_rank_order(plan)) << name;
    for (const uint64_t elements : {4u, 60u, 1000u, 20004u}) {
      EXPECT_EQ(others<f16>(plan, DType::f16, elements), 0u) << name << " of " << elements;
      EXPECT_EQ(others<bf16>(plan, DType::bf16, elements), 0u) << name << " of " << elements;
      EXPECT_EQ(others<float>(plan, DType::f32, elements), 0u) << name << " of " << elements;
    }
  }
}

/// The data can tell: with another order some sums are others.
TEST(RankOrder, OtherOrdersHaveOtherBits) {
  for (const char* const name :
       {"allreduce_ring_4", "allreduce_two_shot_4", "allreduce_two_level_4", "allreduce_all_pairs_4",
        "reducescatter_packets_4", "reducescatter_direct_4"}) {
    const Plan plan = shipped(name);
    EXPECT_FALSE(in_rank_order(plan)) << name;
    EXPECT_NE(others<float>(plan, DType::f32, 1000), 0u) << name;
  }
  for (const char* const name : {"allreduce_ring_4", "allreduce_two_level_4"})  // which round in between, too
    EXPECT_NE(others<f16>(shipped(name), DType::f16, 1000), 0u) << name;
}

}  // namespace
}  // namespace chorale::test
