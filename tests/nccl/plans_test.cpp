#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "tests/nccl/ranks.hpp"
#include "tests/unit/new_folder.hpp"

// These tests choose plans of libnccl.so.2, and read its log.
namespace {

using namespace nccl_tests;

const std::string shipped = CHORALE_SOURCE_DIR "/plans/shipped/";

Elements input(int rank) {
  return Elements(ncclInt32, 64, [rank](size_t at) { return number(rank, at); });
}

/// Sets a variable of the environment as long as this object lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

class NcclPlans : public testing::Test {
 protected:
  ~NcclPlans() override {
    for (const char* const name : {"NCCL_DEBUG", "NCCL_DEBUG_FILE", "NCCL_DEBUG_SUBSYS"}) unsetenv(name);
    ncclResetDebugInit();
    std::filesystem::remove_all(folder_);
  }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  /// Writes a file of plans and returns its path.
  std::string plans(const std::string& name, const std::string& entries) const {
    std::ofstream(path(name)) << R"({"version": 1, "plans": [)" << entries << "]}";
    return path(name);
  }

  /// Starts a log with what NCCL_DEBUG=INFO prints.
  void start_log(const char* subsystems = nullptr) const {
    setenv("NCCL_DEBUG", "INFO", 1);
    setenv("NCCL_DEBUG_FILE", path("log").c_str(), 1);
    subsystems ? setenv("NCCL_DEBUG_SUBSYS", subsystems, 1) : unsetenv("NCCL_DEBUG_SUBSYS");
    ncclResetDebugInit();
  }

  /// Returns the lines of the log that match, without what stands before "INFO".
  std::vector<std::string> lines(const std::string& pattern) const {
    std::ifstream file(path("log"));
    std::vector<std::string> found;
    for (std::string line; std::getline(file, line);) {
      const size_t begin = line.find("NCCL INFO ");
      if (begin == std::string::npos) continue;
      const std::string text = line.substr(begin + std::string("NCCL INFO ").size());
      if (std::regex_search(text, std::regex(pattern))) found.push_back(text);
    }
    return found;
  }

