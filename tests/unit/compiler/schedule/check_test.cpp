// These tests check what the checks of host schedules find, and that right schedules pass.

#include <gtest/gtest.h>

#include "chorale/json.hpp"
#include "chorale/renderer.hpp"
#include "chorale/schedule/lint.hpp"
#include "tests/unit/compiler/schedule/text.hpp"

namespace chorale::schedule {
namespace {

std::string found(const std::string& text, std::vector<uint32_t> ranks) {
  Schedule read = *chorale::read(plan_with(text)).extension.schedule;
  read.ranks = std::move(ranks);
  return render(Plan{}, check(read, {{"n", 3}}));
}

/// Returns a schedule with x [4] in, y and z [4] out, and t [4] a temporary. Its streams are a and b.
std::string with(const std::string& body) {
  return R"({"lanes":["a","b"],"flags":[{"name":"ready","kind":"binary"},{"name":"turn","kind":"counter"}],
    "tensors":[{"name":"x","dtype":"f32","shape":[4],"role":"in"},{"name":"y","dtype":"f32","shape":[4],"role":"out"},
    {"name":"z","dtype":"f32","shape":[4],"role":"out"},{"name":"t","dtype":"f32","shape":[4],"role":"temp"}],
    "functions":[{"name":"mine","writes":1,"reads":1}],"body":[)" +
         body + "]}";
}

TEST(HostChecks, TheOriginalPasses) { EXPECT_EQ(found(allgather_p2p(), {1, 2, 3, 4, 8}), ""); }

/// The check would take many gigabytes.
TEST(HostChecks, TooManyRanksToBeChecked) {
  EXPECT_EQ(
      found(allgather_p2p(), {2, 334}),
      "plan: error: 445890 operations on 1002 streams of all ranks are too many to be checked [bounds]\n"
      "plan: note: with 334 ranks\nhelp: leave out that number of ranks\n1 error\n");
}

TEST(HostChecks, MistakesAreFound) {
  const std::string peer = R"(["-",1,"rank"])";
  const std::pair<std::string, std::string> cases[] = {
      // shapes
      {R"({"op":"copy","dst":["y"],"src":["x",[0,0,3]]})",
       "y[0:4], which is [4] does not have the shape of x[0:3], which is [3], on rank 0 [shapes]"},
      {R"({"op":"call","fn":"mtmul","writes":[["y"]],"reads":[["x"]]})",
       "'mtmul' on rank 0 is neither declared nor built in, did you mean 'matmul'? [shapes]"},
      {R"({"op":"call","fn":"mine","writes":[["y"]],"reads":[]})",
       "'mine' is called with 1 written and 0 read views, but is declared with 1 and 1, on rank 0 [shapes]"},
      {R"({"op":"call","fn":"matmul","writes":[["y"]],"reads":[["x"],["x"]]})",
       "matmul of x[0:4] (f32[4]) and x[0:4] (f32[4]) to y[0:4] (f32[4]): matrices have two axes or more, on "
       "rank 0 [shapes]"},
      {R"({"op":"call","fn":"add","writes":[["y"]],"reads":[["x"],["x"],["x"]]})",
       "add writes 1 and reads 2 views, but is given 1 and 3, on rank 0 [shapes]"},
      {R"({"op":"call","fn":"sum","writes":[["y"]],"reads":[["x"]],"attrs":{"axis":1}})",
       "sum over axis 1 of x[0:4] (f32[4]), which has 1 axis, on rank 0 [shapes]"},
      // collectives
      {R"({"op":"collective","token":1,"kind":"allreduce","dst":["y"],"src":["x"],"reduce":"max"},{"op":"wait","token":1})",
       "allreduce with max: addends can only be summed, on rank 0 [shapes]"},
      {R"({"op":"collective","token":1,"kind":"allgather","dst":["y"],"src":["x"]},{"op":"wait","token":1})",
       "allgather takes 16 bytes of x[0:4] to 16 bytes of y[0:4], on rank 0 [shapes]"},
      {R"({"op":"collective","token":1,"kind":"alltoall","dst":["y",[0,0,3]],"src":["x",[0,0,3]]},{"op":"wait","token":1})",
       "alltoall shares x[0:3] among 2 ranks along its outermost axis, whose extent they do not divide"},
      {R"({"op":"collective","token":1,"kind":"alltoall","dst":["y"],"src":["x"]})",
       "token 1 of rank 0 is never waited for [tokens]"},
      // an exchange that is not one group
      {R"({"op":"send","src":["x"],"peer":)" + peer + R"(},{"op":"recv","dst":["y"],"peer":)" + peer + "}",
       "the send to rank 1 on rank 0 never ends [deadlock]"},
      // take before post
      {R"({"op":"take","flag":"ready","peer":)" + peer + R"(},{"op":"post","flag":"ready","peer":)" + peer +
           "}",
       "the take of ready[0] on rank 0 never ends [deadlock]"},
      // one stream posts what the other takes: right with two queues, not with one
      {R"({"op":"fork","lanes":["a","b"]},{"op":"take","lane":"a","flag":"ready","peer":)" + peer +
           R"(},{"op":"post","lane":"b","flag":"ready","peer":)" + peer +
           R"(},{"op":"join","lanes":["a","b"]})",
       "never ends if all streams of a rank are one queue, which CUDA may make of them [one_queue]"},
      // a receive that begins ahead: with a plan as its mover it would block the queue
      {R"({"op":"fork","lanes":["a","b"]},
          {"op":"group","lane":"a","token":1,"do":[{"op":"recv","dst":["y"],"peer":)" +
           peer + R"(}]},{"op":"send","lane":"b","src":["x"],"peer":)" + peer +
           R"(},{"op":"wait","lane":"a","token":1},{"op":"join","lanes":["a","b"]})",
       "the receive from rank 1 on rank 0 never ends if all streams of a rank are one queue"},
      // a counter flag recorded in a graph
      {R"({"op":"post","flag":"turn","peer":)" + peer + R"(},{"op":"take","flag":"turn","peer":)" + peer +
           "}",
       "the counter turn[0] is compared with a value that a graph records once"},
      {R"({"op":"post","flag":"ready","peer":)" + peer + "}", "more often than it is taken"},
      {R"({"op":"post","flag":"ready","peer":)" + peer + R"(},{"op":"take","flag":"ready","peer":)" + peer +
           "}",
       "ready[0] is posted on rank 0 while it may still be set by the run before: one of the two posts is "
       "lost [replay]"},
      // a receive that a copy engine of the peer serves posts a credit, and the stream continues: no
      // rendezvous
      {R"({"op":"if","p":["==","rank",0],"then":[
            {"op":"post","flag":"ready","peer":1},
            {"op":"group","token":1,"do":[{"op":"recv","dst":["y"],"peer":1}]},
            {"op":"post","flag":"ready","peer":1},{"op":"wait","token":1},
            {"op":"take","flag":"ready","index":1,"peer":1}],
          "else":[{"op":"take","flag":"ready","peer":0},{"op":"group","token":1,"do":[{"op":"send","src":["x"],"peer":0}]},
            {"op":"take","flag":"ready","peer":0},{"op":"wait","token":1},
            {"op":"post","flag":"ready","index":1,"peer":0}]})",
       "ready[0] is posted on rank 0 while it may still be set: one of the two posts is lost [replay]"},
      // two streams take one flag
      {R"({"op":"fork","lanes":["a","b"]},{"op":"if","p":["==","rank",0],"then":[
            {"op":"post","flag":"ready","peer":1},{"op":"take","flag":"ready","index":1,"peer":1},
            {"op":"post","flag":"ready","peer":1},{"op":"take","flag":"ready","index":2,"peer":1}],
          "else":[{"op":"take","lane":"a","flag":"ready","peer":0},{"op":"post","lane":"a","flag":"ready","index":1,"peer":0},
            {"op":"take","lane":"b","flag":"ready","peer":0},{"op":"post","lane":"b","flag":"ready","index":2,"peer":0}]},
          {"op":"join","lanes":["a","b"]})",
       "ready[0] is taken on rank 1 while another take of it may still wait: chance decides which of the two "
       "gets a post [replay]"},
      // races
      {R"({"op":"copy","dst":["y"],"src":["x"]},{"op":"copy","dst":["y",[0,1,3]],"src":["y",[0,0,3]]})",
       "the copy on rank 0 writes y[1:4] and reads y[0:3], which overlap [races]"},
      {R"({"op":"launch","plan":"any","dst":["y",[0,1,3]],"src":["y",[0,0,3]]})",
       "the launch on rank 0 writes y[1:4] and reads y[0:3], which overlap [races]"},
      {R"({"op":"call","fn":"mine","writes":[["y",[0,0,2]]],"reads":[["y",[0,1,2]]]})",
       "the call of mine on rank 0 writes y[0:2] and reads y[1:3], which overlap [races]"},
      {R"({"op":"fork","lanes":["a","b"]},{"op":"fill","lane":"a","dst":["t"],"value":1},
          {"op":"copy","lane":"b","dst":["y"],"src":["t"]},{"op":"join","lanes":["a","b"]})",
       "this overwrites t[0:4] of rank 0 on rank 0, and nothing orders it with the copy on rank 0"},
      {R"({"op":"copy","lane":"a","dst":["y"],"src":["x"]},{"op":"join","lanes":["a"]})",
       "help: begin with a fork of stream a from main"},
      {R"({"op":"fork","lanes":["a"]},{"op":"copy","lane":"a","dst":["y"],"src":["x"]})",
       "help: end with a join of stream a into main"},
      // the stream continues without waiting for the group
      {R"({"op":"group","token":1,"do":[{"op":"send","src":["x"],"peer":)" + peer +
           R"(},{"op":"recv","dst":["y"],"peer":)" + peer +
           R"(}]},{"op":"copy","dst":["z"],"src":["y"]},{"op":"wait","token":1})",
       "of rank 1 on rank 0, and nothing orders it with the copy on rank 1"},
      // contents
      {R"({"op":"copy","dst":["y"],"src":["x"]},{"op":"copy","dst":["z",[0,1,2]],"src":["x",[0,0,2]]})",
       "nothing writes z[0:1] of output 'z' on rank 0 [contents]"},
      {R"({"op":"copy","dst":["t",[0,1,3]],"src":["x",[0,0,3]]},{"op":"copy","dst":["y"],"src":["t"]},{"op":"copy","dst":["z"],"src":["x"]})",
       "this reads t[0:4] of rank 0 on rank 0, but nothing has written t[0:1] before [contents]"},
  };
  for (const auto& [body, expected] : cases) {
    const std::string text = found(with(body), {2});
    EXPECT_NE(text.find(expected), std::string::npos) << body << "\n" << text;
  }
}

