// These tests make mutants of whole plans, and judge them.

#include <set>
#include <utility>

#include "mutants.hpp"
#include "tests/mutation/judged.hpp"
#include "tests/mutation/report.hpp"

namespace chorale::mutation {
namespace {

std::vector<const Operator*> all_operators() {
  std::vector<const Operator*> all;
  for (const Operator& of : operators()) all.push_back(&of);
  return all;
}

Plan shipped(const std::string& name) {
  return load(std::string(CHORALE_SOURCE_DIR) + "/plans/shipped/" + name + ".json");
}

/// Describes a plan well enough to tell two plans apart.
Judge namer() {
  Judge judge;
  judge.check = [](const Plan& plan) { return Diagnostics{{"text", {}, {}, write(plan), {}, {}}}; };
  return judge;
}

TEST(Campaign, LeavesThePlanAsItWas) {
  for (const char* name : {"allreduce_two_level_4", "allreduce_two_shot_2", "broadcast_ring_2"}) {
    Plan plan = shipped(name);
    const std::string before = write(plan);
    for (const Operator& of : operators()) {
      for (const Site& site : sites(of, plan)) {
        Edit edit(plan);
        site.change(edit);
      }
      ASSERT_EQ(write(plan), before) << of.name;
    }
  }
}

TEST(Campaign, MutantsAreNeitherThePlanNorEachOther) {
  const Plan plan = shipped("allreduce_two_level_4");
  const std::vector<Mutant> mutants = mutate(plan, {.operators = all_operators()}, namer());
  std::set<std::string> texts = {write(plan)};
  for (const Mutant& mutant : mutants) {
    EXPECT_TRUE(texts.insert(mutant.text).second) << name_of("plan", mutant);
  }
  EXPECT_GT(mutants.size(), 300u);
}

TEST(Campaign, SamplesTheSameInAnyNumberOfThreads) {
  const Plan plan = shipped("allgather_ring_2");
  const auto texts = [&](uint64_t seed, uint32_t threads) {
    std::string text;
    for (const Mutant& mutant : mutate(
             plan, {.operators = all_operators(), .sample = 2, .seed = seed, .threads = threads}, namer())) {
      text += json_line("plan", mutant) + "\n";
    }
    return text;
  };
  EXPECT_EQ(texts(1, 1), texts(1, 4));
  EXPECT_NE(texts(1, 1), texts(2, 1));
}

/// Returns one mutant that `judge` has judged.
Mutant judged(const Judge& judge) {
  Plan plan = empty_plan();
  add(block(plan), Opcode::nop);
  return mutate(plan, {.operators = {&operator_named("drop_nop")}}, judge).at(0);
}

TEST(Campaign, TellsWhatBecameOfAMutant) {
  Judge judge;
  judge.check = [](const Plan&) { return Diagnostics{{"races", {}, {}, "two at once", {}, {}}}; };
  EXPECT_EQ(json_line("p", judged(judge)),
            R"({"plan":"p","operator":"drop_nop","rank":0,"threadblock":0,"op":0,)"
            R"("fate":"killed","by":"races","text":"two at once"})");
  judge.check = [](const Plan&) { return Diagnostics{}; };
  judge.explain = [](const Plan&, const Plan&, const Mutant&) { return Reason{"implied", "by that"}; };
  EXPECT_EQ(json_line("p", judged(judge)),
            R"({"plan":"p","operator":"drop_nop","rank":0,"threadblock":0,"op":0,)"
            R"("fate":"survived","by":"implied","text":"by that"})");
  judge.run = [](const Plan&) { return Failed{7, "wrong"}; };
  EXPECT_EQ(json_line("p", judged(judge)),
            R"({"plan":"p","operator":"drop_nop","rank":0,"threadblock":0,"op":0,)"
            R"("fate":"hole","seed":7,"text":"wrong"})");
  judge.check = [](const Plan&) -> Diagnostics { throw std::runtime_error("lost"); };
  EXPECT_EQ(
      json_line("p", judged(judge)),
      R"({"plan":"p","operator":"drop_nop","rank":0,"threadblock":0,"op":0,"fate":"crashed","text":"lost"})");
}

// A run that was stopped, even within a line, continues with the rest.
TEST(Campaign, GoesOnWhereItWasStopped) {
  const Plan plan = shipped("allgather_ring_2");
  Choice choice{.operators = all_operators(), .sample = 1};
  std::vector<std::string> lines;
  for (const Mutant& mutant : mutate(plan, choice, namer()))
    lines.push_back(json_line("ring", mutant) + "\n");
  const size_t half = lines.size() / 2;
  std::string left;
  for (size_t at = 0; at < half; ++at) left += lines[at];
  const Judged judged(left + lines[half].substr(0, lines[half].size() - 2));
  EXPECT_TRUE(judged.begun("ring"));
  EXPECT_FALSE(judged.begun("other"));

  size_t again = 0;
  choice.recall = [&](Mutant& mutant) { return judged.recall("ring", mutant); };
  const std::vector<Mutant> all = mutate(plan, choice, namer(), [&](const Mutant&, const Plan&) { ++again; });
  EXPECT_EQ(again, lines.size() - half);
  ASSERT_EQ(all.size(), lines.size());
  for (size_t at = 0; at < all.size(); ++at) EXPECT_EQ(json_line("ring", all[at]) + "\n", lines[at]);
}

TEST(Campaign, GoesOnWithItsOwnLinesOnly) {
  const std::string line =
      R"({"plan":"p","operator":"drop_nop","rank":0,"threadblock":0,"op":0,"fate":"killed"})";
  EXPECT_TRUE(Judged(line + "\n").begun("p"));
  for (const char* const other : {"{}", "[1]", "", "{\"name\": \"plan\", \"ranks\": 2}", "{\"plan\":\"p\""}) {
    try {
      const Judged judged(line + "\n" + other + "\n");
      ADD_FAILURE() << "taken: " << other;
    } catch (const std::invalid_argument& error) {
      EXPECT_STREQ(error.what(), "line 2 says of no mutant what became of it");
    }
  }
}

TEST(Report, CountsByOperatorCheckAndReason) {
  Mutant mutant;
  mutant.of = &operator_named("drop_nop");
  Tally tally;
  std::vector<Mutant> mutants;
  for (const auto& [fate, by] : {std::pair(Fate::killed, "pairing"), std::pair(Fate::killed, "pairing"),
                                 std::pair(Fate::survived, "implied"), std::pair(Fate::hole, "")}) {
    mutants.push_back(mutant);
    mutants.back().fate = fate;
    mutants.back().by = by;
    mutants.back().seed = 5;
  }
  tally.add("small", mutants);
  tally.leave_out("wrong", "[races] two at once");
  EXPECT_EQ(tally.summary(), "4 mutants of 1 plan: 2 killed, 1 survived, 1 hole");
  const std::string page = tally.markdown({mutant.of}, "mutate small", "abc");
  EXPECT_NE(page.find("| | operator | mistake | mutants | pairing | *implied* | holes |"), std::string::npos)
      << page;
  EXPECT_NE(page.find("| 3 | `drop_nop` | a synchronisation of the threads is forgotten | 4 | 2 | 1 | 1 |"),
            std::string::npos)
      << page;
  EXPECT_NE(
      page.find("- small: drop_nop at rank 0, thread block 0, op 0: no check finds it, but schedule 5 fails"),
      std::string::npos)
      << page;
  EXPECT_NE(page.find("- wrong: [races] two at once"), std::string::npos) << page;
}

}  // namespace
}  // namespace chorale::mutation
