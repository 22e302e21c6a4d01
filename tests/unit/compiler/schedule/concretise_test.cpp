// These tests unroll schedules for every rank.

#include <gtest/gtest.h>

#include <algorithm>

#include "chorale/json.hpp"
#include "chorale/renderer.hpp"
#include "chorale/schedule/concrete.hpp"
#include "tests/unit/compiler/schedule/text.hpp"

namespace chorale::schedule {
namespace {

Schedule schedule(const std::string& text) { return *read(plan_with(text)).extension.schedule; }

std::string findings(const std::string& text, uint32_t ranks, Values params = {}) {
  const Schedule read = schedule(text);
  Diagnostics out;
  concretise(read, {.ranks = ranks, .params = std::move(params)}, out);
  return render(Plan{}, out);
}

TEST(Concretise, EveryTransferHasItsOtherEnd) {
  const Schedule allgather = schedule(allgather_p2p());
  for (const uint32_t ranks : {1u, 2u, 3u, 4u, 8u}) {
    Diagnostics out;
    const Concrete made = concretise(allgather, {.ranks = ranks, .params = {{"n", 5}}}, out);
    ASSERT_EQ(render(Plan{}, out), "");
    ASSERT_EQ(made.pairs.size(), ranks * (ranks - 1));
    for (const Pair& pair : made.pairs) {
      const ConcreteTransfer& send = made.steps[pair.send.rank][pair.send.step].transfers[pair.send.transfer];
      const ConcreteTransfer& recv = made.steps[pair.recv.rank][pair.recv.step].transfers[pair.recv.transfer];
      EXPECT_TRUE(send.is_send);
      EXPECT_FALSE(recv.is_send);
      EXPECT_EQ(send.peer, pair.recv.rank);
      EXPECT_EQ(recv.peer, pair.send.rank);
      EXPECT_EQ(recv.box.offset_bytes, pair.send.rank * 20);
      EXPECT_EQ(send.box.bytes, 20u);
    }
  }
}

/// Returns whether all streams end, in any order of streams and ranks. Each stream in turn continues as far
/// as its flags allow.
bool comes_to_its_end(const Concrete& made) {
  std::vector<bool> set(made.flags.size());
  std::vector<size_t> at(made.ranks);
  for (bool moved = true; moved;) {
    moved = false;
    for (uint32_t rank = 0; rank < made.ranks; ++rank) {
      for (; at[rank] < made.steps[rank].size(); ++at[rank], moved = true) {
        const Step& step = made.steps[rank][at[rank]];
        if (step.kind == StepKind::take && !set[step.flag]) break;
        if (step.kind == StepKind::take) set[step.flag] = false;
        if (step.kind == StepKind::post) set[step.flag] = true;
      }
    }
  }
  for (uint32_t rank = 0; rank < made.ranks; ++rank)
    if (at[rank] < made.steps[rank].size()) return false;
  return std::none_of(set.begin(), set.end(), [](bool one) { return one; });
}

TEST(ExpandMovers, FlagsArePostedAndTakenOnceAndNobodyWaitsForever) {
  const Schedule allgather = schedule(allgather_p2p());
  for (const Mover mover : {Mover::ce_put, Mover::ce_get, Mover::plan}) {
    for (const uint32_t ranks : {1u, 2u, 3u, 4u, 8u}) {
      Diagnostics out;
      const Concrete made = expand_movers(
          concretise(allgather, {.ranks = ranks, .params = {{"n", 5}}, .automatic = mover}, out));
      EXPECT_TRUE(comes_to_its_end(made)) << mover_names[size_t(mover)] << " " << ranks;
      size_t moves = 0;
      for (const std::vector<Step>& steps : made.steps) {
        for (const Step& step : steps) {
          EXPECT_NE(step.kind, StepKind::group);
          EXPECT_NE(step.kind, StepKind::wait);
          moves += step.kind == StepKind::put || step.kind == StepKind::get;
        }
      }
      EXPECT_EQ(moves, mover == Mover::plan ? 0 : ranks * (ranks - 1));
    }
  }
}

TEST(Concretise, ABoxKnowsItsPlace) {
  const Schedule read = schedule(
      R"({"tensors":[{"name":"a","dtype":"f32","shape":[3,4,5],"role":"out"}],
      "body":[{"op":"fill","dst":["a",[0,1],[1,2,2]],"value":0},{"op":"fill","dst":["a",[2,1,3]],"value":0}]})");
  Diagnostics out;
  const Concrete made = concretise(read, {.ranks = 1}, out);
  const Box rows = made.steps[0][0].writes[0], columns = made.steps[0][1].writes[0];
  EXPECT_EQ(rows.shape, (std::vector<uint64_t>{2, 5}));
  EXPECT_EQ(rows.strides, (std::vector<uint64_t>{5, 1}));
  EXPECT_EQ(rows.offset_bytes, (20 + 10) * 4u);
  EXPECT_EQ(rows.bytes, 40u);
  EXPECT_TRUE(rows.contiguous);
  EXPECT_FALSE(columns.contiguous);
  EXPECT_EQ(columns.bytes, 3 * 4 * 3 * 4u);
  EXPECT_TRUE(rows.overlaps(columns));
}

TEST(Concretise, MistakesAreFindings) {
  const std::string head = R"({"tensors":[{"name":"a","dtype":"f32","shape":[4],"role":"out"}],"body":[)";
  const std::pair<std::string, std::string> cases[] = {
      {R"({"op":"fill","dst":["a",[0,["+","rank",3]]],"value":0})",
       "index 4 of axis 0 of 'a' on rank 1, but the axis has 4 [bounds]"},
      {R"({"op":"fill","dst":["a",[0,2,3]],"value":0})",
       "elements 2:5 of axis 0 of 'a' on rank 0, but the axis has 4 [bounds]"},
      {R"({"op":"fill","dst":["a",[0,["/",1,0]]],"value":0})",
       "the index ( 1 / 0 ) divides by zero on rank 0"},
      {R"({"op":"for","i":"i","lo":0,"hi":3,"body":[{"op":"send","src":["a"],"peer":["+","i",1]}]})",
       "peer 2 on rank 0, i = 1, but there are 2 ranks [peers]"},
      {R"({"op":"send","src":["a"],"peer":"rank"})", "rank 0 is its own peer [peers]"},
      {R"({"op":"if","p":["==","rank",0],"then":[{"op":"send","src":["a"],"peer":1}]})",
       "this send on rank 0 has no receive at rank 1: with tag 0, rank 0 sends 1 time to rank 1, which "
       "receives 0"},
      {R"({"op":"if","p":["==","rank",0],"then":[{"op":"send","src":["a"],"peer":1}],"else":[{"op":"recv","dst":["a",[0,0,3]],"peer":0}]})",
       "16 bytes of a[0:4] are sent on rank 0, but rank 1 receives 12 bytes in a[0:3] [matching]"},
      {R"({"op":"wait","token":1})", "token 1 is waited for on rank 0, but nothing has made it"},
      {R"({"op":"group","token":1,"do":[]},{"op":"wait","token":1},{"op":"wait","token":1})",
       "token 1 is waited for on rank 0, but nothing has made it since the last wait [tokens]"},
      {R"({"op":"group","token":1,"do":[]})", "token 1 of rank 0 is never waited for [tokens]"},
      {R"({"op":"for","i":"i","lo":0,"hi":2,"body":[{"op":"group","token":1,"do":[]}]})",
       "token 1 is made again on rank 0, i = 1 before it was waited for [tokens]"},
      {R"({"op":"for","i":"i","lo":0,"hi":2,"body":[{"op":"group","token":[1,"i"],"do":[]}]},{"op":"wait","token":[1,1]})",
       "token 1[0] of rank 0, i = 0 is never waited for [tokens]"},
      {R"({"op":"for","i":"i","lo":0,"hi":2,"body":[{"op":"group","token":[1,"i"],"do":[]}]},{"op":"wait","token":[1,2]})",
       "token 1[2] is waited for on rank 0, but nothing has made it"},
      {R"({"op":"for","i":"i","lo":0,"hi":2,"body":[{"op":"group","token":[1,["*","i",0]],"do":[]}]})",
       "token 1[0] is made again on rank 0, i = 1 before it was waited for [tokens]"},
      {R"({"op":"mark","lane":["pool",0],"text":"a"})", "pool stream 0 on rank 0, but there are 0 [bounds]"},
      {R"({"op":"for","i":"i","lo":0,"hi":1000000000,"body":[]})",
       "this loop has 1000000000 turns, expected at most 4000000"},
      // loops whose turns do nothing
      {R"({"op":"for","i":"i","lo":0,"hi":3000,"body":[{"op":"for","i":"j","lo":0,"hi":3000000,"body":[]}]})",
       "with the 3000000 turns of this loop on rank 0, i = 5 all loops of all ranks have 18003000, expected "
       "at "
       "most 16000000 [bounds]"},
      {R"({"op":"free","t":"a"},{"op":"fill","dst":["a"],"value":0})",
       "'a' is used on rank 0 after it was freed"},
      {R"({"op":"fill","dst":["a"],"value":0},{"op":"alloc","t":"a"})",
       "'a' is used on rank 0 before it is made here [contents]"},
  };
  for (const auto& [body, expected] : cases) {
    const std::string found = findings(head + body + "]}", 2);
    EXPECT_NE(found.find(expected), std::string::npos) << body << "\n" << found;
  }
  const std::string alone = findings(head + R"({"op":"send","src":["a"],"peer":1}]})", 1);
  EXPECT_NE(alone.find("peer 1 on rank 0, but there is 1 rank [peers]"), std::string::npos) << alone;
  // It is made once, even inside a loop.
  EXPECT_EQ(findings(head + R"({"op":"for","i":"i","lo":0,"hi":2,"body":[{"op":"alloc","t":"a"},
      {"op":"fill","dst":["a"],"value":0}]}]})",
                     2),
            "");
}

}  // namespace
}  // namespace chorale::schedule
