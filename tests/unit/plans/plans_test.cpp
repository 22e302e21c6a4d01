// These tests run the shipped algorithms on an abstract machine that uses every freedom, as they are recorded
// and as they are compiled. They also check that the machine finds faults: algorithms that lack one
// synchronisation.

#include <gtest/gtest.h>

#include <chorale/dsl.hpp>
#include <chorale/json.hpp>
#include <chorale/make_plan.hpp>
#include <chorale/proof.hpp>
#include <filesystem>

#include "tests/unit/plans/model.hpp"

namespace {

using namespace chorale::dsl;

std::string first_failure(const Plan& plan, unsigned seeds) {
  for (unsigned seed = 0; seed < seeds; ++seed) {
    const std::string wrong = model::Machine(plan, 4, seed).run();
    if (!wrong.empty()) return "seed " + std::to_string(seed) + ": " + wrong;
  }
  return "";
}

class ShippedPlans : public testing::TestWithParam<std::string> {};

TEST_P(ShippedPlans, AreRightInAnyOrder) {
  const std::string name = GetParam();
  const bool can_be_inplace =
      name.starts_with("allreduce") || (name.starts_with("allgather") && name != "allgather_quantised");
  const bool has_rank_order =
      name == "allreduce_two_shot" || name == "reducescatter_packets" || name == "reduce_packets";
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (const int variant : {0, 1, 2, 3}) {
      const bool inplace = variant & 1, rank_order = variant & 2;
      if ((inplace && !can_be_inplace) || (rank_order && !has_rank_order)) continue;
      Parameters::Settings settings{{"ranks", std::to_string(ranks)}, {"instances", ranks % 2 ? "2" : "1"}};
      if (inplace) settings["inplace"] = "true";
      if (rank_order) settings["rank_order"] = "true";
      if (name.starts_with("broadcast") || name.starts_with("reduce_"))
        settings["root"] = std::to_string(ranks / 2);
      if (name.ends_with("_by_port")) settings["copiers"] = "2";
      if (name == "allreduce_two_level" && ranks == 3) settings["gpus_per_node"] = "1";
      const Program program = build(name, settings);
      const Compiled compiled = program.compile();
      ASSERT_TRUE(compiled.ok()) << chorale::render(compiled.plan, compiled.diagnostics);
      const unsigned seeds = ranks < 6 ? 100 : 20;
      const std::string of = std::to_string(ranks) + " ranks, inplace " + std::to_string(inplace) +
                             ", rank_order " + std::to_string(rank_order);
      EXPECT_EQ(first_failure(program.recorded(), seeds), "") << of;
      EXPECT_EQ(first_failure(compiled.plan, seeds), "") << of << ", compiled";
    }
  }
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const RegisteredProgram& program : programs()) all.push_back(program.name);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Plans, ShippedPlans, testing::ValuesIn(names()),
                         [](const auto& info) { return info.param; });

/// Removes the `nth` operation of its kind from every block of every rank.
Plan without(const std::string& name, const std::string& ranks, chorale::Opcode code, int nth,
             Parameters::Settings settings = {}) {
  settings.insert({{"ranks", ranks}, {"instances", "1"}});
  Plan plan = build(name, settings).compile().plan;
  for (chorale::Gpu& gpu : plan.gpus) {
    for (chorale::ThreadBlock& block : gpu.threadblocks) {
      int seen = 0;
      std::erase_if(block.ops, [&](const chorale::Op& op) {
        const bool waits = code == chorale::Opcode::wait && op.code == chorale::Opcode::relaxed_wait;
        return (op.code == code || waits) && seen++ == nth;
      });
    }
  }
  return plan;
}

TEST(MakePlan, IsWhatIsCompiled) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    const chorale::Plan plan = chorale::make_plan("allreduce_all_pairs", ranks, {{"instances", "2"}});
    Program program = build("allreduce_all_pairs", {{"ranks", std::to_string(ranks)}, {"instances", "2"}});
    chorale::CompileOptions options = program.compile_options();
    options.certify = true;
    EXPECT_EQ(chorale::write(plan), chorale::write(std::move(program).compile(options).plan));
    EXPECT_FALSE(plan.extension.verified.empty());
    EXPECT_EQ(chorale::refute_certificate(plan), "");
  }
}

TEST(MakePlan, HasOneNumberOfRanks) {
  EXPECT_THROW(chorale::make_plan("allreduce_ring", 2, {{"ranks", "4"}}), std::invalid_argument);
}

/// Each plan has a certificate.
TEST(MakePlan, MakesAllThatIsShippedForSeven) {
  int made = 0;
  for (const RegisteredProgram& program : programs()) {
    if (program.name == "allreduce_two_level") continue;  // it has two nodes
    EXPECT_EQ(chorale::make_plan(program.name, 7).ranks(), 7u) << program.name;
    ++made;
  }
  EXPECT_GE(made, 20);
}

