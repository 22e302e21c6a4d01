#include "chorale/own_plans.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "chorale/error.hpp"
#include "chorale/json.hpp"
#include "tests/unit/new_folder.hpp"
#include "tests/unit/tiles/support.hpp"

// These tests read files of plans that a user has made.
namespace chorale {
namespace {

using namespace test;

const std::string shipped_plans = CHORALE_SOURCE_DIR "/plans/shipped/";
constexpr const char* own_remedy = ". chorale compile makes plans, and docs/tuning.md describes the file";

class OwnPlansFile : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path(name)) << text; }
  void copy(const std::string& plan, const std::string& to) const {
    std::filesystem::copy_file(shipped_plans + plan, path(to),
                               std::filesystem::copy_options::overwrite_existing);
  }
  /// Reads a file with these entries.
  OwnPlans read(const std::string& entries, int ranks = 4, const MakePlan& make = {}) const {
    write("own.json", R"({"version": 1, "plans": [)" + entries + "]}");
    return read_own_plans(path("own.json"), ranks, make);
  }
  /// Returns the error of the first entry, without the name of the file.
  std::string error(const std::string& entries, int ranks = 4, const MakePlan& make = {}) const {
    return without_file(message_of_error<UsageError>([&] { read(entries, ranks, make); }));
  }
  std::string without_file(const std::string& message) const {
    const std::string begin = path("own.json") + ": ";
    EXPECT_EQ(message.substr(0, begin.size()), begin);
    return message.substr(begin.size());
  }

 private:
  const std::string folder_ = new_folder("own_plans");
};

TEST_F(OwnPlansFile, HasPlansBySize) {
  copy("allreduce_ring_4.json", "mine.json");
  const MakePlan make = [](const std::string& name, int ranks) {
    return load(shipped_plans + name + "_" + std::to_string(ranks) + ".json");
  };
  const OwnPlans own = read(
      R"({"collective": "allreduce", "from_bytes": 8, "to_bytes": 64, "plan": "mine.json", "packet": "ll8"},)"
      R"({"collective": "allreduce", "from_bytes": 65, "plan": "./mine.json"},)"
      R"({"collective": "allgather", "plan": "allgather_ring"})",
      4, make);
  ASSERT_EQ(own.plans.size(), 3u);
  EXPECT_EQ(own.plans[0].name, "mine.json");
  EXPECT_EQ(own.plans[0].plan->name, "allreduce_ring");
  EXPECT_EQ(own.plans[0].least_bytes, 8u);
  EXPECT_EQ(own.plans[0].most_bytes, 64u);
  EXPECT_EQ(own.plans[0].packet, PacketForm::ll8);
  EXPECT_EQ(own.plans[1].least_bytes, 65u);
  EXPECT_EQ(own.plans[1].most_bytes, UINT64_MAX);
  EXPECT_EQ(own.plans[1].packet, std::nullopt);
  EXPECT_EQ(own.plans[2].plan->collective, "allgather");
  EXPECT_TRUE(own.left_out.empty());
}

TEST_F(OwnPlansFile, LeavesOutPlansOfOtherNumbersOfRanks) {
  copy("allreduce_ring_8.json", "eight.json");
  const OwnPlans own = read(R"({"collective": "allreduce", "plan": "eight.json"})");
  EXPECT_TRUE(own.plans.empty());
  EXPECT_EQ(own.left_out, std::vector<std::string>{"/plans/0: eight.json is for 8 ranks and not for 4"});
}

TEST_F(OwnPlansFile, HasADigestOfWhatItChooses) {
  copy("allreduce_ring_4.json", "one.json");
  copy("allreduce_ring_4.json", "two.json");
  copy("allreduce_staged_4.json", "three.json");
  const auto digest = [&](const std::string& rest) {
    return read(R"({"collective": "allreduce", )" + rest + "}").digest();
  };
  const std::string first = digest(R"("plan": "one.json")");
  EXPECT_EQ(first.substr(0, first.find(": plan ")), "allreduce of 0 to 18446744073709551615 bytes");
  EXPECT_EQ(digest(R"("plan": "two.json")"), first) << "the name does not matter";
  EXPECT_NE(digest(R"("plan": "three.json")"), first);
  EXPECT_NE(digest(R"("plan": "one.json", "to_bytes": 64)"), first);
  EXPECT_NE(digest(R"("plan": "one.json", "from_bytes": 64)"), first);
  EXPECT_NE(digest(R"("plan": "one.json", "packet": "ll8")"), first);
}