/// Returns a schedule with operands of products: batches of matrices, and tensors that look like them once
/// axes are merged. z is a temporary that is zero when the schedule is bound.
std::string of_matrices(const std::string& body) {
  return R"({"tensors":[{"name":"a","dtype":"f32","shape":[3,4,6],"role":"in"},
    {"name":"b","dtype":"f32","shape":[3,6,5],"role":"in"},{"name":"w","dtype":"f32","shape":[3,2,5],"role":"in"},
    {"name":"d","dtype":"f32","shape":[2,3,3,4,6],"role":"in"},{"name":"s","dtype":"f32","shape":[4,4],"role":"in"},
    {"name":"c","dtype":"f32","shape":[3,4,5],"role":"out"},{"name":"e","dtype":"f32","shape":[2,3,4,5],"role":"temp"},
    {"name":"t","dtype":"f32","shape":[4,4],"role":"temp"},{"name":"z","dtype":"f32","shape":[4],"role":"temp","zero":true}],
    "body":[{"op":"call","fn":"matmul","writes":[["c"]],"reads":[["a"],["b"]]})" +
         (body.empty() ? std::string() : "," + body) + "]}";
}

TEST(HostChecks, OperandsOfFunctions) {
  EXPECT_EQ(found(of_matrices(""), {1, 2}), "") << "a batch of products";
  const std::string copy = R"({"op":"copy","dst":["t"],"src":["s"]},)";
  const std::string zero_read = R"({"op":"copy","dst":["t",[0,0]],"src":["z"]})";
  const std::string z_overwritten = R"({"op":"copy","dst":["z"],"src":["s",[0,0]]})";
  const std::pair<std::string, std::string> cases[] = {
      {R"({"op":"call","fn":"matmul","writes":[["c"]],"reads":[["a"],["w"]]})",
       "matmul of a[0:3, 0:4, 0:6] (f32[3, 4, 6]) and w[0:3, 0:2, 0:5] (f32[3, 2, 5]) to c[0:3, 0:4, 0:5] "
       "(f32[3, 4, 5]): the extents do not fit"},
      {R"({"op":"call","fn":"matmul","writes":[["e"]],"reads":[["d",[1,0]],["b",[0,0]]]})",
       "batches of several axes are not regular"},
      {R"({"op":"call","fn":"add","writes":[["t",[0,0,1]]],"reads":[["s",[0,0]],["s",[0,0]]]})",
       "add of s[0:1, 0:4] (f32[4]) to t[0:1, 0:4] (f32[1, 4]): the extents differ"},
      // a result over its operands
      {copy + R"({"op":"call","fn":"matmul","writes":[["t"]],"reads":[["s"],["t"]]})",
       "the call of matmul on rank 0 writes t[0:4, 0:4] and reads t[0:4, 0:4], which overlap [races]"},
      {copy + R"({"op":"call","fn":"sum","writes":[["t",[0,3]]],"reads":[["t"]],"attrs":{"axis":1}})",
       "the call of sum on rank 0 writes t[3:4, 0:4] and reads t[0:4, 0:4], which overlap [races]"},
      {copy + R"({"op":"call","fn":"add","writes":[["t"]],"reads":[["t"],["s"]]})", ""},
      {copy + R"({"op":"call","fn":"add","writes":[["t",[0,0,2]]],"reads":[["t",[0,1,2]],["t",[0,0,2]]]})",
       "the call of add on rank 0 writes t[0:2, 0:4] and reads t[1:3, 0:4], which overlap [races]"},
      // zero in the first run only
      {zero_read, ""},
      {z_overwritten + "," + zero_read, ""},
      {zero_read + "," + z_overwritten,
       "this reads z[0:4] of rank 0 on rank 0, but z[0:4] is zero in the first run only [contents]"},
      {zero_read + "," + z_overwritten + R"(,{"op":"fill","dst":["z"],"value":0})", ""},
      {R"({"op":"call","fn":"add","writes":[["z"]],"reads":[["z"],["s",[0,0]]]})",
       "zero in the first run only [contents]"},
      {R"({"op":"copy","dst":["t",[0,0],[1,0,2]],"src":["z",[0,0,2]]},{"op":"fill","dst":["z",[0,2,2]],"value":1})",
       ""},
  };
  for (const auto& [body, expected] : cases) {
    const std::string text = found(of_matrices(body), {2});
    if (expected.empty()) {
      EXPECT_EQ(text, "") << body;
    } else {
      EXPECT_NE(text.find(expected), std::string::npos) << body << "\n" << text;
    }
  }
}

