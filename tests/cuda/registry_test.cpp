// Tests that allocations of a rank become known to its peers when they are first passed, and are closed after
// they were freed.

#include "executor/cuda/memory/registry.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "tests/cuda/memory_kinds.hpp"
#include "tests/cuda/ranks.hpp"

namespace chorale::test {
namespace {

using namespace cuda;

class RegistryOfProcesses : public testing::Test {
 protected:
  void SetUp() override {
    Registry::most_wait = std::chrono::seconds(60);
    Registry::between_refusals = {};
  }
};

/// Holds what a registry needs, and a registry.
struct Registered {
  World& world;
  Imports imports{world};
  Pool pool{world, imports};
  Registry registry{world, imports, pool};

  /// Makes this rank's memory known, and reads a word of every rank's.
  std::string use(const Buffer& mine, uint32_t word) {
    const SeenBy* const seen = registry.find(mine.data, sizeof word);
    return seen ? use(mine.data, *seen, word) : registry.why_not();
  }

  /// Reads a word of every rank's memory.
  std::string use(char* mine, const SeenBy& seen, uint32_t word) const {
    check(cudaMemcpy(mine, &word, sizeof word, cudaMemcpyDefault), "writing a word");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    std::vector<uint64_t> at;
    for (const uint64_t base : seen.at) at.push_back(base + reinterpret_cast<uint64_t>(mine) - seen.base);
    at.push_back(word);
    for (const auto& theirs : world.allgather(std::as_bytes(std::span(at)))) {
      uint64_t address = 0, expected = 0;
      std::memcpy(&address, theirs.data() + size_t(world.rank()) * 8, 8);
      std::memcpy(&expected, theirs.data() + size_t(world.ranks()) * 8, 8);
      uint32_t found = 0;
      check(cudaMemcpy(&found, reinterpret_cast<const void*>(address), 4, cudaMemcpyDefault),
            "reading a word");
      if (found != expected) return "wrong word";
    }
    world.barrier();
    return "";
  }
};

TEST_F(RegistryOfProcesses, ClosesWhatPeersHaveFreed) {
  CHORALE_NEEDS_GPUS(1);
  const int ranks = 3;
  const auto said = on_processes(ranks, [&](World& world) -> std::string {
    Registered all{world};
    const Buffer kept = malloced(4 << 20);
    if (const std::string why = all.use(kept, 1); !why.empty()) return why;
    for (uint32_t turn = 2; turn < 8; ++turn) {
      // This is at the address of the last turn's memory. CUDA may refuse to map it until that is closed.
      const Buffer mine = malloced(4 << 20);
      all.registry.find(mine.data, 4 << 20);
      all.registry.tell_freed();
      if (all.registry.known() != 2) return "knows " + std::to_string(all.registry.known());
      world.barrier();
      if (all.registry.peers_have_freed() != (turn > 2)) return "wrong about what peers have freed";
      all.registry.close_freed();
      if (all.registry.peers_have_freed()) return "there is still something to close";
      world.barrier();
      const std::string why = all.use(mine, turn + 100 * uint32_t(world.rank()));
      if (!why.empty()) return why + " in turn " + std::to_string(turn);
      if (all.registry.opened() != 2 * size_t(ranks - 1))
        return "opened " + std::to_string(all.registry.opened()) + " in turn " + std::to_string(turn);
    }
    if (const std::string why = all.use(kept, 9); !why.empty()) return "afterwards: " + why;
    return "good";
  });
  EXPECT_EQ(said, std::vector<std::string>(ranks, "good"));
}

/// The ranks need not make calls at the same time: a rank asks while its peers do something else.
TEST_F(RegistryOfProcesses, PeersNeedNotCall) {
  CHORALE_NEEDS_GPUS(1);
  const auto said = on_processes(2, [&](World& world) -> std::string {
    Registered all{world};
    std::string why = "good";
    if (world.rank() == 0) {
      std::vector<Buffer> kept;
      for (int turn = 0; turn < 5; ++turn) {
        kept.push_back(malloced(1 << 20));
        char* const mine = kept.back().data;
        if (!all.registry.find(mine, 100)) why = all.registry.why_not();
        if (all.registry.find(mine + 100, 1 << 20)) why = "found more than the allocation";
      }
    }
    world.barrier();
    return why;
  });
  EXPECT_EQ(said, std::vector<std::string>(2, "good"));
}

/// Another registry of a peer may keep freed memory open for long, because it is not used. CUDA may then
/// refuse to map memory at the same address.
TEST_F(RegistryOfProcesses, ARefusalIsNotForever) {
  CHORALE_NEEDS_GPUS(1);
  const auto said = on_processes(2, [&](World& world) -> std::string {
    Registered all{world};
    Registry other(world, all.imports, all.pool);
    {
      const Buffer freed = malloced(4 << 20);
      if (!other.find(freed.data, 1)) return other.why_not();
      world.barrier();
    }
    const Buffer mine = malloced(4 << 20);
    for (int turn = 0; turn < 20; ++turn) all.registry.find(mine.data, 1);
    other.find(mine.data, 1);  // it notices that memory was freed
    other.tell_freed();
    world.barrier();
    other.close_freed();
    world.barrier();
    const std::string why = all.use(mine, uint32_t(world.rank()));
    return why.empty() ? "good" : why;
  });
  EXPECT_EQ(said, std::vector<std::string>(2, "good"));
}

TEST_F(RegistryOfProcesses, BuffersOfAllRanksAreSeenByAll) {
  CHORALE_NEEDS_GPUS(1);
  const auto said = on_processes(3, [&](World& world) -> std::string {
    Registered all{world};
    const std::shared_ptr<const BounceBuffer> small = all.registry.bounce_buffer(100);
    if (all.registry.bounce_buffer(1 << 20) != small) return "made two where one is enough";
    const std::shared_ptr<const BounceBuffer> large = all.registry.bounce_buffer((4 << 20) + 1);
    if (large == small || large->seen.bytes < (4 << 20) + 1) return "too short";
    const std::string why = all.use(large->block.at(world.rank()), large->seen, uint32_t(world.rank() + 1));
    return why.empty() ? "good" : why;
  });
  EXPECT_EQ(said, std::vector<std::string>(3, "good"));
}

}  // namespace
}  // namespace chorale::test