TEST_F(OwnPlansFile, IsRefusedWithTheEntryAndTheReason) {
  copy("allreduce_ring_4.json", "mine.json");
  copy("allgather_ring_4.json", "gather.json");
  EXPECT_EQ(message_of_error<UsageError>([&] { read_own_plans("no/such.json", 4, {}); }),
            "cannot read no/such.json: No such file or directory");
  EXPECT_EQ(error("{"), std::string("this is not JSON") + own_remedy);
  write("own.json", R"({"version": 2, "plans": []})");
  EXPECT_EQ(without_file(message_of_error<UsageError>([&] { read_own_plans(path("own.json"), 4, {}); })),
            "the file: 'version' is 2, but only 1 is supported");
  EXPECT_EQ(error(R"({"plan": "mine.json"})"), "/plans/0: 'collective' is missing");
  EXPECT_EQ(error(R"({"collective": "allreduce"})"), "/plans/0: 'plan' is missing");
  EXPECT_EQ(error(R"({"collective": "allreduce", "plan": "mine.json", "bytes": 1})"),
            "/plans/0: 'bytes' is unknown");
  EXPECT_EQ(error(R"({"collective": "allreduce", "plan": "mine.json", "to_bytes": "1K"})"),
            "/plans/0: 'to_bytes' is \"1K\"");
  EXPECT_EQ(error(R"({"collective": "all_reduce", "plan": "mine.json"})")
                .find("/plans/0: 'collective' is 'all_reduce', but must be one of allreduce, "),
            0u);
  EXPECT_EQ(error(R"({"collective": "allreduce", "plan": "mine.json", "from_bytes": 2, "to_bytes": 1})"),
            "/plans/0: 'from_bytes' is 2, which is more than the 1 of 'to_bytes'");
  EXPECT_EQ(error(R"({"collective": "allreduce", "plan": "mine.json", "packet": "ll"})"),
            "/plans/0: 'packet' is 'll', but must be one of ll8, ll16, ll128");
  EXPECT_EQ(error(R"({"collective": "allreduce", "plan": "none.json"})"),
            "/plans/0: cannot read " + path("none.json") + ": No such file or directory" + own_remedy);
  write("wrong.json", "{}");
  EXPECT_EQ(
      error(R"({"collective": "allreduce", "plan": "wrong.json"})").find("/plans/0: " + path("wrong.json")),
      0u);
  EXPECT_EQ(error(R"({"collective": "allreduce", "plan": "ring"})"),
            std::string("/plans/0: 'ring' is not the path of a plan file") + own_remedy);
  EXPECT_EQ(
      error(R"({"collective": "allreduce", "plan": "mine.json"},)"
            R"({"collective": "allreduce", "plan": "gather.json"})"),
      std::string("/plans/1: gather.json: it is a plan for allgather and not for allreduce") + own_remedy);
}

TEST_F(OwnPlansFile, IsRefusedIfAPlanIsWrongForItsEntry) {
  Plan plan = load(shipped_plans + "allreduce_ring_4.json");
  plan.extension.verified.clear();
  plan.min_message_size = 64;
  write("least.json", chorale::write(plan));
  EXPECT_EQ(read(R"({"collective": "allreduce", "plan": "least.json"})").plans.at(0).least_bytes, 64u);
  EXPECT_EQ(error(R"({"collective": "allreduce", "plan": "least.json", "from_bytes": 63, "to_bytes": 99})"),
            std::string("/plans/0: least.json: it accepts messages of 64 to 18446744073709551615 bytes, but "
                        "the entry is for 63 to 99") +
                own_remedy);
  // A wait that nothing answers is found by the proofs.
  std::vector<Op>& ops = plan.gpus[0].threadblocks[0].ops;
  const auto signal =
      std::find_if(ops.begin(), ops.end(), [](const Op& op) { return op.code == Opcode::signal; });
  ASSERT_NE(signal, ops.end());
  ops.erase(signal);
  write("wrong.json", chorale::write(plan));
  const std::string found = error(R"({"collective": "allreduce", "plan": "wrong.json"})");
  EXPECT_EQ(found.find("/plans/0: wrong.json: it has findings: "), 0u) << found;
  EXPECT_EQ(found.find("\n."), std::string::npos) << found;
  // A certificate of another plan counts for nothing.
  plan.extension.verified = load(shipped_plans + "allreduce_ring_4.json").extension.verified;
  write("wrong.json", chorale::write(plan));
  EXPECT_EQ(
      error(R"({"collective": "allreduce", "plan": "wrong.json"})").find("/plans/0: wrong.json: it has "),
      0u);
  Plan rooted = load(shipped_plans + "broadcast_direct_4.json");
  rooted.extension.root = 1;
  write("rooted.json", chorale::write(rooted));
  EXPECT_EQ(error(R"({"collective": "broadcast", "plan": "rooted.json"})").find("/plans/0: rooted.json: it"),
            0u);
}

}  // namespace
}  // namespace chorale