TEST(HostChecks, LaunchesMayBeInPlace) {
  const auto launch = [](const std::string& src) {
    return R"({"tensors":[{"name":"x","dtype":"f32","shape":[4],"role":"in"},{"name":"y","dtype":"f32","shape":["ranks",4],"role":"out"}],
      "body":[{"op":"copy","dst":["y",[0,"rank"]],"src":["x"]},{"op":"launch","plan":"any","dst":["y"],"src":)" +
           src + "}]}";
  };
  EXPECT_EQ(found(launch(R"(["y",[0,"rank"]])"), {2}), "");
  const std::string text = found(launch(R"(["y",[0,0]])"), {2});
  EXPECT_NE(text.find("the launch on rank 1 writes y[0:2, 0:4] and reads y[0:1, 0:4], which overlap"),
            std::string::npos)
      << text;
}

/// A turn exchanges a slice and then works on it.
std::string overlapped(bool both_in_one_body) {
  const std::string fork = R"({"op":"fork","lanes":[["pool",["%","i","lanes"]]]})";
  const std::string stream = R"("lane":["pool",["%","i","lanes"]])";
  return R"({"pool":2,"tensors":[{"name":"x","dtype":"f32","shape":[4],"role":"in"},{"name":"g","dtype":"f32","shape":[3,4],"role":"temp"},
    {"name":"y","dtype":"f32","shape":[3,4],"role":"out"}],"functions":[{"name":"mine","writes":1,"reads":1}],"body":[)" +
         (both_in_one_body ? "" : R"({"op":"for","i":"i","lo":0,"hi":3,"body":[)" + fork + "]},") +
         R"({"op":"for","i":"i","lo":0,"hi":3,"body":[)" + (both_in_one_body ? fork + "," : "") +
         R"({"op":"group",)" + stream +
         R"(,"token":1,"do":[{"op":"recv","dst":["g",[0,"i"]],"peer":["-",1,"rank"]},
            {"op":"send","src":["x"],"peer":["-",1,"rank"]}]},{"op":"wait",)" +
         stream + R"(,"token":1},
          {"op":"call",)" +
         stream + R"(,"fn":"mine","writes":[["y",[0,"i"]]],"reads":[["g",[0,"i"]]]},
          {"op":"join","lanes":[["pool",["%","i","lanes"]]]}]}]})";
}

