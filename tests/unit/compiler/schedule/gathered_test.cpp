// These tests check all-gathers in the explicit form, which are recognised by their tensors.

#include <gtest/gtest.h>

#include "chorale/json.hpp"
#include "chorale/renderer.hpp"
#include "chorale/schedule/concrete.hpp"
#include "tests/unit/compiler/schedule/text.hpp"

namespace chorale::schedule {
namespace {

/// Returns exchanges with one turn per peer; `slot` is the place of the slice of rank i.
std::string gather(const std::string& slot, const std::string& tag = R"("lanes")",
                   const std::string& more = "") {
  return R"({"tensors":[{"name":"t0","dtype":"f32","shape":["ranks",3],"tags":["ranks",null],"role":"in"},
    {"name":"t1","dtype":"f32","shape":["ranks",3],"tags":[)" +
         tag + R"(,null],"role":"out","at":0}],"body":[{"op":"for","i":"i","lo":0,"hi":"ranks","body":[
    {"op":"if","p":["==","i","rank"],"then":[{"op":"copy","dst":["t1",[0,)" +
         slot + R"(]],"src":["t0",[0,0]],"at":1}],
      "else":[{"op":"group","token":1,"do":[{"op":"recv","dst":["t1",[0,)" +
         slot +
         R"(]],"peer":"i","at":2},{"op":"send","src":["t0"],"peer":"i","at":2}],"at":2},{"op":"wait","token":1}]}]})" +
         more + R"(],"source":["a.cpp:1","a.cpp:2","a.cpp:3"]})";
}

std::string found(const std::string& text, Mover mover = Mover::ce_put) {
  Schedule read = *chorale::read(plan_with(text)).extension.schedule;
  read.ranks = {1, 2, 3};
  return render(Plan{}, check(read, {}, mover));
}

TEST(HostGathered, EachSliceIsAtItsPlace) {
  for (const Mover mover : {Mover::automatic, Mover::ce_put, Mover::ce_get})
    EXPECT_EQ(found(gather(R"("i")"), mover), "");
}

/// The writing line is the put of another rank, or a receive.
TEST(HostGathered, ASliceAtAnotherPlaceIsFound) {
  const std::string next = R"(["%",["+","i",1],"ranks"])";
  const std::pair<Mover, const char*> cases[] = {{Mover::ce_put, "rank 1, i = 0"},
                                                 {Mover::ce_get, "rank 0, i = 1"},
                                                 {Mover::automatic, "rank 0, i = 1"}};
  for (const auto& [mover, writer] : cases) {
    EXPECT_EQ(
        found(gather(next), mover),
        std::string(
            "a.cpp:1: error: t1[0:1, 0:3] of rank 0 is not the all-gather that its tensors say: t0[0:1, 0:3] "
            "of rank 0 is missing from it [result]\n"
            "a.cpp:3: note: it was last written on ") +
            writer +
            "\na.cpp: note: with 2 ranks\n"
            "help: put the slice of each rank at its place, or say with the tensors' axes what it is\n"
            "1 error\n");
  }
}

/// Nothing says what these tensors should hold, so nothing is found.
TEST(HostGathered, OtherTensorsOrComputeAreNone) {
  const std::string next = R"(["%",["+","i",1],"ranks"])";
  const std::string fill = R"(,{"op":"fill","dst":["t1",[0,0]],"value":0})";
  EXPECT_EQ(found(gather(next, R"("lanes")", fill)), "");
  EXPECT_EQ(found(gather(next, "null")), "");
}

}  // namespace
}  // namespace chorale::schedule
