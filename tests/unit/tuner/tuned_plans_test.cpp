#include "chorale/tuned_plans.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "chorale/executor.hpp"
#include "chorale/json.hpp"
#include "chorale/layout.hpp"
#include "chorale/needs.hpp"
#include "chorale/reduction_order.hpp"
#include "tests/unit/tiles/support.hpp"

namespace chorale {
namespace {

using namespace test;
using Found = TuneTable::Found;

const std::string shipped = CHORALE_SOURCE_DIR "/plans/shipped";

TEST(TunedPlans, TheSizeElseTheNextSmallerElseTheDefault) {
  const TunedFor machine{.ranks = 4, .backend = "cuda", .device = "NVIDIA H200"};
  TuneTable table;
  table.set(plan_key(machine, "allreduce", 1024, DType::bf16),
            {.plan = "allreduce_one_shot", .packet = "ll16"}, 1);
  table.set(plan_key(machine, "allreduce", 65536, DType::bf16), {.plan = "allreduce_ring"}, 1);
  table.set(plan_key(machine, "allreduce", 512, DType::bf16, true), {.plan = "allreduce_two_shot"}, 1);
  const TunedPlans plans(table, "plans", machine);
  const auto choice = [&](uint64_t bytes) { return plans.choose("allreduce", bytes, DType::bf16); };

  EXPECT_EQ(choice(1023).name, "allreduce_all_pairs") << "in place is another key; nothing is in this folder";
  EXPECT_EQ(choice(1023).found, Found::none);
  EXPECT_FALSE(choice(1023).packet.has_value());
  EXPECT_EQ(choice(1024).name, "allreduce_one_shot");
  EXPECT_EQ(choice(1024).file, "plans/allreduce_one_shot_4.json");
  EXPECT_EQ(choice(1024).packet, PacketForm::ll16);
  EXPECT_EQ(choice(65535).found, Found::smaller);
  EXPECT_EQ(choice(65535).bytes, 1024u);
  EXPECT_EQ(choice(1 << 30).name, "allreduce_ring");

  // Times of another machine do not count.
  for (const TunedFor& other :
       {TunedFor{8, "cuda", "NVIDIA H200"}, TunedFor{4, "cpu", ""}, TunedFor{4, "cuda", "NVIDIA H100"}}) {
    EXPECT_EQ(TunedPlans(table, "plans", other).choose("allreduce", 1024, DType::bf16).found, Found::none);
  }
}

TEST(TunedPlans, WhatIsTunedForAnotherTypeIsBetterThanTheDefault) {
  const TunedFor machine{.ranks = 4};
  TuneTable table;
  table.set(plan_key(machine, "allreduce", 1024, DType::f32), {.plan = "allreduce_ring"}, 1);
  table.set(plan_key(machine, "allreduce", 2048, DType::bf16), {.plan = "allreduce_one_shot"}, 1);
  table.set(plan_key(machine, "allreduce", 4096, DType::i64), {.plan = "allreduce_two_shot"}, 1);
  const TunedPlans plans(table, "plans", machine);
  const auto choice = [&](uint64_t bytes, DType dtype) { return plans.choose("allreduce", bytes, dtype); };
  EXPECT_EQ(choice(8192, DType::bf16).name, "allreduce_one_shot");
  EXPECT_EQ(choice(8192, DType::f16).name, "allreduce_one_shot") << "elements of the same size";
  EXPECT_EQ(choice(8192, DType::f16).dtype, DType::bf16);
  EXPECT_EQ(choice(8192, DType::f64).name, "allreduce_two_shot");
  EXPECT_EQ(choice(8192, DType::u8).name, "allreduce_ring") << "the first of those of other sizes";
  EXPECT_EQ(choice(1024, DType::f16).name, "allreduce_ring") << "the others begin above";
  EXPECT_EQ(choice(1024, DType::f16).found, Found::exact);
  EXPECT_EQ(choice(1023, DType::f16).found, Found::none);
}

TEST(TunedPlans, ATableIsNamedAfterTheDevice) {
  EXPECT_EQ(table_name({.backend = "cuda", .device = "NVIDIA H200"}), "NVIDIA_H200.json");
  EXPECT_EQ(table_name({.backend = "cpu"}), "cpu.json");
}

TEST(TunedPlans, InRankOrderOnlyPlansThatAddSo) {
  TunedFor machine{.ranks = 4};
  TuneTable table;
  table.set(plan_key(machine, "allreduce", 1024, DType::f32), {.plan = "allreduce_ring"}, 1);
  table.set(plan_key(machine, "allgather", 1024, DType::f32), {.plan = "allgather_ring"}, 1);
  machine.rank_order = true;
  table.set(plan_key(machine, "allreduce", 4096, DType::f32), {.plan = "allreduce_one_shot"}, 2);
  table.set(plan_key(machine, "allreduce", 65536, DType::f32), {.plan = "allreduce_ring"},
            2);  // a wrong time
  table.set(plan_key(machine, "allreduce", 1024, DType::f32, true), {.plan = "allreduce_ring"}, 2);
  TunedPlans plans(table, shipped, machine);
  const auto choice = [&](const std::string& collective, uint64_t bytes) {
    return plans.choose(collective, bytes, DType::f32);
  };
  EXPECT_EQ(choice("allreduce", 1024).name, "allreduce_staged");
  EXPECT_EQ(choice("allreduce", 1024).found, Found::none);
  EXPECT_EQ(choice("allreduce", 4096).name, "allreduce_one_shot");
  EXPECT_EQ(choice("reducescatter", 4096).name, "reducescatter_staged");
  EXPECT_EQ(choice("allgather", 4096).name, "allgather_ring") << "nothing is added up";
  for (const char* const collective : {"allreduce", "reducescatter", "allgather"})
    EXPECT_NO_THROW(plans.plan(choice(collective, 4096)));
  EXPECT_EQ(message_of_error<UsageError>([&] { plans.plan(choice("allreduce", 65536)); }),
            shipped +
                "/allreduce_ring_4.json does not add up in the order of the ranks, which this call requires: "
                "chorale check PLAN --certify FILE shows the order, and chorale tune makes a table of plans "
                "with that order");
  machine.rank_order = false;
  TunedPlans fastest(table, shipped, machine);
  EXPECT_EQ(fastest.choose("allreduce", 65536, DType::f32).name, "allreduce_ring");
  EXPECT_EQ(fastest.choose("allreduce", 65536, DType::f32).bytes, 1024u)
      << "that of rank order is another key";
}

TEST(TunedPlans, PlansThatAreNotThereSayHowToMakeThem) {
  TunedPlans plans({}, shipped, {.ranks = 5});
  const TunedPlans::Choice choice = plans.choose("allreduce", 64, DType::f32);
  EXPECT_EQ(message_of_error<UsageError>([&] { plans.plan(choice); }),
            "there is no allreduce_all_pairs of 5 ranks in " + shipped +
                ": chorale compile allreduce_all_pairs --set ranks=5 -o " + shipped +
                "/allreduce_all_pairs_5.json makes it");
}

TEST(TunedPlans, TablesOfOtherThingsAreRefused) {
  const auto said = [](const TuneConfig& config) {
    TuneTable table;
    table.set(plan_key({}, "broadcast", 64, DType::f32), config, 1);
    return message_of_error<UsageError>(
        [&] { TunedPlans(table, "plans", {}).choose("broadcast", 64, DType::f32); });
  };
  EXPECT_EQ(said({.blocks = 4}), "the table's entry for broadcast of 64 bytes names no plan");
  EXPECT_EQ(
      said({.plan = "broadcast_ring", .packet = "ll64"}),
      "the table has the packet form 'll64' for broadcast of 64 bytes, but the forms are ll8, ll16, ll128");
  EXPECT_EQ(
      message_of_error<UsageError>([] { TunedPlans({}, "plans", {}).choose("gather", 64, DType::f32); }),
      "there are no default plans for 'gather', only for allreduce, allgather, reducescatter, alltoall, "
      "broadcast and reduce: execute a plan that you choose");
}

TEST(TunedPlans, DefaultsAreShippedAndTakeOddSizes) {
  std::set<std::pair<std::string, bool>> looked_at;  // reading a plan takes long with the address sanitizer
  for (const char* const backend : {"cpu", "cuda"}) {
    for (const bool rank_order : {false, true}) {
      for (const int ranks : {2, 4, 8}) {
        TunedPlans plans({}, shipped, {.ranks = ranks, .backend = backend, .rank_order = rank_order});
        for (const char* const collective :
             {"allreduce", "allgather", "reducescatter", "alltoall", "broadcast", "reduce"}) {
          for (uint64_t bytes = 0; bytes <= uint64_t{1} << 32; bytes = bytes * 2 + 64) {
            const TunedPlans::Choice choice = plans.choose(collective, bytes, DType::f32);
            EXPECT_EQ(choice.found, Found::none);
            if (!looked_at.emplace(choice.file, rank_order).second) continue;
            const Plan& plan = plans.plan(choice);  // in the order of the ranks, if that is required
            EXPECT_EQ(plan.collective, collective) << choice.file;
            EXPECT_EQ(plan.ranks(), uint32_t(ranks)) << choice.file;
            EXPECT_NO_THROW(message_sizes(plan, uint64_t(ranks) * 7 * 4, DType::f32)) << choice.file;
            EXPECT_EQ(&plans.plan(choice), &plan) << "read once";
          }
        }
      }
    }
  }
}

TEST(TunedPlans, OnGpusTheDefaultDependsOnSizeAndRanks) {
  const auto chosen = [](int ranks, uint64_t bytes, const std::string& collective = "allreduce",
                         bool rank_order = false) {
    const TunedFor machine{
        .ranks = ranks, .backend = "cuda", .device = "NVIDIA H100", .rank_order = rank_order};
    return TunedPlans({}, shipped, machine).choose(collective, bytes, DType::bf16).name;
  };
  // A one-shot all-reduce sends the whole message to every peer.
  EXPECT_EQ(chosen(8, 64 << 10), "allreduce_one_shot_b16");
  EXPECT_EQ(chosen(8, (64 << 10) + 1), "allreduce_two_shot_b32");
  EXPECT_EQ(chosen(3, 224 << 10), "allreduce_all_pairs") << "nothing is shipped for three";
  EXPECT_EQ(chosen(8, 2 << 20), "allreduce_all_pairs_b16");
  // Two and four ranks have rules of their own, and the common ones for other collectives.
  EXPECT_EQ(chosen(2, 512 << 10), "allreduce_one_shot_b128");
  EXPECT_EQ(chosen(2, (512 << 10) + 1), "allreduce_two_shot_b32");
  EXPECT_EQ(chosen(2, 4 << 20), "allreduce_all_pairs_b128");
  EXPECT_EQ(chosen(2, 1 << 30), "allreduce_ring_b128");
  EXPECT_EQ(chosen(2, 8 << 20, "reducescatter"), "reducescatter_direct_b128");
  EXPECT_EQ(chosen(2, 1 << 30, "allgather"), "allgather_by_port");
  EXPECT_EQ(chosen(4, 1 << 20), "allreduce_two_shot_b128");
  EXPECT_EQ(chosen(4, 1 << 20, "allgather"), "allgather_packets_b16");
  EXPECT_EQ(chosen(8, 16 << 20), "allreduce_all_pairs_b64");
  EXPECT_EQ(chosen(8, 1 << 30), "allreduce_ring_b64");
  EXPECT_EQ(chosen(8, 1 << 30, "alltoall"), "alltoall_in_turns_b64");
  EXPECT_EQ(chosen(2, 32 << 10, "reduce"), "reduce_packets_b16");
  EXPECT_EQ(chosen(8, 1 << 20, "reduce"), "reduce_direct_b64");
  EXPECT_EQ(chosen(8, 1 << 30, "reduce", true), "reduce_staged_b64");
  EXPECT_EQ(chosen(8, 128 << 10, "allreduce", true), "allreduce_two_shot_ordered_b32");
  EXPECT_EQ(chosen(2, 8 << 20, "allreduce", true), "allreduce_ring_b128") << "two ranks have one order";
  EXPECT_EQ(chosen(8, 1 << 10, "allgather", true), "allgather_packets_b16") << "nothing is added up";

  // No plan is shipped for three ranks. The choice is a program that takes any number, or a plan that is
  // made.
  EXPECT_EQ(chosen(3, 1 << 30), "allreduce_all_pairs");
  const TunedFor three{.ranks = 3, .backend = "cuda"};
  const auto make = [](const std::string&, int) { return Plan(); };
  EXPECT_EQ(TunedPlans({}, shipped, three, make).choose("allreduce", 1 << 30, DType::bf16).name,
            "allreduce_ring_b64");
}

/// Returns "" if the tables of a folder name shipped plans, or the error.
std::string wrong_tables(const std::string& folder) {
  std::error_code none;
  for (const auto& file : std::filesystem::directory_iterator(folder, none)) {
    const std::string name = file.path().filename().string();
    try {
      TuneTable::load(file.path().string());
    } catch (const UsageError& error) {
      return error.what();
    }
    const auto json = nlohmann::json::parse(std::ifstream(file.path()));
    for (const auto& entry : json["entries"]) {
      if (entry["key"]["transport"] != "plan") continue;
      const std::string plan =
          entry["config"].value("plan", "") + "_" + entry["key"]["world"].dump() + ".json";
      if (!std::filesystem::exists(shipped + "/" + plan)) return name + ": there is no " + plan;
      const bool rank_order =
          entry["key"]["variant"].get<std::string>().find("rank order") != std::string::npos;
      if (rank_order && !in_rank_order(load(shipped + "/" + plan)))
        return name + ": " + plan + " is not in rank order";
    }
  }
  return "";
}

TEST(TunedPlans, TablesThatAreShippedNameShippedPlans) {
  EXPECT_EQ(wrong_tables(CHORALE_SOURCE_DIR "/plans/tuned"), "");  // it is also right if there are none
  const std::filesystem::path folder = testing::TempDir() + "chorale_tuned." + std::to_string(getpid());
  std::filesystem::create_directory(folder);
  TuneTable table;
  table.set(plan_key({.ranks = 2}, "allreduce", 64, DType::f32), {.plan = "allreduce_ring"}, 1);
  table.save(folder / "a.json");
  EXPECT_EQ(wrong_tables(folder), "");
  table.set(plan_key({.ranks = 4, .rank_order = true}, "allreduce", 64, DType::f32),
            {.plan = "allreduce_ring"}, 1);
  table.save(folder / "a.json");
  EXPECT_EQ(wrong_tables(folder), "a.json: allreduce_ring_4.json is not in rank order");
  table.set(plan_key({.ranks = 3}, "allreduce", 64, DType::f32), {.plan = "allreduce_ring"}, 1);
  table.save(folder / "a.json");
  EXPECT_EQ(wrong_tables(folder), "a.json: there is no allreduce_ring_3.json");
  std::filesystem::remove_all(folder);
}

TEST(TunedPlans, WhatTheFolderLacksIsMade) {
  const Plan ring = load(shipped + "/allreduce_ring_4.json");
  std::vector<std::string> made;
  const auto make = [&](const std::string& name, int ranks) {
    made.push_back(name + " for " + std::to_string(ranks));
    return ring;
  };
  TunedPlans plans(TuneTable(), "no/folder", {.ranks = 4}, make);
  const auto chosen = plans.choose("allreduce", 4096, DType::f32);
  EXPECT_EQ(plans.plan(chosen).name, "allreduce_ring");
  plans.plan(chosen);  // it is kept from now on
  EXPECT_EQ(made, std::vector<std::string>{"allreduce_all_pairs for 4"});
  // A plan file that exists is read.
  TunedPlans of_two(TuneTable(), shipped, {.ranks = 2}, make);
  EXPECT_EQ(of_two.plan(of_two.choose("allreduce", 4096, DType::f32)).name, "allreduce_all_pairs");
  // A plan that is made must have the order as well.
  TunedPlans ordered(TuneTable(), "no/folder", {.ranks = 4, .rank_order = true}, make);
  try {
    ordered.plan(ordered.choose("allreduce", 4096, DType::f32));
    ADD_FAILURE() << "a ring adds in another order";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("allreduce_staged_4.json does not add up in the order"),
              std::string::npos)
        << error.what();
  }
  // It must have the right number of ranks, too.
  TunedPlans of_seven(TuneTable(), "no/folder", {.ranks = 7}, make);
  EXPECT_EQ(
      message_of_error<UsageError>([&] { of_seven.plan(of_seven.choose("allreduce", 4096, DType::f32)); }),
      "no/folder/allreduce_all_pairs_7.json should be a plan of 7 ranks, but it is for 4: chorale tune "
      "makes a table, and chorale compile makes the plans");
}

/// A plan of another collective would run, and give a wrong result.
TEST(TunedPlans, PlansOfAnotherCollectiveAreRefused) {
  const TunedFor machine{.ranks = 2};
  TuneTable table;
  table.set(plan_key(machine, "alltoall", 64, DType::f32), {.plan = "alltoall_direct"}, 1);
  table.set(plan_key(machine, "allreduce", 64, DType::f32), {.plan = "alltoall_direct"}, 1);
  TunedPlans plans(table, shipped, machine);
  const auto refused = [&] {
    return message_of_error<UsageError>([&] { plans.plan(plans.choose("allreduce", 64, DType::f32)); });
  };
  const std::string why = "the table names alltoall_direct for allreduce, but the plan in " + shipped +
                          "/alltoall_direct_2.json is for alltoall: chorale tune makes a table, and "
                          "chorale compile makes the plans";
  EXPECT_EQ(refused(), why);
  EXPECT_EQ(plans.plan(plans.choose("alltoall", 64, DType::f32)).collective, "alltoall");
  EXPECT_EQ(refused(), why) << "also where it has been read";
}

TEST(TunedPlans, NamesThatLeadOutOfTheFolderAreRefused) {
  for (const std::string name : {"../elsewhere/allreduce_ring", "/etc/plan"}) {
    TuneTable table;
    table.set(plan_key({}, "allreduce", 64, DType::f32), {.plan = name}, 1);
    EXPECT_EQ(message_of_error<UsageError>(
                  [&] { TunedPlans(table, "plans", {}).choose("allreduce", 64, DType::f32); }),
              "the table names '" + name +
                  "' for allreduce of 64 bytes: it should be the name of a plan in plans, without '/'");
  }
}

/// A table with plans of several numbers of blocks at 1 MiB, of which allreduce_two_shot_b16 is slower than
/// one with fewer.
TuneTable table_by_blocks(const TunedFor& machine) {
  const std::vector<TimedPlan> timed = {{{.blocks = 64, .plan = "allreduce_ring_b64"}, 12},
                                        {{.blocks = 4, .plan = "allreduce_ring"}, 19},
                                        {{.blocks = 16, .plan = "allreduce_two_shot_b16"}, 21},
                                        {{.blocks = 24, .plan = "allreduce_all_pairs_b24"}, 13},
                                        {{.blocks = 4, .plan = "allreduce_two_shot", .packet = "ll8"}, 18},
                                        {{.blocks = 128, .plan = "allreduce_all_pairs_b128"}, 12.5}};
  TuneTable table;
  set_by_blocks(table, plan_key(machine, "allreduce", 1 << 20, DType::bf16), timed);
  return table;
}

TEST(TunedPlans, ALimitOfBlocksTakesTheFastestPlanWithin) {
  TunedFor machine{.ranks = 2, .backend = "cuda"};
  const TuneTable table = TuneTable::parse(table_by_blocks(machine).text());
  EXPECT_EQ(table.size(), 3u);
  const auto chosen = [&](uint32_t limit, uint64_t bytes = 1 << 20) {
    machine.max_blocks = limit;
    return TunedPlans(table, shipped, machine).choose("allreduce", bytes, DType::bf16);
  };
  EXPECT_EQ(chosen(0).name, "allreduce_ring_b64");
  EXPECT_EQ(chosen(0).words(), "allreduce_ring_b64, as tuned for 1048576 bytes of bf16");
  EXPECT_EQ(chosen(128).name, "allreduce_ring_b64");
  EXPECT_EQ(chosen(63).name, "allreduce_all_pairs_b24");
  EXPECT_EQ(chosen(24).name, "allreduce_all_pairs_b24");
  EXPECT_EQ(chosen(23).name, "allreduce_two_shot");
  EXPECT_EQ(chosen(23).packet, PacketForm::ll8);
  EXPECT_EQ(chosen(4, 3 << 20).words(),
            "allreduce_two_shot, ll8, as tuned for 1048576 bytes of bf16 within 4 blocks");
  EXPECT_EQ(chosen(3).words(), "allreduce_one_shot, the default within 3 blocks: nothing is tuned for it");

  machine.max_blocks = 24;
  const auto passed = TunedPlans(table, shipped, machine).explain("allreduce", 1 << 20, DType::bf16);
  const auto reason = [&](const std::string& plan) {
    const auto found =
        std::find_if(passed.begin(), passed.end(), [&](auto& one) { return one.plan == plan; });
    return found == passed.end() ? "" : found->reason;
  };
  EXPECT_EQ(reason("allreduce_ring_b64"), "64 blocks, the limit is 24");
  EXPECT_EQ(reason("allreduce_two_shot"), "the fastest with at most 4 blocks");
  EXPECT_EQ(reason("allreduce_all_pairs_b24"), "") << "it was chosen";
  EXPECT_EQ(reason("allreduce_two_shot_b32"), "32 blocks, the limit is 24");
}

TEST(TunedPlans, TablesWithoutBlocksAreReadForThem) {
  TunedFor machine{.ranks = 2, .backend = "cuda", .max_blocks = 24};
  TuneTable table;
  table.set(plan_key(machine, "allreduce", 1024, DType::f32), {.plan = "allreduce_one_shot_b4"}, 1);
  table.set(plan_key(machine, "allreduce", 1 << 20, DType::f32), {.plan = "allreduce_ring_b64"}, 1);
  const TunedPlans plans(table, shipped, machine);
  EXPECT_EQ(plans.choose("allreduce", 2048, DType::f32).name, "allreduce_one_shot_b4");
  // The entry for 1 KiB is not for such long messages.
  EXPECT_EQ(plans.choose("allreduce", 1 << 20, DType::f32).words(),
            "allreduce_two_shot_b16, the default within 24 blocks: nothing is tuned for it");
  machine.max_blocks = 64;
  EXPECT_EQ(TunedPlans(table, shipped, machine).choose("allreduce", 1 << 20, DType::f32).name,
            "allreduce_ring_b64");
  // A name that leads out of the folder is not read.
  table.set(plan_key(machine, "allreduce", 1 << 20, DType::f32), {.plan = "../allreduce"}, 1);
  EXPECT_THROW(TunedPlans(table, shipped, machine).choose("allreduce", 1 << 20, DType::f32), UsageError);
}

TEST(TunedPlans, TheSettingIsTheLimit) {
  setenv("CHORALE_MAX_BLOCKS", "16", 1);
  EXPECT_EQ(TunedPlans({}, "", {.ranks = 2}).max_blocks(), 16u);
  EXPECT_EQ(TunedPlans({}, "", {.ranks = 2, .max_blocks = 0}).max_blocks(), 0u);
  unsetenv("CHORALE_MAX_BLOCKS");
  EXPECT_EQ(TunedPlans({}, "", {.ranks = 2}).max_blocks(), 0u);
}

TEST(TunedPlans, PlansOfTheApplicationMayHaveMoreBlocks) {
  TunedPlans plans({}, shipped, {.ranks = 2, .backend = "cuda", .max_blocks = 8});
  plans.use(
      {.plan = std::make_shared<const Plan>(load(shipped + "/allreduce_ring_b64_2.json")), .name = "mine"});
  EXPECT_EQ(plans.choose("allreduce", 1 << 20, DType::f32).words(), "mine, as set for this size");
  EXPECT_EQ(plans.name_for_roots("broadcast"), "broadcast_direct_b4");
  EXPECT_EQ(plans.name_for_roots("reduce"), "reduce_direct_b8");
  plans.set_max_blocks(0);
  EXPECT_EQ(plans.name_for_roots("broadcast"), "broadcast_direct_b16");
}

TEST(TunedPlans, IfNoPlanFitsTheErrorNamesTheSmallest) {
  const auto said = [](const char* collective, uint32_t limit, bool rank_order) {
    const TunedPlans plans({}, shipped,
                           {.ranks = 4, .backend = "cuda", .rank_order = rank_order, .max_blocks = limit});
    return message_of_error<UsageError>([&] { plans.choose(collective, 1 << 20, DType::f32); });
  };
  EXPECT_EQ(said("broadcast", 2, false),
            "no plan for broadcast of 1048576 bytes has at most 2 thread blocks, which is the limit "
            "(max_blocks): broadcast_ring has the fewest, 4. Set the limit to 4 or more, or to 0 for none");
  EXPECT_NE(said("reducescatter", 3, true).find("reducescatter_staged has the fewest, 4"), std::string::npos);
  EXPECT_NE(said("gather", 3, false).find("no default plans for 'gather'"), std::string::npos);
}

TEST(TunedPlans, DefaultsWithinALimitDependOnTheRanks) {
  const auto chosen = [](int ranks, uint32_t limit, uint64_t bytes, const std::string& collective) {
    const TunedPlans plans({}, shipped, {.ranks = ranks, .backend = "cuda", .max_blocks = limit});
    return plans.choose(collective, bytes, DType::bf16).name;
  };
  EXPECT_EQ(chosen(2, 24, 2 << 20, "allreduce"), "allreduce_two_shot_b16");
  EXPECT_EQ(chosen(4, 24, 2 << 20, "allreduce"), "allreduce_all_pairs_b16");
  EXPECT_EQ(chosen(2, 24, 1 << 30, "allreduce"), "allreduce_ring_b24");
  EXPECT_EQ(chosen(2, 24, 16 << 20, "allgather"), "allgather_direct_b12");
  EXPECT_EQ(chosen(2, 24, 1 << 30, "alltoall"), "alltoall_by_port_b24");
  EXPECT_EQ(chosen(2, 8, 16 << 20, "alltoall"), "alltoall_by_port_b8");
  EXPECT_EQ(chosen(2, 16, 1 << 30, "reducescatter"), "reducescatter_staged_b16");
  EXPECT_EQ(chosen(2, 64, 1 << 30, "reducescatter"), "reducescatter_direct_b64");
  EXPECT_EQ(chosen(2, 32, 1 << 20, "broadcast"), "broadcast_direct_b16") << "as without a limit";
}

TEST(TunedPlans, DefaultsKeepToEveryLimit) {
  for (const char* const backend : {"cpu", "cuda"}) {
    for (const int ranks : {2, 4, 8}) {
      if (ranks > 2 && std::string(backend) == "cpu") continue;  // these differ only in their names
      TunedPlans plans({}, shipped, {.ranks = ranks, .backend = backend});  // reads each plan once
      for (const uint32_t limit : {1, 4, 8, 16, 24, 32, 64}) {
        plans.set_max_blocks(limit);
        for (const std::string collective :
             {"allreduce", "allgather", "reducescatter", "alltoall", "broadcast", "reduce"}) {
          if (limit == 1 && collective == "broadcast") continue;  // none is shipped
          uint32_t most = 0;
          for (uint64_t bytes = 64; bytes <= uint64_t{1} << 30; bytes *= 4) {
            const TunedPlans::Choice choice = plans.choose(collective, bytes, DType::f32);
            const uint32_t blocks = plans.plan(choice).thread_blocks();
            EXPECT_LE(blocks, limit) << choice.file;
            most = std::max(most, blocks);
          }
          // Long messages get about as many blocks as they may have.
          const bool by_size =
              std::string(backend) == "cuda" && collective != "broadcast" && collective != "reduce";
          EXPECT_TRUE(!by_size || 2 * most >= limit) << collective << ", " << ranks << " ranks: " << most;
        }
      }
    }
  }
}

TEST(TunedPlans, ATableTakesTheEntriesForLowerLimitsToo) {
  const TunedFor machine{.ranks = 2};
  TuneKey key = plan_key(machine, "allreduce", 64, DType::f32);
  const auto config = [](uint32_t blocks) { return TuneConfig{.blocks = blocks, .plan = "a"}; };
  TuneTable table, other;
  set_by_blocks(table, key, std::vector<TimedPlan>{{config(4), 9}, {config(16), 8}, {config(64), 7}});
  EXPECT_EQ(table.size(), 3u);
  key.max_blocks = 24;
  set_by_blocks(other, key, std::vector<TimedPlan>{{config(8), 6}});
  table.take(key, other);  // replaces those for 4 and 16 blocks
  EXPECT_EQ(table.size(), 2u);
  EXPECT_EQ(table.lookup(key).config.blocks, 8u);
  key.max_blocks = 0;
  EXPECT_EQ(table.lookup(key).config.blocks, 64u);
  table.take(key, other);  // replaces all
  EXPECT_EQ(table.size(), 1u);
}

TEST(TunedPlans, WhatIsChosenRuns) {
  TuneTable table;
  const TunedFor machine{.ranks = 2};
  table.set(plan_key(machine, "allreduce", 16, DType::i32), {.plan = "allreduce_one_shot", .packet = "ll8"},
            1);
  table.set(plan_key(machine, "allreduce", 4096, DType::i32), {.plan = "allreduce_ring"}, 1);
  run_local(2, [&](World& world) {
    Executor executor(world);
    TunedPlans plans(table, shipped, machine);
    for (const uint64_t n : {1, 4, 100, 1024, 5000}) {  // by the default, a packet plan, and a ring
      const auto in = message_of<int32_t>(uint64_t(world.rank()), n),
                 other = message_of<int32_t>(1 - uint64_t(world.rank()), n);
      std::vector<int32_t> out(n), expected(n);
      for (uint64_t at = 0; at < n; ++at) expected[at] = in[at] + other[at];
      const auto choice = plans.choose("allreduce", n * 4, DType::i32);
      executor.execute(
          plans.plan(choice),
          {.in = in.data(), .out = out.data(), .bytes = n * 4, .dtype = DType::i32, .packet = choice.packet});
      EXPECT_MESSAGE(out, expected);
    }
  });
}

}  // namespace
}  // namespace chorale
