// These tests check that memory which one rank lacks is an error of all ranks.

#include "tests/unit/scarce_memory.hpp"

#include <optional>
#include <string>

#include "executor/fibers/sanitizers.hpp"
#include "tests/unit/tiles/support.hpp"
#include "tests/unit/world/processes.hpp"

namespace chorale {
namespace {

using namespace test;
using namespace std::chrono_literals;

TEST(ScarceMemory, MemoryThatOneRankLacksIsAnErrorOfAll) {
#if defined(CHORALE_ASAN) || defined(CHORALE_TSAN)
  GTEST_SKIP() << "shadows of the sanitizers are address space";
#endif
  const std::string address = fresh_address();
  Processes all(2, [&](int rank) -> std::string {
    World world = World::join(address, rank, 2, {.timeout = 60s});
    std::string said;
    {
      std::optional<ScarceMemory> scarce;
      if (rank == 1) scarce.emplace(160);  // megabytes, enough for the windows of both ranks
      said = message_of_error<RunError>(
          [&] { port_rendezvous(world, rings(1, 2, uint64_t{16} << 20), ProxyKind::shared_memory); });
    }
    port_rendezvous(world, rings(1, 2, 256), ProxyKind::shared_memory);  // the ranks are still in step
    return said;
  });
  for (int rank = 0; rank < 2; ++rank) {
    const std::string said = all.said(rank);
    EXPECT_EQ(said.find("rank 1: cannot allocate 671"), 0u) << said;
    EXPECT_NE(said.find(" bytes of memory for data that a proxy sends; give"), std::string::npos) << said;
  }
}

/// The memory is missing before any of the rank's threads has a stack.
TEST(ScarceMemory, ALaunchThatOneRankHasNoMemoryForEndsItsPeers) {
#if defined(CHORALE_ASAN) || defined(CHORALE_TSAN)
  GTEST_SKIP() << "shadows of the sanitizers are address space";
#endif
  const std::string address = fresh_address();
  Processes all(2, [&](int rank) -> std::string {
    World world = World::join(address, rank, 2, {.timeout = 60s});
    const auto transport = direct_rendezvous(world, rings(1, 2, 256));
    std::string said;
    {
      std::optional<ScarceMemory> scarce;
      if (rank == 1) scarce.emplace(64);
      said = message_of_error<RunError>([&] {
        char byte = 0;
        if (rank == 0) return recv(*transport, &byte, 1, 1, CopyConsume{}, {1});
        launch(*transport, [](const Group&, const Deadline&) { return Stop::none; }, {1u << 18, 1024});
      });
    }
    world.reset();
    transport->reset();
    char byte = rank == 1 ? 7 : 0;
    rank == 0 ? recv(*transport, &byte, 1, 1, CopyConsume{}, {1})
              : send(*transport, &byte, 1, 0, CopyProduce{}, {1});
    return byte == 7 ? said : "the next message is wrong";
  });
  const std::string what = "a launch of 262144 blocks of 1024 threads failed: no memory for the state";
  EXPECT_EQ(all.said(0).find("aborted by rank 1: " + what), 0u) << all.said(0);
  EXPECT_EQ(all.said(1).find(what), 0u) << all.said(1);
}

}  // namespace
}  // namespace chorale