TEST(HostChecks, ForkAndJoinInOneBodySerialise) {
  const auto warnings = [](const std::string& text) {
    Schedule read = *chorale::read(plan_with(text)).extension.schedule;
    read.ranks = {2};
    EXPECT_EQ(render(Plan{}, check(read)), "");
    return render_warnings(Plan{}, lint(read));
  };
  EXPECT_EQ(warnings(overlapped(false)), "");
  const std::string text = warnings(overlapped(true));
  EXPECT_NE(text.find("serialised: the transfer on rank 0, i = 1 waits for the mine on rank 0, i = 0"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("error"), std::string::npos) << text;
  // Sums of collectives do not count as compute, and an operation outside loops has no turn before it.
  const std::string of_tensors =
      R"({"lanes":["comm"],"tensors":[{"name":"x","dtype":"f32","shape":[3,4],"role":"in"},
      {"name":"y","dtype":"f32","shape":[3,4],"role":"out"},{"name":"t","dtype":"f32","shape":[3,4],"role":"temp"}],"body":[)";
  const std::string sums = R"({"op":"fork","lanes":["comm"]},{"op":"for","i":"i","lo":0,"hi":3,"body":[
      {"op":"collective","lane":"comm","token":1,"kind":"allreduce","dst":["y",[0,"i"]],"src":["x",[0,"i"]]},
      {"op":"wait","lane":"comm","token":1}]},{"op":"join","lanes":["comm"]}]})";
  EXPECT_EQ(warnings(of_tensors + sums), "");
  const std::string one_sum =
      R"({"op":"call","fn":"add","writes":[["t"]],"reads":[["x"],["x"]]},{"op":"fork","lanes":["comm"]},
      {"op":"collective","lane":"comm","token":1,"kind":"allreduce","dst":["y"],"src":["t"]},
      {"op":"wait","lane":"comm","token":1},{"op":"join","lanes":["comm"]},
      {"op":"call","fn":"add","writes":[["y"]],"reads":[["y"],["y"]]}]})";
  EXPECT_EQ(warnings(of_tensors + one_sum), "");
}

}  // namespace
}  // namespace chorale::schedule