/// The names of files say how they were made. The files lack only the certificate.
TEST(MakePlan, MakesWhatIsShippedByTheNamesOfFiles) {
  int variants = 0;
  for (const auto& file : std::filesystem::directory_iterator(CHORALE_SOURCE_DIR "/plans/shipped")) {
    if (file.path().extension() != ".json") continue;
    const std::string stem = file.path().stem().string();
    const size_t mark = stem.rfind('_');
    const std::string name = stem.substr(0, mark);
    chorale::Plan made = chorale::make_plan(name, std::stoi(stem.substr(mark + 1)));
    made.extension.verified.clear();
    EXPECT_TRUE(chorale::write(made) == chorale::write(chorale::load(file.path().string()))) << stem;
    variants += made.name != name;
  }
  EXPECT_GE(variants, 100);
  // With 7 ranks each peer, and the rank itself, has 64 / 7 of the blocks.
  EXPECT_EQ(chorale::make_plan("allgather_by_peer_b64", 7).gpus[0].threadblocks.size(), 63u);
  EXPECT_EQ(chorale::make_plan("allgather_by_peer_b4", 7).gpus[0].threadblocks.size(), 7u);
}

TEST(MakePlan, SaysWhatItCannotMake) {
  const auto said = [](const std::string& name, int ranks, const Parameters::Settings& settings) {
    try {
      chorale::make_plan(name, ranks, settings);
      return std::string("nothing");
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
  };
  const auto expect = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect(said("allreduce_all_pears", 7, {}), "allreduce_all_pears");
  expect(said("allreduce_all_pears_b16", 7, {}), "allreduce_all_pears_b16");
  expect(said("allreduce_ring_ordered_b16", 7, {}), "rank_order");
  expect(said("allreduce_ring_b0", 7, {}), "allreduce_ring_b0");
  expect(said("allreduce_all_pairs", 0, {}), "ranks");
  expect(said("allreduce_all_pairs", 7, {{"instance", "2"}}), "instance");
  expect(said("allreduce_all_pairs", 7, {{"instances", "2000"}}),
         "'allreduce_all_pairs' for 7 ranks is refused by the checks:\n");
}

TEST(Model, FindsWhatIsMissing) {
  using chorale::Opcode;
  // Start barriers are the first wait, end barriers the second.
  for (const char* name : {"allreduce_all_pairs", "allgather_direct", "allgather_by_peer", "alltoall_direct",
                           "alltoall_by_peer", "reducescatter_direct", "allreduce_staged",
                           "reducescatter_staged", "allgather_quantised", "allreduce_quantised"}) {
    EXPECT_NE(first_failure(without(name, "3", Opcode::wait, 0), 100), "")
        << name << " without its start barrier";
    EXPECT_NE(first_failure(without(name, "3", Opcode::wait, 1), 100), "")
        << name << " without its end barrier";
  }
  EXPECT_NE(first_failure(without("allreduce_staged", "3", Opcode::wait, 2), 100), "") << "behind its sums";
  EXPECT_NE(first_failure(without("allgather_ring", "3", Opcode::wait, 0), 100), "");
  EXPECT_NE(first_failure(without("allreduce_ring", "3", Opcode::wait, 1), 100), "");
  EXPECT_NE(first_failure(without("alltoall_in_turns", "3", Opcode::wait, 0), 100), "");
  EXPECT_NE(first_failure(without("alltoall_in_turns", "3", Opcode::wait, 3), 100), "");
  for (const char* name : {"allgather_by_port", "alltoall_by_port"}) {
    // These operations say where the first turn may write, and what the last one brings.
    EXPECT_NE(first_failure(without(name, "3", Opcode::wait, 0), 100), "") << name;
    EXPECT_NE(first_failure(without(name, "3", Opcode::wait, 3), 100), "") << name;
    EXPECT_NE(first_failure(without(name, "3", Opcode::flush, 0), 100), "") << name;
  }
  EXPECT_NE(first_failure(without("broadcast_ring", "3", Opcode::wait, 0), 100), "");
  EXPECT_NE(first_failure(without("broadcast_direct", "3", Opcode::wait, 0), 100), "");
  EXPECT_NE(first_failure(without("allreduce_two_level", "4", Opcode::flush, 0), 100), "");
  for (const int nth : {0, 1, 2, 3}) {  // node's start, slots free, nodes' sums, node's end
    EXPECT_NE(first_failure(without("allreduce_two_level", "4", Opcode::wait, nth), 100), "") << nth;
  }
  for (const char* name : {"allreduce_one_shot", "allreduce_two_shot", "allgather_packets",
                           "alltoall_packets", "reducescatter_packets"}) {
    EXPECT_NE(first_failure(without(name, "3", Opcode::put_packets, 0), 100), "") << name;
  }
  for (const char* name : {"allreduce_one_shot", "allgather_packets", "alltoall_packets"}) {
    EXPECT_NE(first_failure(without(name, "3", Opcode::copy_packets, 0), 100), "") << name;
  }
  for (const char* name : {"allreduce_two_shot", "reducescatter_packets"}) {
    for (const Opcode code : {Opcode::copy_packets, Opcode::put_packets})
      EXPECT_NE(first_failure(without(name, "3", code, 0, {{"rank_order", "true"}}), 100), "") << name;
  }
}

}  // namespace
