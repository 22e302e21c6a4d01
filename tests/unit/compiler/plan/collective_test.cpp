// These tests repeat by hand what the rows of collectives.def say about each collective.

#include "chorale/collective.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

namespace chorale {
namespace {

constexpr uint32_t ranks = 3, root = 2;

Plan plan_of(const char* collective) {
  Plan plan;
  plan.collective = collective;
  plan.extension.root = root;
  plan.gpus.resize(ranks);
  return plan;
}

/// Returns the inputs that make up a part of an output: "0.1+2.1" is part 1 of the inputs of ranks 0 and 2.
std::string made_of(const Plan& plan, uint32_t rank, uint64_t part, uint32_t sender = 0) {
  std::string text;
  Outcome(plan).for_each(rank, part, sender, [&](const Contribution& from) {
    text += (text.empty() ? "" : "+") + std::to_string(from.rank) + "." + std::to_string(from.chunk);
  });
  return text;
}

TEST(Collective, OutputsHoldWhatTheNameSays) {
  EXPECT_EQ(made_of(plan_of("allreduce"), 1, 0), "0.0+1.0+2.0");
  EXPECT_EQ(made_of(plan_of("reducescatter"), 1, 0), "0.1+1.1+2.1");
  EXPECT_EQ(made_of(plan_of("allgather"), 1, 2), "2.0");
  EXPECT_EQ(made_of(plan_of("alltoall"), 1, 2), "2.1");
  EXPECT_EQ(made_of(plan_of("broadcast"), 1, 0), "2.0");
  EXPECT_EQ(made_of(plan_of("reduce"), root, 0), "0.0+1.0+2.0");
  EXPECT_EQ(made_of(plan_of("reduce"), 0, 0), "");
  EXPECT_EQ(made_of(plan_of("sendrecv"), 1, 0, /*sender=*/0), "0.0");
  for (const char* const unsaid : {"custom", "test", "mine"}) {
    EXPECT_FALSE(Outcome(plan_of(unsaid)).is_known()) << unsaid;
    EXPECT_EQ(made_of(plan_of(unsaid), 1, 0), "") << unsaid;
  }
}

TEST(Collective, AnOwnPromiseComesFirst) {
  Plan plan = plan_of("allreduce");
  plan.extension.post = {{}, {{{2, 1}, {0, 4}}, {}}};
  EXPECT_TRUE(Outcome(plan).is_known());
  EXPECT_FALSE(Outcome(plan).reduces());
  EXPECT_EQ(made_of(plan, 1, 0), "2.1+0.4");
  EXPECT_EQ(made_of(plan, 1, 1), "");  // the plan promises nothing for it
  EXPECT_EQ(made_of(plan, 1, 2), "");
  EXPECT_EQ(made_of(plan, 2, 0), "");
}

TEST(Collective, OutputsMayBeTheRootsAlone) {
  using Info = CollectiveInfo;
  constexpr Info gather = {"gather",          Info::Cut::whole, Info::Cut::parts,
                           Info::Holds::each, Info::At::root,   Info::InPlace::always};
  Info reduce = gather, scatter = gather;
  reduce.holds = Info::Holds::sum;
  reduce.output = Info::Cut::whole;
  scatter.holds = Info::Holds::root;
  scatter.at = Info::At::all;
  std::swap(scatter.input, scatter.output);
  const Plan plan = plan_of("none");
  const auto made = [&](const Info& row, uint32_t rank, uint64_t part) {
    std::string text;
    Outcome(plan, row).for_each(rank, part, 0, [&](const Contribution& from) {
      text += "+" + std::to_string(from.rank) + "." + std::to_string(from.chunk);
    });
    return text;
  };
  EXPECT_EQ(made(gather, root, 1), "+1.0");
  EXPECT_EQ(made(gather, 1, 1), "");
  EXPECT_EQ(made(reduce, root, 0), "+0.0+1.0+2.0");
  EXPECT_EQ(made(reduce, 0, 0), "");
  EXPECT_EQ(made(scatter, 1, 0), "+2.1");
  EXPECT_TRUE(Outcome(plan, gather).promises(root));
  EXPECT_FALSE(Outcome(plan, gather).promises(0));
  for (const Info& row : {gather, reduce, scatter}) {
    EXPECT_TRUE(row.is_standard() && row.has_root());
    EXPECT_EQ(row.fills_outputs(), row.at == Info::At::all);
    EXPECT_EQ(row.only_root_sends(), row.holds == Info::Holds::root);
    EXPECT_EQ(row.reduces(), row.holds == Info::Holds::sum);
    EXPECT_EQ(row.repeats_in_place(), row.holds != Info::Holds::sum);
  }
  Plan own = plan;
  own.extension.post = {{{{0, 0}}}, {}, {}};
  EXPECT_TRUE(Outcome(own, gather).promises(0));
}

TEST(Collective, MessagesAreCutAsTheNameSays) {
  const auto segments = [](const char* collective) {
    const Segmentation parts = segmentation(plan_of(collective));
    return std::pair(parts.input, parts.output);
  };
  EXPECT_EQ(segments("allreduce"), std::pair(1ul, 1ul));
  EXPECT_EQ(segments("allgather"), std::pair(1ul, 3ul));
  EXPECT_EQ(segments("reducescatter"), std::pair(3ul, 1ul));
  EXPECT_EQ(segments("alltoall"), std::pair(3ul, 3ul));
  EXPECT_EQ(segments("sendrecv"), std::pair(1ul, 1ul));
  EXPECT_EQ(segments("broadcast"), std::pair(1ul, 1ul));
  EXPECT_EQ(segments("reduce"), std::pair(1ul, 1ul));
}

TEST(Collective, ListsHaveTheStandardCollectives) {
  const auto those = [](bool (CollectiveInfo::*are)() const) {
    std::string words;
    for (const CollectiveInfo& row : collective_table)
      if ((row.*are)()) words += (words.empty() ? "" : " ") + std::string(row.word);
    return words;
  };
  EXPECT_EQ(those(&CollectiveInfo::is_standard),
            "allreduce allgather reducescatter alltoall sendrecv broadcast reduce");
  EXPECT_EQ(those(&CollectiveInfo::reduces), "allreduce reducescatter reduce");
  EXPECT_EQ(those(&CollectiveInfo::has_root), "broadcast reduce");
  EXPECT_EQ(those(&CollectiveInfo::has_free_sizes), "custom test");
  EXPECT_EQ(those(&CollectiveInfo::fills_outputs), "allreduce allgather reducescatter alltoall broadcast");
  EXPECT_EQ(those(&CollectiveInfo::input_is_part), "allgather");
  EXPECT_EQ(those(&CollectiveInfo::output_is_part), "reducescatter");
  EXPECT_EQ(those(&CollectiveInfo::repeats_in_place), "allgather broadcast");
  EXPECT_FALSE(is_standard("all_reduce"));
  EXPECT_FALSE(is_standard(""));
  EXPECT_TRUE(collective_info("mine").keeps_inputs());
  EXPECT_FALSE(collective_info("mine").fills_outputs());  // its plans may leave parts as they were
  EXPECT_FALSE(collective_info("test").keeps_inputs());
}

}  // namespace
}  // namespace chorale