 private:
  const std::string folder_ = chorale::test::new_folder("nccl_plans");
};

/// Runs an all-reduce and checks its result.
void reduce(ncclComm_t comm, int ranks, int rank, size_t count, bool in_place = false) {
  Elements in(ncclFloat, count, [&](size_t at) { return number(rank, at); }), out(ncclFloat, count);
  const Elements expected(ncclFloat, count, [&](size_t at) {
    double sum = 0;
    for (int one = 0; one < ranks; ++one) sum += number(one, at);
    return sum;
  });
  Elements& to = in_place ? in : out;
  EXPECT_EQ(ncclAllReduce(in.data(), to.data(), count, ncclFloat, ncclSum, comm, nullptr), ncclSuccess)
      << sentence();
  EXPECT_TRUE(to == expected);
}

TEST_F(NcclPlans, AreLoggedOnceForEachKindOfCallWithTheReasons) {
  start_log();
  in_threads(2, [](ncclComm_t comm, int rank) {
    for (const size_t count : {256, 300, 511}) reduce(comm, 2, rank, count);
    reduce(comm, 2, rank, 256, true);
    reduce(comm, 2, rank, 512);
    Elements in = input(rank), out(ncclInt32, 128);
    EXPECT_EQ(ncclAllGather(in.data(), out.data(), 64, ncclInt32, comm, nullptr), ncclSuccess) << sentence();
    EXPECT_EQ(ncclBroadcast(in.data(), in.data(), 64, ncclInt32, 1, comm, nullptr), ncclSuccess)
        << sentence();
  });
  const std::vector<std::string> all = lines(" -> ");
  ASSERT_EQ(all.size(), 5u) << testing::PrintToString(all);
  const std::string rest = " -> plan allreduce_all_pairs, the default: nothing is tuned for it";
  EXPECT_EQ(all[0], "AllReduce: 1024 Bytes of f32" + rest);
  EXPECT_EQ(all[1].find("AllReduce: 1024 Bytes of f32 in place -> plan allreduce_all_pairs, the default"),
            0u);
  EXPECT_EQ(all[2], "AllReduce: 2048 Bytes of f32" + rest);
  EXPECT_EQ(all[3], "AllGather: 512 Bytes -> plan allgather_direct, the default: nothing is tuned for it");
  EXPECT_EQ(all[4], "Broadcast: 256 Bytes in place -> plan broadcast_direct, made for root 1");
  const std::vector<std::string> others = lines(", not taken: ");
  ASSERT_GE(others.size(), 8u) << testing::PrintToString(others);
  const std::string head = "AllReduce: 1024 Bytes of f32, not taken: ";
  EXPECT_EQ(others[0],
            head + "allreduce_one_shot_b4, allreduce_one_shot, allreduce_one_shot_b128 (a default for GPUs)");
  EXPECT_EQ(
      others[1],
      head + "allreduce_two_shot_b32, allreduce_two_shot, allreduce_all_pairs_b128 (a default for GPUs)");
  EXPECT_EQ(others[2],
            head + "allreduce_ring_b128, allreduce_ring, allreduce_one_shot_b16 (a default for GPUs)");
  EXPECT_EQ(
      others[3],
      head + "allreduce_all_pairs_b16, allreduce_all_pairs_b64, allreduce_ring_b64 (a default for GPUs)");
  EXPECT_EQ(others.back().find("Broadcast: 256 Bytes in place, not taken: broadcast_direct_b16"), 0u)
      << others.back();
}

void gather(ncclComm_t comm, int rank) {
  Elements in = input(rank), out(ncclInt32, 128);
  EXPECT_EQ(ncclAllGather(in.data(), out.data(), 64, ncclInt32, comm, nullptr), ncclSuccess) << sentence();
}

TEST_F(NcclPlans, HaveAtMostAsManyBlocksAsNcclMayTake) {
  start_log();
  const std::string begin = "AllGather: 512 Bytes -> plan ";
  const std::string end = ": nothing is tuned for it";
  {
    const Variable most("NCCL_MAX_CTAS", "4");
    in_threads(2, gather);
    EXPECT_EQ(lines(" -> ").back(), begin + "allgather_packets_b4, the default within 4 blocks" + end);
    EXPECT_EQ(lines("allgather_direct \\(8 blocks, the limit is 4\\)").size(), 1u);
    // The lowest limit holds.
    const Variable channels("NCCL_MAX_NCHANNELS", "1"), setting("CHORALE_MAX_BLOCKS", "8");
    in_threads(2, gather);
    EXPECT_EQ(lines(" -> ").back(), begin + "allgather_packets, the default within 1 block" + end);
  }
  const Variable none("NCCL_MAX_CTAS", "0");
  in_threads(2, gather);
  EXPECT_EQ(lines(" -> ").back(), begin + "allgather_direct, the default" + end) << "NCCL ignores 0 too";
}

TEST_F(NcclPlans, HaveAtMostAsManyBlocksAsAConfigurationSays) {
  start_log();
  std::vector<std::string> chosen(3);
  in_threads(2, [&](ncclComm_t comm, int rank) {
    ncclConfig_t config = config_initializer;
    ncclComm_t few{}, child{}, more{};
    config.maxCTAs = rank == 0 ? 4 : 1;  // the lowest limit of all ranks holds
    EXPECT_EQ(ncclCommSplit(comm, 0, rank, &few, &config), ncclSuccess) << sentence();
    gather(few, rank);
    if (rank == 0) chosen[0] = lines(" -> ").back();
    EXPECT_EQ(ncclCommSplit(few, 0, rank, &child, nullptr), ncclSuccess) << sentence();
    gather(child, rank);
    if (rank == 0) chosen[1] = lines(" -> ").back();
    config.maxCTAs = 8;
    config.minCTAs = 8;
    EXPECT_EQ(ncclCommSplit(few, 0, rank, &more, &config), ncclSuccess) << sentence();
    gather(more, rank);
    if (rank == 0) chosen[2] = lines(" -> ").back();
    for (const ncclComm_t one : {few, child, more}) EXPECT_EQ(ncclCommDestroy(one), ncclSuccess);
    config.minCTAs = 9;
    EXPECT_EQ(ncclCommSplit(comm, 0, rank, &few, &config), ncclInvalidArgument);
    EXPECT_EQ(sentence(), "ncclCommSplit: config.minCTAs is 9, but maxCTAs is only 8");
    config.maxCTAs = 0;
    EXPECT_EQ(ncclCommSplit(comm, 0, rank, &few, &config), ncclInvalidArgument);
    EXPECT_EQ(sentence(), "ncclCommSplit: config.maxCTAs is 0, but must be at least 1");
  });
  const std::string begin = "AllGather: 512 Bytes -> plan ";
  EXPECT_EQ(chosen[0].find(begin + "allgather_packets, the default within 1 block"), 0u) << chosen[0];
  EXPECT_EQ(chosen[1].find(begin + "allgather_packets, the default within 1 block"), 0u) << chosen[1];
  EXPECT_EQ(chosen[2].find(begin + "allgather_direct, the default within 8 blocks"), 0u) << chosen[2];
}

TEST_F(NcclPlans, AreLoggedAsTheCallRuns) {
  start_log();
  const Variable copies("CHORALE_NCCL_COPIES", "always");
  in_threads(2, [](ncclComm_t comm, int rank) {
    reduce(comm, 2, rank, 20000);
    Elements in = input(rank), out(ncclInt32, 128);
    EXPECT_EQ(ncclAllGather(in.data(), out.data(), 64, ncclInt32, comm, nullptr), ncclSuccess) << sentence();
  });
  const std::vector<std::string> all = lines(" -> ");
  ASSERT_EQ(all.size(), 2u) << testing::PrintToString(all);
  EXPECT_EQ(all[0].find("AllReduce: 80000 Bytes of f32 -> plan reducescatter_staged_b64 and messages"), 0u)
      << all[0];
  EXPECT_EQ(all[1], "AllGather: 512 Bytes -> messages");
  const std::string copied = " .CHORALE_NCCL_COPIES is 'always'";
  EXPECT_EQ(lines("AllReduce: 80000 Bytes of f32, not taken: allreduce_all_pairs" + copied).size(), 1u);
  EXPECT_EQ(lines("AllGather: 512 Bytes, not taken: allgather_direct" + copied).size(), 1u);
  const Variable limit("CHORALE_MAX_BLOCKS", "24");
  in_threads(2, [](ncclComm_t comm, int rank) { reduce(comm, 2, rank, 20000); });
  EXPECT_EQ(lines(" -> ").back().find("AllReduce: 80000 Bytes of f32 -> plan reducescatter_staged_b24 and"),
            0u)
      << lines(" -> ").back();
}

// A broadcast to several peers is a plan whose peers access the outputs, unless they must not.
TEST_F(NcclPlans, AccessNoBuffersIfAllAreCopied) {
  constexpr int count = 100000;
  const auto broadcast = [](ncclComm_t comm, int rank) {
    Elements buffer(ncclInt32, count, [rank](size_t at) { return double(rank == 0 ? at : 0); });
    EXPECT_EQ(ncclBroadcast(buffer.data(), buffer.data(), count, ncclInt32, 0, comm, nullptr), ncclSuccess)
        << sentence();
    EXPECT_TRUE(buffer == Elements(ncclInt32, count, [](size_t at) { return double(at); }));
  };
  start_log();
  in_threads(3, broadcast);
  const Variable copies("CHORALE_NCCL_COPIES", "always");
  in_threads(3, broadcast);
  const std::vector<std::string> all = lines(" -> ");
  ASSERT_EQ(all.size(), 2u) << testing::PrintToString(all);
  EXPECT_EQ(all[0].find("Broadcast: 400000 Bytes in place -> plan broadcast_direct, "), 0u) << all[0];
  EXPECT_EQ(all[1], "Broadcast: 400000 Bytes in place -> messages");
  EXPECT_EQ(lines("Broadcast: 400000 Bytes in place, not taken: broadcast_direct .CHORALE_NCCL").size(), 1u);
}

// A plan of the user has root 0. For other roots a default plan is made.
TEST_F(NcclPlans, OfAReduceAreMadeForItsRoot) {
  const auto both = [](ncclComm_t comm, int rank) {
    for (const int root : {0, 1}) {
      Elements in = input(rank), out(ncclInt32, 64);
      void* const to = rank == root ? out.data() : nullptr;
      EXPECT_EQ(ncclReduce(in.data(), to, 64, ncclInt32, ncclSum, root, comm, nullptr), ncclSuccess)
          << sentence();
    }
  };
  start_log();
  in_threads(2, both);
  const std::string file =
      plans("own.json", R"({"collective": "reduce", "plan": "reduce_packets", "packet": "ll8"})");
  const Variable own("CHORALE_NCCL_PLANS", file);
  in_threads(2, both);
  const std::vector<std::string> all = lines(" -> ");
  ASSERT_EQ(all.size(), 4u) << testing::PrintToString(all);
  const std::string call = "Reduce: 256 Bytes of i32 -> plan ";
  EXPECT_EQ(all[0], call + "reduce_direct, the default: nothing is tuned for it");
  EXPECT_EQ(all[1], call + "reduce_direct, made for root 1");
  EXPECT_EQ(all[2], call + "reduce_packets, ll8, as set for this size");
  EXPECT_EQ(all[3], call + "reduce_direct_b16, made for root 1");
  EXPECT_EQ(lines("Reduce: 256 Bytes of i32, not taken: reduce_packets_b4").size(), 3u);
  EXPECT_EQ(lines("Reduce: 256 Bytes of i32, not taken: reduce_packets .for root 0 only").size(), 1u);
}

TEST_F(NcclPlans, OfTheUserAreTakenBySize) {
  std::filesystem::copy_file(shipped + "allreduce_ring_2.json", path("ring.json"));
  std::filesystem::copy_file(shipped + "allreduce_ring_4.json", path("four.json"));
  const std::string file = plans(
      "own.json",
      R"({"collective": "allreduce", "to_bytes": 1024, "plan": "ring.json"},)"
      R"({"collective": "allreduce", "from_bytes": 1025, "plan": "allreduce_one_shot_b4", "packet": "ll8"},)"
      R"({"collective": "allreduce", "plan": "four.json"})");
  const Variable own("CHORALE_NCCL_PLANS", file);
  start_log();
  in_threads(2, [](ncclComm_t comm, int rank) {
    reduce(comm, 2, rank, 256);
    reduce(comm, 2, rank, 257);
    reduce(comm, 2, rank, 100, true);
  });
  const std::vector<std::string> all = lines(" -> ");
  ASSERT_EQ(all.size(), 3u) << testing::PrintToString(all);
  EXPECT_EQ(all[0], "AllReduce: 1024 Bytes of f32 -> plan ring.json, as set for this size");
  EXPECT_EQ(all[1], "AllReduce: 1028 Bytes of f32 -> plan allreduce_one_shot_b4, ll8, as set for this size");
  EXPECT_EQ(
      lines("AllReduce: 1024 Bytes of f32, not taken: allreduce_one_shot_b4 .set for 1025 bytes and ").size(),
      1u);
  EXPECT_EQ(lines("allreduce_all_pairs .a plan of your own goes before").size(), 3u);
  EXPECT_EQ(lines("AllReduce: 1028 Bytes of f32, not taken: ring.json .set for at most 1024 bytes").size(),
            1u);
  EXPECT_EQ(lines("CHORALE_NCCL_PLANS"),
            (std::vector<std::string>{
                "CHORALE_NCCL_PLANS=" + file + " has 2 plans for 2 ranks",
                "CHORALE_NCCL_PLANS=" + file + ": /plans/2: four.json is for 4 ranks and not for 2"}));
}

TEST_F(NcclPlans, OfAWrongFileMakeNoCommunicator) {
  const Variable own("CHORALE_NCCL_PLANS",
                     plans("own.json", R"({"collective": "allreduce", "plan": "x.json"})"));
  ncclComm_t comms[2] = {};
  EXPECT_EQ(ncclCommInitAll(comms, 2, nullptr), ncclInvalidUsage);
  EXPECT_EQ(
      sentence(),
      "ncclCommInitAll: CHORALE_NCCL_PLANS cannot be used: " + path("own.json") + ": /plans/0: cannot read " +
          path("x.json") +
          ": No such file or directory. chorale compile makes plans, and docs/tuning.md describes the file");
  EXPECT_EQ(comms[0], nullptr);
}

/// Makes a communicator whose ranks have these files as CHORALE_NCCL_PLANS, and expects refusals that begin
/// with these sentences.
void expect_refusals(const std::vector<std::string>& files, const std::vector<std::string>& sentences) {
  const int ranks = int(files.size());
  const std::vector<int> ends = forked_with_id(ranks, [&](const ncclUniqueId& id, int rank) {
    if (!files[size_t(rank)].empty()) setenv("CHORALE_NCCL_PLANS", files[size_t(rank)].c_str(), 1);
    ncclComm_t comm{};
    EXPECT_EQ(ncclCommInitRank(&comm, ranks, id, rank), ncclInvalidUsage);
    EXPECT_EQ(sentence().substr(0, sentences[size_t(rank)].size()), sentences[size_t(rank)]);
    return testing::Test::HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(ends, std::vector<int>(size_t(ranks), 0));
}

using NcclPlansProcesses = NcclPlans;

TEST_F(NcclPlansProcesses, ThatDifferBetweenRanksAreRefusedOnAll) {
  const std::string all = plans("all.json", R"({"collective": "allgather", "plan": "allgather_ring"})");
  const std::string less =
      plans("less.json", R"({"collective": "allgather", "plan": "allgather_ring", "to_bytes": 9})");
  const std::string differs =
      "ncclCommInitRank: CHORALE_NCCL_PLANS differs between ranks, so they would run different plans. Rank 0 "
      "has: allgather of 0 to 18446744073709551615 bytes: plan ";
  expect_refusals({all, all, ""}, {differs, differs, differs});
  expect_refusals({all, less}, {differs, differs});
}

TEST_F(NcclPlansProcesses, ThatOneRankCannotReadAreRefusedOnAll) {
  const std::string all = plans("all.json", R"({"collective": "allgather", "plan": "allgather_ring"})");
  const std::string reason =
      "CHORALE_NCCL_PLANS cannot be used: cannot read /no/such.json: No such file or directory";
  expect_refusals({all, "/no/such.json"},
                  {"ncclCommInitRank: rank 1: " + reason, "ncclCommInitRank: " + reason});
}

TEST_F(NcclPlans, AreLeftOutOfTheLogBySubject) {
  const auto printed = [&](const char* subjects) {
    start_log(subjects);
    in_threads(2, [](ncclComm_t comm, int rank) { reduce(comm, 2, rank, 256); });
    return std::pair(lines("Init COMPLETE").size(), lines(" -> ").size());
  };
  EXPECT_EQ(printed(nullptr), std::pair(size_t(2), size_t(1)));
  EXPECT_EQ(printed("all"), std::pair(size_t(2), size_t(1)));
  EXPECT_EQ(printed("INIT,COLL"), std::pair(size_t(2), size_t(0)));
  EXPECT_EQ(printed("^INIT"), std::pair(size_t(0), size_t(1)));
  EXPECT_EQ(printed("NET,tuning"), std::pair(size_t(0), size_t(1)));
}

TEST(NcclVariables, DecideWhetherCommunicatorsBlock) {
  ncclConfig_t config = config_initializer;
  config.blocking = 1;
  ncclComm_t comm{};
  {
    const Variable blocking("NCCL_COMM_BLOCKING", "0");
    EXPECT_EQ(ncclCommInitRankConfig(&comm, 1, new_id(), 0, &config), ncclInProgress);
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) ASSERT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
    EXPECT_EQ(state, ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  }
  {
    const Variable blocking("NCCL_COMM_BLOCKING", "1");
    config.blocking = 0;
    EXPECT_EQ(ncclCommInitRankConfig(&comm, 1, new_id(), 0, &config), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  }
  const Variable blocking("NCCL_COMM_BLOCKING", "yes");
  EXPECT_EQ(ncclCommInitRank(&comm, 1, new_id(), 0), ncclInvalidUsage);
  EXPECT_EQ(sentence(), "ncclCommInitRank: NCCL_COMM_BLOCKING is 'yes', but must be 0 or 1");
}

TEST(NcclVariables, MayForbidWhatGpusNeed) {
  const char* const backend = std::getenv("CHORALE_BACKEND");
  const std::string before = backend ? backend : "";
  const Variable disable("NCCL_P2P_DISABLE", "1");
  ncclComm_t comm{};
  EXPECT_EQ(ncclCommInitRank(&comm, 1, new_id(), 0), ncclSuccess) << "a CPU has no peers";
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  setenv("CHORALE_BACKEND", "cuda", 1);
  EXPECT_EQ(ncclCommInitRank(&comm, 1, new_id(), 0), ncclInvalidUsage);
  EXPECT_EQ(
      sentence(),
      "ncclCommInitRank: NCCL_P2P_DISABLE is '1', but plans need GPUs that access the memory of peers. Unset "
      "it, or use NCCL itself");
  setenv("CHORALE_BACKEND", before.c_str(), 1);
}

}  // namespace
