/// \file
/// Checks that the stated order in which plans add up determines the bits of every sum. The tests compute
/// each sum in the stated order, and compare its bits with the plan's.

#include <algorithm>
#include <chorale/device/numeric.hpp>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <sstream>
#include <system_error>
#include <utility>

#include "chorale/collective.hpp"
#include "chorale/reduction_order.hpp"
#include "tests/cpu/harness.hpp"

namespace chorale::test {
namespace {

constexpr uint64_t different = 257;  // the number of different sums; elements use them in turn

/// Holds "(0 + 1) + 2" as a tree. A node is a rank, or addends that are added from left to right and then
/// rounded.
struct Order {
  uint32_t rank = 0;
  std::vector<Order> addends;  // none: the rank's input
};

Order read_order(std::istream& words) {
  Order sum;
  bool between = false;  // after "..."
  do {
    const char next = char((words >> std::ws).peek());
    if (next == '(') {
      words.get();
      sum.addends.push_back(read_order(words));
      words.get();  // ")"
    } else if (next == '.') {
      words.ignore(3);
      between = true;
    } else {
      uint32_t rank = 0;
      words >> rank;
      while (between && sum.addends.back().rank + 1 < rank)
        sum.addends.push_back({sum.addends.back().rank + 1, {}});
      sum.addends.push_back({rank, {}});
      between = false;
    }
  } while ((words >> std::ws).peek() == '+' && words.get());
  return sum;
}

Order read_order(const std::string& words) {
  std::istringstream text(words);
  return read_order(text);
}

/// Returns large numbers that often cancel out, small ones that are lost beside them even in f32, and others
/// that are rounded beside them in narrow types. So another order, or other brackets, gives another sum.
/// Zeros have both signs.
template <class T>
std::vector<T> addends(uint32_t rank) {
  std::mt19937 random(rank + 1);
  const auto number = [&](int exponent, uint32_t mantissa_bits) {
    const uint32_t one = 1u << mantissa_bits;
    return std::ldexp(float(one + random() % one), exponent - int(mantissa_bits));
  };
  std::vector<T> all;
  for (uint64_t at = 0; at < different; ++at) {
    const uint32_t which = random() % 16;
    const float size = which == 0   ? 0.f
                       : which < 8  ? number(12 + int(random() % 2), 1)
                       : which < 10 ? number(int(random() % 3), 23)
                                    : number(-14 + int(random() % 4), 23);
    all.push_back(narrow<T>(random() % 2 ? -size : size));
  }
  return all;
}

template <class T>
T sum_of(const Order& order, const std::vector<std::vector<T>>& inputs, uint64_t at) {
  if (order.addends.empty()) return inputs[order.rank][at];
  Accumulator<T> sum = widen(sum_of(order.addends[0], inputs, at));
  for (size_t k = 1; k < order.addends.size(); ++k) sum += widen(sum_of(order.addends[k], inputs, at));
  return narrow<T>(sum);
}

struct Ordered {
  std::string name, words;
  Plan plan;
};

/// Returns, on one rank, how many elements differ in bits from the sum by `order`, in messages of these
/// numbers of parts and in every form of packets. Each message runs in place as well.
template <class T>
uint64_t others(World& world, Executor& executor, const Ordered& of, DType dtype,
                const std::vector<uint64_t>& parts) {
  const auto rank = uint32_t(world.rank()), ranks = of.plan.ranks();
  const Order order = read_order(of.words);
  std::vector<std::vector<T>> inputs;
  for (uint32_t from = 0; from < ranks; ++from) inputs.push_back(addends<T>(from));
  std::vector<T> sums;
  for (uint64_t at = 0; at < different; ++at) sums.push_back(sum_of(order, inputs, at));
  const bool scatters = of.plan.collective == "reducescatter";
  uint64_t wrong = 0;
  for (const uint64_t part : parts) {
    // An all-reduce takes any number of elements. A number that its chunks do not divide is harder.
    const uint64_t elements = scatters ? part * ranks : part * ranks - 1;
    const uint64_t bytes = elements * sizeof(T), first = scatters ? rank * part : 0;
    const uint64_t results = !Outcome(of.plan).promises(rank) ? 0 : scatters ? part : elements;
    for (const PacketForm form : {PacketForm::ll8, PacketForm::ll16, PacketForm::ll128}) {
      if (of.plan.protocol != Protocol::LL && form != PacketForm::ll8) continue;
      for (const bool in_place : {false, true}) {
        std::vector<T> in(elements), apart(in_place ? 0 : results);
        for (uint64_t at = 0; at < elements; ++at) in[at] = inputs[rank][at % different];
        T* const out = in_place ? in.data() + first : apart.data();
        executor.execute(of.plan,
                         {.in = in.data(), .out = out, .bytes = bytes, .dtype = dtype, .packet = form});
        for (uint64_t at = 0; at < results; ++at)
          wrong += std::memcmp(&out[at], &sums[(first + at) % different], sizeof(T)) != 0;
      }
    }
  }
  return wrong;
}

/// Returns the plans, all for the same number of ranks, that have different bits somewhere, with the types.
std::string others(uint32_t ranks, const std::vector<Ordered>& plans, const std::vector<uint64_t>& parts) {
  std::vector<std::string> wrong(ranks);
  run_local(int(ranks), [&](World& world) {
    std::string& mine = wrong[size_t(world.rank())];
    Executor executor(world);
    for (const Ordered& of : plans) {
      const auto compare = [&](uint64_t elements, DType dtype) {
        if (elements) mine += of.name + " " + dtype_name(dtype) + ", ";
      };
      compare(others<float>(world, executor, of, DType::f32, parts), DType::f32);
      compare(others<f16>(world, executor, of, DType::f16, parts), DType::f16);
      compare(others<bf16>(world, executor, of, DType::bf16, parts), DType::bf16);
      compare(others<fp8_e5m2>(world, executor, of, DType::fp8_e5m2, parts), DType::fp8_e5m2);
    }
  });
  for (const std::string& one : wrong) {
    if (!one.empty()) return one;
  }
  return "";
}

/// Returns the plans in a folder that reduce and have an order, by their numbers of ranks.
std::map<uint32_t, std::vector<Ordered>> ordered_plans(const std::filesystem::path& folder) {
  std::map<uint32_t, std::vector<Ordered>> all;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    if (entry.path().extension() != ".json") continue;
    const std::string name = entry.path().stem().string();
    // Plans for eight ranks take the most time, and more thread blocks do not change the order.
    if (name.ends_with("_8") && differs_only_in_blocks(entry.path())) continue;
    Ordered one{name, {}, load(entry.path().string())};
    if (!collective_reduces(one.plan.collective)) continue;
    const std::optional<std::string> words = reduction_order(one.plan);
    if (!words) continue;
    one.words = *words;
    all[one.plan.ranks()].push_back(std::move(one));
  }
  return all;
}

size_t count_brackets(const std::vector<Ordered>& plans) {
  return size_t(std::count_if(plans.begin(), plans.end(),
                              [](const Ordered& of) { return of.words.find('(') != std::string::npos; }));
}

TEST(RankOrder, SumsOfShippedPlansHaveTheBitsOfTheirWords) {
  const auto plans = ordered_plans(source_dir() / "plans/shipped");
  for (const auto& [ranks, of] : plans) {
    EXPECT_EQ(others(ranks, of, ranks < 8 ? std::vector<uint64_t>{1, 37, 1021} : std::vector<uint64_t>{37}),
              "");
  }
  // There are enough plans to look at: between two ranks all of them have an order.
  EXPECT_GE(plans.at(2).size(), 24u);
  EXPECT_GE(plans.at(4).size(), 10u);
  EXPECT_GE(plans.at(8).size(), 7u);  // without those that differ only in blocks
  EXPECT_GE(count_brackets(plans.at(4)), 1u);
}

TEST(RankOrder, SumsOfPlansOfMscclppHaveTheBitsOfTheirWords) {
  const auto plans = ordered_plans(source_dir() / "../shared/mscclpp-plans");
  if (plans.empty()) GTEST_SKIP() << "no ../shared/mscclpp-plans";
  for (const auto& [ranks, of] : plans) EXPECT_EQ(others(ranks, of, {1, 37, 1021}), "");
  EXPECT_GE(count_brackets(plans.at(4)), 1u);
}

/// Returns an all-reduce by a switch channel whose members are listed in this order.
Plan switched(const std::vector<uint32_t>& members) {
  Plan plan;
  plan.name = "switched";
  plan.collective = "allreduce";
  plan.inplace = true;
  const auto ranks = uint32_t(members.size());
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    Gpu& gpu = plan.gpus.emplace_back();
    gpu.id = rank;
    gpu.chunks[size_t(BufferKind::input)] = gpu.chunks[size_t(BufferKind::output)] = ranks;
    ThreadBlock& block = gpu.threadblocks.emplace_back();
    std::vector<uint32_t> peers, ids;
    for (uint32_t id = 0; id + 1 < ranks; ++id) ids.push_back(id), peers.push_back((rank + 1 + id) % ranks);
    gpu.channels = {{.type = ChannelType::memory, .connected_to = peers, .rank_groups = {}},
                    {.type = ChannelType::switched,
                     .connected_to = {},
                     .buffer = BufferKind::input,
                     .rank_groups = {members}}};
    block.channels = {{ChannelType::memory, ids}, {ChannelType::switched, {0}}};
    const auto barrier = [&] {
      for (const Opcode code : {Opcode::signal, Opcode::wait})
        append(block, code, {}, {}, ids).via = ChannelType::memory;
    };
    barrier();
    const Operand part{rank, 1, 0};
    append(block, Opcode::switch_reduce_broadcast, {&part, 1}, {&part, 1}).via = ChannelType::switched;
    barrier();
  }
  return plan;
}

