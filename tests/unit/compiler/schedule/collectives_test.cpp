// These tests check that all ranks agree on the collectives of host schedules, and what these become.

#include <gtest/gtest.h>

#include <algorithm>

#include "chorale/json.hpp"
#include "chorale/renderer.hpp"
#include "chorale/schedule/collective.hpp"
#include "chorale/schedule/concrete.hpp"
#include "chorale/schedule/place.hpp"
#include "tests/unit/compiler/schedule/text.hpp"

namespace chorale::schedule {
namespace {

/// Returns a schedule with x and u [4, 4] in, y and z [4, 4] out, and s [4, 4] a temporary.
Schedule schedule_of(const std::string& body, const std::string& functions = "") {
  Schedule read = *chorale::read(plan_with(R"({"functions":[)" + functions + R"(],
    "tensors":[{"name":"x","dtype":"f32","shape":[4,4],"role":"in"},{"name":"u","dtype":"f32","shape":[4,4],"role":"in"},
    {"name":"i","dtype":"i32","shape":[4,4],"role":"in"},{"name":"j","dtype":"i32","shape":[4,4],"role":"temp"},
    {"name":"y","dtype":"f32","shape":[4,4],"role":"temp"},{"name":"z","dtype":"f32","shape":[4,4],"role":"temp"}],
    "body":[)" + body + "]}"))
                       .extension.schedule;
  read.ranks = {2};
  return read;
}

std::string collective(const std::string& kind, const std::string& dst, const std::string& src,
                       const std::string& more = "") {
  return R"({"op":"collective","token":1,"kind":")" + kind + R"(","dst":)" + dst + R"(,"src":)" + src + more +
         R"(},{"op":"wait","token":1})";
}
std::string by_rank(const std::string& first, const std::string& second) {
  return R"({"op":"if","p":["==","rank",0],"then":[)" + first + R"(],"else":[)" + second + "]}";
}

constexpr const char* x = R"(["x"])";
constexpr const char* y = R"(["y"])";
constexpr const char* u = R"(["u"])";
constexpr const char* z = R"(["z"])";

void refused(const std::string& body, const std::string& expected) {
  const std::string text = render(Plan{}, check(schedule_of(body)));
  EXPECT_NE(text.find(expected), std::string::npos) << body << "\n" << text;
}
void accepted(const std::string& body) { EXPECT_EQ(render(Plan{}, check(schedule_of(body))), "") << body; }

TEST(HostCollectives, RanksThatMeanDifferentThingsAreFound) {
  refused(
      by_rank(collective("broadcast", y, x), collective("reduce", y, x, R"(,"root":1)")),
      "collective 1 on rank 1 is reduce with root 1 with sum of 64 bytes of x[0:4, 0:4] (f32) to 64 bytes of "
      "y[0:4, 0:4], but that of rank 0 is broadcast with root 0 of 64 bytes of x[0:4, 0:4] (f32) to 64 bytes "
      "of y[0:4, 0:4] [matching]");
  refused(by_rank(collective("broadcast", y, x), collective("broadcast", y, x, R"(,"root":1)")),
          "is broadcast with root 1");
  refused(by_rank(collective("allreduce", y, x), collective("allreduce", R"(["j"])", R"(["i"])")),
          "of 64 bytes of i[0:4, 0:4] (i32)");
  refused(
      by_rank(collective("alltoall", y, x), collective("alltoall", R"(["y",[0,0,2]])", R"(["x",[0,0,2]])")),
      "collective 1 on rank 1 is alltoall of 32 bytes");
  refused(by_rank(collective("alltoall", R"(["y",[0,0,2]])", R"(["x",[0,0,2]])"),
                  collective("allgather", y, R"(["x",[0,0,2]])")),
          "collective 1 on rank 1 is allgather of 32 bytes");
  refused(by_rank(collective("allreduce", y, x) + "," + collective("allreduce", z, u),
                  collective("allreduce", z, u) + "," + collective("allreduce", y, x)),
          "collective 1 on rank 1 is allreduce with sum of 64 bytes of u[0:4, 0:4]");
  refused(by_rank(collective("allreduce", y, x) + "," + collective("allreduce", z, u),
                  collective("allreduce", y, x)),
          "rank 0 comes to this allreduce, but rank 0 makes 2 collectives and rank 1 1 [matching]");
}

TEST(HostCollectives, PeersReachTheResultsThatTheyWrite) {
  const std::pair<std::string_view, Space> results[] = {
      {"allgather", Space::window}, {"allreduce", Space::window}, {"reducescatter", Space::local},
      {"broadcast", Space::window}, {"reduce", Space::local},     {"alltoall", Space::window}};
  ASSERT_EQ(std::size(results), collective_names.size());
  for (const auto& [kind, space] : results) {
    Schedule schedule = schedule_of(collective(std::string(kind), y, x));
    place(schedule);
    for (const Tensor& tensor : schedule.tensors)
      EXPECT_EQ(tensor.space, tensor.name == "y" ? space : Space::local) << kind << ' ' << tensor.name;
  }
}

/// Both sides have the same size, but only one of them can be cut into a part for each rank.
TEST(HostCollectives, BothSidesOfAnAlltoallAreShared) {
  refused(collective("alltoall", R"(["y",[0,0,3]])", R"(["x",[1,0,3]])"),
          "alltoall shares y[0:3, 0:4] among 2 ranks along its outermost axis");
  refused(collective("alltoall", R"(["y",[1,0,3]])", R"(["x",[0,0,3]])"),
          "alltoall shares x[0:3, 0:4] among 2 ranks along its outermost axis");
}

TEST(HostCollectives, RanksMayUseDifferentTensors) {
  accepted(by_rank(collective("allreduce", y, x), collective("allreduce", z, u)));
  accepted(by_rank(collective("broadcast", y, x), collective("broadcast", y, u)));
  accepted(by_rank(collective("allreduce", y, x, R"(,"root":1)"), collective("allreduce", y, x)));
}

/// Source and destination begin at the same element, but have different shapes.
TEST(HostCollectives, SourceAndDestinationOfDifferentShapesAreFound) {
  refused(R"({"op":"fill","dst":["y"],"value":1},)" +
              collective("broadcast", R"(["y",[0,0,2],[1,0,2]])", R"(["y",[0,0,1],[1,0,4]])"),
          "y[0:2, 0:2], which is [2, 2] does not have the shape of y[0:1, 0:4], which is [1, 4]");
}

/// The sum of a collective is not the application's function of this name.
TEST(HostCollectives, SumWithTheBuiltInFunction) {
  const Schedule schedule =
      schedule_of(collective("allreduce", y, x), R"({"name":"sum","writes":3,"reads":0})");
  EXPECT_EQ(render(Plan{}, check(schedule)), "");
  Diagnostics findings;
  const Concrete made = concretise(schedule, {.ranks = 2}, findings);
  const auto call = std::find_if(made.steps[0].begin(), made.steps[0].end(),
                                 [](const Step& step) { return step.kind == StepKind::call; });
  ASSERT_NE(call, made.steps[0].end());
  EXPECT_EQ(function_of(schedule, *call), nullptr);
}

}  // namespace
}  // namespace chorale::schedule
