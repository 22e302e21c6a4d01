// These tests check what transfers order, depending on their mover and their length.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "chorale/json.hpp"
#include "chorale/renderer.hpp"
#include "chorale/schedule/concrete.hpp"
#include "tests/unit/compiler/schedule/text.hpp"

namespace chorale::schedule {
namespace {

Schedule schedule(const std::string& text) {
  Schedule read = *chorale::read(plan_with(text)).extension.schedule;
  read.ranks = {2};
  return read;
}
std::string found(const std::string& text, Mover open = Mover::ce_put) {
  return render(Plan{}, check(schedule(text), {}, open));
}

/// Returns two exchanges of different lengths, on two streams, into the same memory.
std::string two_exchanges(const char* via, const char* between) {
  const auto group = [&](const char* stream, int token, const char* sent, const char* received) {
    return fmt::format(
        R"({{"op":"group","lane":"{0}","token":{1},"do":[{{"op":"send","src":{2},"peer":["-",1,"rank"],"via":"{4}"}},
          {{"op":"recv","dst":{3},"peer":["-",1,"rank"],"via":"{4}"}}]}},{{"op":"wait","lane":"{0}","token":{1}}},)",
        stream, token, sent, received, via);
  };
  return R"({"lanes":["x","y"],"tensors":[{"name":"a","dtype":"f32","shape":[3,4],"role":"in"},
    {"name":"b","dtype":"f32","shape":[3,2],"role":"in"},{"name":"q","dtype":"f32","shape":[3,4],"role":"out"}],
    "body":[{"op":"fork","lanes":["x","y"]},)" +
         group("x", 1, R"(["b"])", R"(["q",[1,0,2]])") + between + group("y", 2, R"(["a"])", R"(["q"])") +
         R"({"op":"join","lanes":["x","y"]}]})";
}

/// Their launches follow each other, but each copies out of a separate staging buffer after it.
TEST(HostOrder, GroupsByLaunchesOfDifferentStreamsAreNotInOrder) {
  for (const char* via : {"automatic", "plan", "ce_put"}) {
    const std::string text = found(two_exchanges(via, ""), Mover::automatic);
    EXPECT_NE(text.find("this overwrites q[0:3, 0:"), std::string::npos) << via << "\n" << text;
    EXPECT_NE(text.find("[races]"), std::string::npos) << via << "\n" << text;
    EXPECT_EQ(found(two_exchanges(via, R"({"op":"after","lane":"y","on":["x"]},)"), Mover::automatic), "")
        << via;
  }
}

/// Launches themselves are in order on all streams, also across a group by a launch.
TEST(HostOrder, LaunchesOfDifferentStreamsAreInOrder) {
  const auto launches = [](const std::string& between, const char* read) {
    return R"({"lanes":["x","y"],"tensors":[{"name":"a","dtype":"f32","shape":[4],"role":"in"},
      {"name":"t","dtype":"f32","shape":[4],"role":"temp"},{"name":"u","dtype":"f32","shape":[4],"role":"temp"},
      {"name":"q","dtype":"f32","shape":[4],"role":"out"}],"body":[{"op":"fork","lanes":["x","y"]},
      {"op":"launch","lane":"x","plan":"any","dst":["t"],"src":["a"]},)" +
           between + R"({"op":"launch","lane":"y","plan":"any","dst":["q"],"src":[")" + read +
           R"("]},{"op":"join","lanes":["x","y"]}]})";
  };
  const std::string group =
      R"({"op":"group","lane":"main","token":1,"do":[{"op":"send","src":["a"],"peer":["-",1,"rank"],"via":"plan"},
      {"op":"recv","dst":["u"],"peer":["-",1,"rank"],"via":"plan"}]},{"op":"wait","lane":"main","token":1},)";
  EXPECT_EQ(found(launches("", "t")), "");
  EXPECT_EQ(found(launches(group, "t")), "");
  const std::string text = found(launches(group, "u"));
  EXPECT_NE(text.find("[races]"), std::string::npos) << text;
}

/// A wait on another stream is for its group, and not for what has come on the stream after it, such as the
/// transfer of the next turn.
TEST(HostOrder, AWaitIsForItsGroupAlone) {
  const auto copied_behind = [](const char* via, const char* between) {
    return fmt::format(
        R"({{"lanes":["x","y"],"tensors":[{{"name":"a","dtype":"f32","shape":[4],"role":"in"}},
        {{"name":"g","dtype":"f32","shape":[4],"role":"temp"}},{{"name":"q","dtype":"f32","shape":[4],"role":"out"}}],
        "body":[{{"op":"fork","lanes":["x","y"]}},
        {{"op":"group","lane":"x","token":1,"do":[{{"op":"send","src":["a"],"peer":["-",1,"rank"],"via":"{0}"}},
          {{"op":"recv","dst":["g"],"peer":["-",1,"rank"],"via":"{0}"}}]}},
        {{"op":"copy","lane":"x","dst":["q"],"src":["a"]}},{1}{{"op":"wait","lane":"y","token":1}},
        {{"op":"copy","lane":"y","dst":["q"],"src":["g"]}},{{"op":"join","lanes":["x","y"]}}]}})",
        via, between);
  };
  for (const char* via : {"automatic", "ce_put", "ce_get", "plan"}) {
    const std::string text = found(copied_behind(via, ""), Mover::automatic);
    EXPECT_NE(text.find("this overwrites q[0:4] of rank 0 on rank 0, and nothing orders it with the copy on "
                        "rank 0 [races]"),
              std::string::npos)
        << via << "\n"
        << text;
    EXPECT_EQ(found(copied_behind(via, R"({"op":"after","lane":"y","on":["x"]},)"), Mover::automatic), "")
        << via;
  }
}

