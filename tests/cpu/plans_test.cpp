/// \file
/// Runs the shipped plans, and plans that MSCCL++'s own DSL wrote, on threads, fibers and processes.

#include <algorithm>
#include <cctype>
#include <system_error>

#include "tests/cpu/harness.hpp"

namespace chorale::test {
namespace {

std::vector<std::filesystem::path> plan_files() {
  std::vector<std::filesystem::path> files;
  const auto add = [&](const std::filesystem::path& folder, const auto& wanted) {
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
      if (wanted(entry.path().filename().string())) files.push_back(entry.path());
    }
  };
  add(source_dir() / "plans/shipped", [](const std::string& name) {
    return name.ends_with(".json") && name.find("_quantised_") == name.npos;  // codecs_test.cpp runs these
  });
  add(source_dir() / "../shared/mscclpp-plans", [](const std::string& name) {
    if (!name.starts_with("single_node-")) return false;
    return name.find("__n2") != std::string::npos || name.find("__n4") != std::string::npos;
  });
  std::sort(files.begin(), files.end());
  return files;
}

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint64_t seeds = 8;
#else
constexpr uint64_t seeds = 50;
#endif

/// Some plans of MSCCL++ order their data by relaxed signals, which give no order. These are real races.
bool races(const Plan& plan) {
#if defined(__SANITIZE_THREAD__)
  for (const Gpu& gpu : plan.gpus) {
    for (const ThreadBlock& block : gpu.threadblocks) {
      for (const Op& op : block.ops) {
        if (op.code == Opcode::relaxed_signal) return true;
      }
    }
  }
#endif
  (void)plan;
  return false;
}

class Plans : public testing::TestWithParam<std::filesystem::path> {
 protected:
  void SetUp() override {
    plan_ = load(GetParam().string());
    ASSERT_GT(plan_.ranks(), 0u);
    if (races(plan_)) GTEST_SKIP() << "the plan relies on relaxed signals";
  }

  std::vector<Runs> runs(std::vector<uint64_t> parts, Where where, int launches) const {
    std::vector<Runs> all;
    for (const uint64_t bytes : some_sizes(plan_, parts)) {
      for (const PacketForm form : {PacketForm::ll8, PacketForm::ll16, PacketForm::ll128})
        all.push_back({bytes, where, launches, form});
    }
    return all;
  }

  Plan plan_;
};

TEST_P(Plans, gives_the_result_out_of_place) {
  EXPECT_EQ(run_threads(plan_, runs({1, 3, 4, 5, 17, 250, 1024, 1025, 9001}, Where::apart, 5)), "");
}

TEST_P(Plans, gives_the_result_in_place) {
  EXPECT_EQ(run_threads(plan_, runs({1, 3, 17, 250, 1024, 9001}, Where::in_place, 3)), "");
}

TEST_P(Plans, gives_the_result_in_any_order) {
  if (plan_.ranks() > 4) GTEST_SKIP() << "two and four ranks are enough";
  if (plan_.gpus[0].threadblocks.size() > 8) GTEST_SKIP() << "a few thread blocks are enough";
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    EXPECT_EQ(run_threads(plan_, runs({seed % 3 ? 5u : 300u}, seed % 2 ? Where::apart : Where::in_place, 3),
                          {.seed = seed, .workers = 0}),
              "")
        << "seed " << seed;
  }
}

TEST(Harness, notices_a_wrong_result) {
  Plan plan = load((source_dir() / "plans/shipped/allreduce_ring_2.json").string());
  for (Gpu& gpu : plan.gpus) {
    for (ThreadBlock& block : gpu.threadblocks) {
      for (Op& op : block.ops) op.reduce_op = ReduceOp::max;
    }
  }
  EXPECT_NE(run_threads(plan, {{.bytes = 1000}}), "");
}

TEST(Buffers, reused_resources_reach_those_of_each_call) {
  Plan plan = load((source_dir() / "plans/shipped/allgather_direct_2.json").string());
  plan.reuse_resources = true;
  constexpr uint64_t bytes = 4096;
  const MessageSizes sizes = message_sizes(plan, bytes, DType::i32);
  std::vector<std::string> wrong(plan.ranks());
  run_local(int(plan.ranks()), [&](World& world) {
    Executor executor(world);
    const auto rank = uint32_t(world.rank());
    // All outputs exist at once, so that no two have the same address.
    std::vector<Ints> outputs(3, Ints(sizes.output / 4));
    for (int launch = 0; launch < 6; ++launch) {
      const Ints input = input_of(rank, sizes.input, launch);
      Ints& output = outputs[size_t(launch) % outputs.size()];
      executor.execute(plan, {.in = input.data(), .out = output.data(), .bytes = bytes, .dtype = DType::i32});
      if (output != output_of(plan, rank, sizes, launch))
        wrong[rank] += "launch " + std::to_string(launch) + " ";
    }
  });
  for (const std::string& one : wrong) EXPECT_EQ(one, "");
}

INSTANTIATE_TEST_SUITE_P(All, Plans, testing::ValuesIn(plan_files()), [](const auto& file) {
  std::string name = file.param.stem().string();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Plans);

}  // namespace
}  // namespace chorale::test
