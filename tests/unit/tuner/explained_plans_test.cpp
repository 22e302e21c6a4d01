#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "chorale/json.hpp"
#include "chorale/tuned_plans.hpp"
#include "tests/unit/new_folder.hpp"
#include "tests/unit/tiles/support.hpp"

// These tests ask TunedPlans why it did not choose the other plans.
namespace chorale {
namespace {

using namespace test;

const std::string explained_from = CHORALE_SOURCE_DIR "/plans/shipped";

/// Returns the reason why a plan was not chosen; "" if it is not listed.
std::string why_not(const TunedPlans& plans, uint64_t bytes, const std::string& name,
                    DType dtype = DType::f32) {
  for (const TunedPlans::Passed& one : plans.explain("allreduce", bytes, dtype)) {
    if (one.plan == name) return one.reason;
  }
  return "";
}

std::shared_ptr<const Plan> ring_of(int ranks) {
  return std::make_shared<const Plan>(
      load(explained_from + "/allreduce_ring_" + std::to_string(ranks) + ".json"));
}

TEST(ExplainedPlans, ATableSaysWhatItsEntriesAreFor) {
  const TunedFor machine{.ranks = 4};
  TuneTable table;
  table.set(plan_key(machine, "allreduce", 1024, DType::f32), {.plan = "a"}, 1);
  table.set(plan_key(machine, "allreduce", 4096, DType::f32), {.plan = "b"}, 1);
  table.set(plan_key(machine, "allreduce", 65536, DType::f32), {.plan = "c"}, 1);
  table.set(plan_key(machine, "allreduce", 1024, DType::i32), {.plan = "d"}, 1);
  table.set_failure(plan_key(machine, "allreduce", 4096, DType::f32), {.plan = "e"}, "it hung");
  table.set_failure(plan_key(machine, "allgather", 4096, DType::f32), {.plan = "f"}, "it hung");
  const TunedPlans plans(table, "", machine);
  EXPECT_EQ(plans.choose("allreduce", 5000, DType::f32).name, "b");
  EXPECT_EQ(plans.choose("allreduce", 5000, DType::f32).words(), "b, as tuned for 4096 bytes of f32");
  EXPECT_EQ(why_not(plans, 5000, "a"), "tuned for 1024 bytes of f32, and the entry for 4096 bytes is nearer");
  EXPECT_EQ(why_not(plans, 5000, "b"), "") << "it was chosen";
  EXPECT_EQ(why_not(plans, 5000, "c"), "tuned for 65536 bytes of f32 and more");
  EXPECT_EQ(why_not(plans, 5000, "d"), "tuned for i32, and the table has entries of f32");
  EXPECT_EQ(why_not(plans, 5000, "e"), "failed when it was tuned for 4096 bytes of f32: it hung");
  EXPECT_EQ(why_not(plans, 5000, "f"), "") << "another collective";
  EXPECT_EQ(why_not(plans, 5000, "allreduce_all_pairs"), "a default, which an entry of the table replaces");
  EXPECT_EQ(why_not(plans, 5000, "allreduce_ring_b64"), "a default for GPUs");
  // Below the entries of the type, those of another type are asked, and then the defaults.
  EXPECT_EQ(plans.choose("allreduce", 64, DType::f32).name, "allreduce_all_pairs");
  EXPECT_EQ(why_not(plans, 64, "a"), "tuned for 1024 bytes of f32 and more");
  EXPECT_EQ(why_not(plans, 64, "d"), "tuned for 1024 bytes of i32 and more");
}

TEST(ExplainedPlans, DefaultsSayForWhichSizesTheyAre) {
  const TunedFor machine{.ranks = 8, .backend = "cuda", .device = "NVIDIA H100"};
  const TunedPlans plans({}, explained_from, machine);
  const auto chosen = plans.choose("allreduce", 16 << 10, DType::bf16);
  EXPECT_EQ(chosen.words(), "allreduce_one_shot_b16, the default: nothing is tuned for it");
  EXPECT_EQ(why_not(plans, 1 << 20, "allreduce_one_shot_b16"), "the default for at most 65536 bytes");
  EXPECT_EQ(why_not(plans, 16 << 10, "allreduce_two_shot_b32"), "the default for 65537 bytes and more");
  EXPECT_EQ(why_not(plans, 16 << 10, "allreduce_ring_b64"), "the default for 33554433 bytes and more");
  EXPECT_EQ(why_not(plans, 16 << 10, "allreduce_all_pairs"), "the default for 1048577 bytes and more");
  EXPECT_EQ(why_not(plans, 16 << 10, "allreduce_staged_b64"), "neither tuned nor a default");
  EXPECT_EQ(why_not(plans, 16 << 10, "allreduce_one_shot_b16"), "");
  // The limits are those by which plans are chosen.
  EXPECT_EQ(plans.choose("allreduce", 65536, DType::bf16).name, "allreduce_one_shot_b16");
  EXPECT_EQ(plans.choose("allreduce", 65537, DType::bf16).name, "allreduce_two_shot_b32");
  EXPECT_EQ(plans.choose("allreduce", 33554433, DType::bf16).name, "allreduce_ring_b64");
  // No file of three ranks is explained_from.
  const TunedPlans three({}, explained_from, {.ranks = 3, .backend = "cuda"});
  EXPECT_EQ(three.choose("allreduce", 1 << 30, DType::bf16).name, "allreduce_all_pairs");
  EXPECT_EQ(why_not(three, 1 << 30, "allreduce_ring_b64"), "the default, but its file is missing");
  const TunedPlans ordered({}, explained_from, {.ranks = 8, .backend = "cuda", .rank_order = true});
  EXPECT_EQ(why_not(ordered, 1 << 30, "allreduce_ring_b64"), "a default for sums in any order");
  EXPECT_THROW(plans.explain("gossip", 64, DType::f32), UsageError);
}

TEST(ExplainedPlans, PlansOfTheApplicationGoFirst) {
  const TunedFor machine{.ranks = 4};
  TuneTable table;
  table.set(plan_key(machine, "allreduce", 1024, DType::f32), {.plan = "tuned"}, 1);
  TunedPlans plans(table, "", machine);
  plans.use({.plan = ring_of(4), .name = "early.json", .least_bytes = 0, .most_bytes = 5000});
  plans.use({.plan = ring_of(4), .name = "late.json", .least_bytes = 4000, .packet = PacketForm::ll8});
  const auto chosen = [&](uint64_t bytes) { return plans.choose("allreduce", bytes, DType::f32); };
  EXPECT_EQ(chosen(3999).name, "early.json");
  EXPECT_EQ(chosen(4000).name, "late.json");
  EXPECT_EQ(chosen(4000).packet, PacketForm::ll8);
  EXPECT_EQ(chosen(4000).words(), "late.json, ll8, as set for this size");
  EXPECT_EQ(plans.plan(chosen(4000)).name, "allreduce_ring");
  EXPECT_EQ(why_not(plans, 4000, "early.json"),
            "set for this size, but replaced by a plan that was set later");
  EXPECT_EQ(why_not(plans, 3999, "late.json"), "set for 4000 bytes and more");
  EXPECT_EQ(why_not(plans, 5001, "early.json"), "set for at most 5000 bytes");
  EXPECT_EQ(why_not(plans, 4000, "tuned"), "a plan of your own goes before");
  EXPECT_EQ(plans.choose("allgather", 4000, DType::f32).name, "allgather_direct") << "another collective";

  EXPECT_EQ(message_of_error<UsageError>([&] { plans.use({.plan = ring_of(2), .name = "two.json"}); }),
            "two.json should be a plan of 4 ranks, but it is for 2: chorale tune makes a table, and chorale "
            "compile makes the plans");
  TunedPlans ordered({}, "", {.ranks = 4, .rank_order = true});
  EXPECT_NE(message_of_error<UsageError>([&] {
              ordered.use({.plan = ring_of(4), .name = "ring.json"});
            }).find("ring.json does not add up in the order of the ranks"),
            std::string::npos);
}

TEST(ExplainedPlans, WordsGroupThePlansByReason) {
  EXPECT_EQ(words_of({{"a", "too long"}, {"b", "missing"}, {"c", "too long"}}),
            "a, c (too long); b (missing)");
  EXPECT_EQ(words_of({}), "");
}

TEST(ExplainedPlans, AnInstallationHasItsTableAndItsPlans) {
  const std::string folder = new_folder("installed");
  const TunedFor machine{.ranks = 4};
  EXPECT_EQ(TunedPlans::installed(folder, machine).choose("allreduce", 64, DType::f32).name,
            "allreduce_all_pairs");
  TuneTable table;
  table.set(plan_key(machine, "allreduce", 64, DType::f32), {.plan = "allreduce_ring"}, 1);
  std::filesystem::create_directory(folder + "/tuned");
  table.save(folder + "/tuned/cpu.json");
  const TunedPlans::Choice choice =
      TunedPlans::installed(folder, machine).choose("allreduce", 64, DType::f32);
  EXPECT_EQ(choice.name, "allreduce_ring");
  EXPECT_EQ(choice.file, folder + "/shipped/allreduce_ring_4.json");
  EXPECT_EQ(TunedPlans::installed("", machine).choose("allreduce", 64, DType::f32).name,
            "allreduce_all_pairs");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace chorale