/// Rank 0 posts `ready` twice. Only the transfer in between tells it that rank 1 has taken the first one.
std::string post_again_behind_a_transfer(std::string_view via, uint64_t elements) {
  return fmt::format(
      R"({{"flags":[{{"name":"ready","kind":"binary"}}],"tensors":[{{"name":"x","dtype":"f32","shape":[{0}],"role":"in"}},
      {{"name":"y","dtype":"f32","shape":[{0}],"role":"temp"}}],"body":[{{"op":"if","p":["==","rank",0],
      "then":[{{"op":"post","flag":"ready","peer":1}},{{"op":"send","src":["x"],"peer":1,"via":"{1}"}},
        {{"op":"post","flag":"ready","peer":1}},{{"op":"take","flag":"ready","index":1,"peer":1}}],
      "else":[{{"op":"take","flag":"ready","peer":0}},{{"op":"recv","dst":["y"],"peer":0,"via":"{1}"}},
        {{"op":"take","flag":"ready","peer":0}},{{"op":"post","flag":"ready","index":1,"peer":0}}]}}]}})",
      elements, via);
}

/// Via `plan` the ends of an empty transfer do not wait for each other.
TEST(HostOrder, ATransferWithoutBytesOrdersNothing) {
  for (const char* via : {"automatic", "plan"}) {
    EXPECT_EQ(found(post_again_behind_a_transfer(via, 4), Mover::automatic), "") << via;
    const std::string text = found(post_again_behind_a_transfer(via, 0), Mover::automatic);
    EXPECT_NE(text.find("ready[0] is posted on rank 0 while it may still be set"), std::string::npos)
        << via << "\n"
        << text;
  }
  // Flags of copy engines are posted and taken whatever the length.
  for (const char* via : {"ce_put", "ce_get"})
    for (const uint64_t elements : {0, 4})
      EXPECT_EQ(found(post_again_behind_a_transfer(via, elements)), "") << via;
}

/// Rank 0 sends t to rank 1 on stream a, on which `behind` follows; rank 1 receives v on stream a.
std::string one_transfer(const std::string& rank_0, const std::string& rank_1) {
  return R"({"lanes":["a"],"flags":[{"name":"ready","kind":"binary"}],
    "tensors":[{"name":"x","dtype":"f32","shape":[4],"role":"in"},{"name":"t","dtype":"f32","shape":[4],"role":"temp"},
    {"name":"v","dtype":"f32","shape":[4],"role":"temp"},{"name":"w","dtype":"f32","shape":[4],"role":"temp"}],
    "body":[{"op":"copy","dst":["t"],"src":["x"]},{"op":"fork","lanes":["a"]},
    {"op":"if","p":["==","rank",0],"then":[{"op":"send","lane":"a","src":["t"],"peer":1},)" +
         rank_0 + R"(],"else":[{"op":"recv","lane":"a","dst":["v"],"peer":0},)" + rank_1 +
         R"(]},{"op":"join","lanes":["a"]}]})";
}

/// The receiver signals another stream of the sender, which overwrites the data that was sent.
TEST(HostOrder, WhatHasArrivedHasBeenRead) {
  const std::string told =
      one_transfer(R"({"op":"take","flag":"ready","peer":1},{"op":"fill","dst":["t"],"value":3},
                      {"op":"post","flag":"ready","index":1,"peer":1})",
                   R"({"op":"post","lane":"a","flag":"ready","peer":0},
                      {"op":"take","lane":"a","flag":"ready","index":1,"peer":0})");
  for (const Mover mover : {Mover::automatic, Mover::ce_put, Mover::ce_get, Mover::plan})
    EXPECT_EQ(render(Plan{}, check(schedule(told), {}, mover)), "") << mover_names[size_t(mover)];
  EXPECT_EQ(render(Plan{}, check_unbound(schedule(told))), "");
}

/// The sender signals another stream of the receiver, which reads the data that it expects.
TEST(HostOrder, WhatOneMoverDoesNotOrderIsFoundBeforeOneIsChosen) {
  const std::string told =
      one_transfer(R"({"op":"post","lane":"a","flag":"ready","peer":1},
                      {"op":"take","flag":"ready","index":1,"peer":1})",
                   R"({"op":"take","flag":"ready","peer":0},{"op":"copy","dst":["w"],"src":["v"]},
                      {"op":"post","flag":"ready","index":1,"peer":0})");
  EXPECT_EQ(found(told), "");
  EXPECT_EQ(render(Plan{}, check(schedule(told), {}, Mover::ce_get)), "");
  const std::string text = render(Plan{}, check_unbound(schedule(told)));
  EXPECT_NE(text.find("with plan as the mover of transfers that leave it open"), std::string::npos) << text;
  EXPECT_NE(text.find("[races]"), std::string::npos) << text;
}

}  // namespace
}  // namespace chorale::schedule