TEST(RankOrder, SwitchChannelsAddInIt) {
  for (const std::vector<uint32_t>& members : {std::vector<uint32_t>{0, 1, 2, 3}, {3, 1, 0, 2}}) {
    const Plan plan = switched(members);
    EXPECT_EQ(reduction_order(plan), "0 + ... + 3");
    EXPECT_EQ(others(4, {{plan.name, "0 + ... + 3", plan}}, {1, 1021}), "");
  }
}

/// The data distinguish orders: with another order, or another rounding, some sums differ.
TEST(RankOrder, OtherOrdersHaveOtherBits) {
  const auto shipped = [](const std::string& name, const std::string& words) {
    return Ordered{name, words, load(source_dir() / "plans/shipped" / (name + ".json"))};
  };
  for (const char* const name :
       {"allreduce_ring_4", "allreduce_two_shot_4", "allreduce_two_level_4", "allreduce_all_pairs_4",
        "reducescatter_packets_4", "reducescatter_direct_4"}) {
    const Ordered of = shipped(name, "0 + ... + 3");
    EXPECT_FALSE(in_rank_order(of.plan)) << name;
    for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::fp8_e5m2})
      EXPECT_NE(others(4, {of}, {1021}).find(of.name + " " + dtype_name(type)), std::string::npos) << name;
  }
  const auto same_in_f32 = others(4, {shipped("allreduce_one_shot_4", "((0 + 1) + 2) + 3")}, {1021});
  EXPECT_EQ(same_in_f32.find("f32"), std::string::npos) << "a bracket rounds to what is accumulated";
  EXPECT_NE(same_in_f32.find("bf16"), std::string::npos);
}

}  // namespace
}  // namespace chorale::test
