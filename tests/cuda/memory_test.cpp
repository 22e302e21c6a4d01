// Tests peers' memory of every kind, over processes and over threads. One GPU is enough for most cases,
// because ranks may share it.

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <numeric>

#include "executor/cuda/memory/identity.hpp"
#include "executor/cuda/memory/peer_memory.hpp"
#include "tests/cuda/memory_kinds.hpp"
#include "tests/cuda/ranks.hpp"
#include "tests/has.hpp"

namespace chorale::test {
namespace {

using namespace cuda;

constexpr uint64_t bytes_each = 100004;  // no multiple of 8
using Words = std::vector<uint32_t>;

void write(char* to, const Words& words) {
  check(cudaMemcpy(to, words.data(), words.size() * 4, cudaMemcpyHostToDevice), "cudaMemcpy to the device");
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

Words read(const char* from, size_t count) {
  Words words(count);
  check(cudaMemcpy(words.data(), from, count * 4, cudaMemcpyDeviceToHost), "cudaMemcpy from the device");
  return words;
}

Words pattern(int rank, int round = 0) {
  Words words(bytes_each / 4);
  std::iota(words.begin(), words.end(), uint32_t(rank * 1000003 + round * 7919));
  return words;
}

/// Reads all memory of all ranks, then writes this rank's word into each, and finds the others' words in this
/// rank's memory.
std::string use(World& world, const PeerMemory& memory, char* mine, int round = 0) {
  const int self = world.rank();
  write(mine, pattern(self, round));
  world.barrier();
  for (int peer = 0; peer < world.ranks(); ++peer) {
    if (memory.bytes(peer) != bytes_each) return "wrong size";
    if (read(memory.at(peer), bytes_each / 4) != pattern(peer, round)) return "wrong words";
  }
  world.barrier();
  for (int peer = 0; peer < world.ranks(); ++peer) {
    write(memory.at(peer) + bytes_each - 4 * (self + 1), {uint32_t(100 + self)});
  }
  world.barrier();
  for (int peer = 0; peer < world.ranks(); ++peer) {
    if (read(mine + bytes_each - 4 * (peer + 1), 1)[0] != uint32_t(100 + peer))
      return "a peer's word is missing";
  }
  return "good";
}

std::string exchange_and_use(World& world, Imports& imports, char* mine, int round = 0) {
  const PeerMemory memory = PeerMemory::exchange(world, imports, mine, bytes_each);
  return use(world, memory, mine, round);
}

class Memory : public OnRanks {};

TEST_P(Memory, EveryKindThatCanBeShared) {
  CHORALE_NEEDS_GPUS(1);
  for (const MemoryKind& kind : memory_kinds()) {
    if (!kind.why_not.empty()) continue;
    SCOPED_TRACE(kind.name);
    expect_good([&](World& world) {
      Imports imports(world);
      if (kind.is_there && !kind.is_there()) {
        std::fprintf(stderr, "note: this device has no %s, which tests less\n", kind.name.c_str());
        return std::string("good");
      }
      const Buffer mine = kind.make(bytes_each);
      std::string why_not;
      if (!identity_of(mine.data, bytes_each, &why_not)) return why_not;
      for (int round = 0; round < 3; ++round) {
        const std::string said = exchange_and_use(world, imports, mine.data, round);
        if (said != "good") return said;
      }
      return std::string(imports.opened() == imports.held() ? "good" : "opened more than once");
    });
  }
}

TEST_P(Memory, EveryKindThatCannotIsRefusedWithTheReason) {
  CHORALE_NEEDS_GPUS(1);
  for (const MemoryKind& kind : memory_kinds()) {
    if (kind.why_not.empty()) continue;
    SCOPED_TRACE(kind.name);
    expect_good([&](World& world) {
      Imports imports(world);
      const bool mine_is_bad = world.rank() == 1;
      const Buffer mine = mine_is_bad ? kind.make(unit) : malloced(unit);
      std::string why_not;
      const bool shareable = identity_of(mine.data, unit, &why_not).has_value();
      if (shareable == mine_is_bad || !has(why_not, mine_is_bad ? kind.why_not : ""))
        return "said: " + why_not;
      try {
        PeerMemory::exchange(world, imports, mine.data, unit);
        return std::string("exchanged");
      } catch (const RunError& error) {  // on both
        if (!has(error.what(), "rank 1: ") || !has(error.what(), kind.why_not))
          return std::string(error.what());
      }
      const Buffer good = malloced(bytes_each);
      return exchange_and_use(world, imports, good.data);
    });
  }
}

TEST_P(Memory, ABufferMayNotEndBehindItsAllocation) {
  CHORALE_NEEDS_GPUS(1);
  expect_good([](World&) {
    // The addresses are reserved beyond the memory. Otherwise another rank's memory may follow.
    AddressRange range(2 * unit);
    range.map(create_handle(unit, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), unit);
    range.give_access(current_device());
    const Buffer mine = owned(std::move(range), 0);
    std::string why_not;
    if (identity_of(mine.data, unit + 1, &why_not)) return std::string("shareable");
    return has(why_not, "from byte 2097152") ? "good" : why_not;
  });
}

TEST_P(Memory, RanksDifferInKindOffsetAndSize) {
  CHORALE_NEEDS_GPUS(1);
  expect_good(
      [](World& world) {
        Imports imports(world);
        const std::vector<MemoryKind> kinds = memory_kinds();
        const Buffer mine =
            kinds[size_t(world.rank()) * 2].make(bytes_each);  // Malloc, far inside, two handles
        const std::string said = exchange_and_use(world, imports, mine.data);
        if (said != "good") return said;
        const bool give = world.rank() == 1;
        const PeerMemory one =
            PeerMemory::exchange(world, imports, give ? mine.data : nullptr, give ? 40 : 4);
        for (int peer = 0; peer < 3; ++peer) {
          if (one.bytes(peer) != (peer == 1 ? 40u : 0u) || (one.at(peer) != nullptr) != (peer == 1)) {
            return std::string("wrong pieces");
          }
        }
        const bool right = read(one.at(1), 10).size() == 10;
        world.barrier();  // until then no rank frees
        return std::string(right ? "good" : "unreadable");
      },
      3);
}

TEST_P(Memory, SmallAllocationsOfOnePage) {
  CHORALE_NEEDS_GPUS(1);
  expect_good([](World& world) {
    Imports imports(world);
    std::vector<Buffer> buffers;
    std::vector<PeerMemory> memories;
    for (int at = 0; at < 8; ++at) {
      buffers.push_back(malloced(512));
      write(buffers.back().data, {uint32_t(world.rank() * 10 + at)});
      memories.push_back(PeerMemory::exchange(world, imports, buffers.back().data, 512));
    }
    world.barrier();
    for (int at = 0; at < 8; ++at) {
      const int peer = 1 - world.rank();
      if (read(memories[at].at(peer), 1)[0] != uint32_t(peer * 10 + at)) return "wrong word";
    }
    world.barrier();
    return "good";
  });
}

TEST_P(Memory, FreedAndMadeAgainAtTheSameAddress) {
  CHORALE_NEEDS_GPUS(1);
  expect_good([](World& world) -> std::string {
    Imports imports(world);
    Buffer mine = malloced(32 << 20);
    const void* const before = mine.data;
    const auto identity = identity_of(mine.data, bytes_each);
    if (identity != identity_of(mine.data, bytes_each)) return "the identity changes by itself";
    std::string said = exchange_and_use(world, imports, mine.data, 1);
    if (said != "good") return said;
    for (int turn = 0; turn < world.ranks(); ++turn) {
      world.barrier();
      if (turn != world.rank()) continue;
      mine = {};
      mine = malloced(32 << 20);
    }
    world.barrier();
    if (mine.data != before)
      std::fprintf(stderr, "note: cudaMalloc gave another address, which tests less\n");
    if (identity == identity_of(mine.data, bytes_each)) return "the same identity";
    return exchange_and_use(world, imports, mine.data, 2);
  });
}

/// This happens with bindings that are kept for other calls, and with other communicators.
TEST_P(Memory, MadeAgainWhileTheFormerIsStillOpen) {
  CHORALE_NEEDS_GPUS(1);
  expect_good([](World& world) -> std::string {
    Imports imports(world), others(world);
    std::vector<PeerMemory> former;
    int same = 0;
    const void* before = nullptr;
    for (int round = 0; round < 4; ++round) {
      const Buffer mine = malloced(32 << 20);
      same += mine.data == before;
      before = mine.data;
      former.push_back(PeerMemory::exchange(world, round == 1 ? others : imports, mine.data, bytes_each));
      const std::string said = use(world, former.back(), mine.data, round);
      if (said != "good") return said;
      if (former.back().stale()) return "what is there is said to be stale";
      world.barrier();
    }
    if (same == 0) std::fprintf(stderr, "note: cudaMalloc gave other addresses, which tests less\n");
    return "good";
  });
}

TEST_P(Memory, MappedAnewAtTheSameAddress) {
  CHORALE_NEEDS_GPUS(1);
  expect_good([](World& world) -> std::string {
    Imports imports(world);
    const int device = current_device();
    const AddressRange range(unit);
    const CUdeviceptr base = reinterpret_cast<CUdeviceptr>(range.data());
    std::optional<Identity> last;
    for (int round = 0; round < 5; ++round) {
      const CUmemGenericAllocationHandle handle =
          create_handle(unit, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
      check(driver().cuMemMap(base, unit, 0, handle, 0), "cuMemMap");
      check(driver().cuMemRelease(handle), "cuMemRelease");
      give_access(base, unit, device);
      const std::optional<Identity> now = identity_of(range.data(), bytes_each);
      if (now == last) return "the same identity";
      last = now;
      const std::string said = exchange_and_use(world, imports, range.data(), round);
      if (said != "good") return said;
      world.barrier();
      check(driver().cuMemUnmap(base, unit), "cuMemUnmap");
    }
    return imports.held() <= 1 ? "good" : "imports of freed memory are held";
  });
}

size_t open_files() {
  static std::mutex one_at_a_time;  // because the query opens a file
  const std::lock_guard lock(one_at_a_time);
  const std::filesystem::directory_iterator folder("/proc/self/fd");
  return size_t(std::distance(begin(folder), end(folder)));
}

uint64_t free_memory() {
  size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return free;
}

TEST_P(Memory, AThousandExchangesOfOneBufferOpenItOnce) {
  CHORALE_NEEDS_GPUS(1);
  expect_good([](World& world) -> std::string {
    Imports imports(world);
    const Buffer mine = owned(make_mapped(2), 4);
    const PeerMemory first = PeerMemory::exchange(world, imports, mine.data, bytes_each);
    const size_t opened = imports.opened(), files = open_files();
    for (int round = 0; round < 1000; ++round) PeerMemory::exchange(world, imports, mine.data, bytes_each);
    if (imports.opened() != opened) return "opened again";
    if (open_files() > files) return "files stay open";
    return use(world, first, mine.data);
  });
}

TEST_P(Memory, AThousandExchangesOfFreshBuffersLeaveNothing) {
  CHORALE_NEEDS_GPUS(1);
  expect_good([](World& world) -> std::string {
    Imports imports(world);
    size_t files = 0;
    uint64_t free = 0;
    for (int round = 0; round < 1000; ++round) {
      {
        const Buffer mine = round % 2 ? malloced(8 << 20) : owned(make_mapped(4), 0);
        PeerMemory::exchange(world, imports, mine.data, 7 << 20);
        world.barrier();
      }
      if (imports.held() > 4) return "imports of freed memory are held";
      if (round % 100 != 19) continue;
      world.barrier();
      if (round == 19) files = open_files(), free = free_memory();
      if (open_files() > files) return "files stay open";
      // This allows for eight buffers of two ranks and what CUDA keeps for itself.
      if (free_memory() + (256ull << 20) < free) return "device memory stays allocated";
      world.barrier();
    }
    return "good";
  });
}

/// Small allocations share pages with others, which stay.
TEST_P(Memory, SmallOnesComeAndGoBesideOthers) {
  CHORALE_NEEDS_GPUS(1);
  expect_good([](World& world) -> std::string {
    Imports imports(world), others(world);
    const int peer = 1 - world.rank();
    const Buffer stays = malloced(512);
    write(stays.data, {uint32_t(7 + world.rank())});
    const PeerMemory staying = PeerMemory::exchange(world, imports, stays.data, 512);
    std::vector<PeerMemory> former;
    for (uint32_t round = 0; round < 30; ++round) {
      constexpr uint64_t sizes[] = {1024, 4096, 33280, 73216, 600000, 4096};
      const Buffer mine = malloced(sizes[round % std::size(sizes)]);
      write(mine.data, {100 * round + uint32_t(world.rank())});
      // Another communicator makes every third one. It does not know what the first communicator has open.
      former.push_back(PeerMemory::exchange(world, round % 3 == 2 ? others : imports, mine.data, 1024));
      if (former.back().stale()) return "what is there is said to be stale";
      if (read(former.back().at(peer), 1)[0] != 100 * round + uint32_t(peer)) return "wrong word";
      if (staying.stale()) return "what stays is said to be stale";
      if (read(staying.at(peer), 1)[0] != 7 + uint32_t(peer)) return "wrong word of what stays";
      world.barrier();
    }
    return "good";
  });
}

/// Bindings hold what was mapped for calls that may not come again.
TEST_P(Memory, WhatWasFreedIsGivenBackWhoeverHoldsIt) {
  CHORALE_NEEDS_GPUS(1);
  expect_good([](World& world) -> std::string {
    Imports imports(world);
    std::vector<PeerMemory> held;
    const auto round = [&](int number) {
      const Buffer mine = number % 2 ? malloced(64 << 20) : owned(make_mapped(32), 0);
      held.push_back(PeerMemory::exchange(world, imports, mine.data, bytes_each));
      const std::string said = use(world, held.back(), mine.data, number);
      world.barrier();
      return said;
    };
    for (int number = 0; number < 20; ++number) {
      if (const std::string said = round(number); said != "good") return said;
      if (imports.held() > 2) return "imports of freed memory are held";
    }
    PeerMemory::exchange(world, imports, nullptr, 0);
    if (GetParam() == Ranks::processes) {
      for (const PeerMemory& one : held)
        if (!one.stale()) return "what was freed is said to be there";
    }
    world.barrier();
    const uint64_t free = free_memory();
    world.barrier();
    for (int number = 20; number < 40; ++number) {
      if (const std::string said = round(number); said != "good") return said;
    }
    world.barrier();
    // The 20 buffers of each rank are free again, except one or two. The ranks may share the GPU.
    if (free_memory() + (512ull << 20) < free) return "device memory stays allocated";
    world.barrier();
    return "good";
  });
}

TEST_P(Memory, UnusedImportsAreLimited) {
  CHORALE_NEEDS_GPUS(1);
  expect_good([](World& world) -> std::string {
    Imports imports(world);
    std::vector<Buffer> buffers;
    for (size_t at = 0; at < Imports::unused_limit + 10; ++at) {
      buffers.push_back(malloced(4 << 20));
      PeerMemory::exchange(world, imports, buffers.back().data, bytes_each);
    }
    if (imports.held() > Imports::unused_limit + 1) return "too many";  // the last one was in use
    imports.trim();
    if (imports.held() != 0) return "trim() leaves some";
    world.barrier();
    return exchange_and_use(world, imports, buffers[0].data);
  });
}

TEST_P(Memory, WhileAGraphIsCaptured) {
  CHORALE_NEEDS_GPUS(1);
  expect_good([](World& world) -> std::string {
    Imports imports(world);
    const Buffer mine = malloced(4 << 20);
    cudaStream_t stream = nullptr;
    cudaGraph_t graph = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
    const PeerMemory memory = PeerMemory::exchange(world, imports, mine.data, bytes_each);
    check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    check(cudaGraphDestroy(graph), "cudaGraphDestroy");
    check(cudaStreamDestroy(stream), "cudaStreamDestroy");
    world.barrier();
    return use(world, memory, mine.data);
  });
}

TEST_P(Memory, EveryRankKnowsTheDevices) {
  CHORALE_NEEDS_GPUS(2);
  expect_good([](World& world) -> std::string {
    const Imports imports(world);
    const std::vector<RankDevice>& devices = imports.devices();
    if (devices[0].same_device(devices[1])) return "one device";
    if (devices[0].ordinal != 0 || devices[1].ordinal != 1) return "wrong numbers";
    return has(devices[1].text(), "(device 1)") ? "good" : devices[1].text();
  });
}

CHORALE_FOR_ALL_RANKS(Cuda, Memory);

TEST(WithoutAGpu, TheErrorNamesTheCallAndTheRemedy) {
  if (gpus() > 0) GTEST_SKIP() << "there is a GPU";
  try {
    current_device();
    FAIL();
  } catch (const RunError& error) {
    EXPECT_TRUE(has(error.what(), "cudaGetDevice") || has(error.what(), "cudaSetDevice")) << error.what();
    EXPECT_TRUE(has(error.what(), "driver") || has(error.what(), "nvidia-smi")) << error.what();
  }
  try {
    driver();
    FAIL();
  } catch (const RunError& error) {
    EXPECT_TRUE(has(error.what(), "cuDeviceGetAttribute")) << error.what();
  }
}

TEST(WithoutAGpu, AllRanksHearOfIt) {
  if (gpus() > 0) GTEST_SKIP() << "there is a GPU";
  const std::string address = fresh_address();
  Processes ranks(2, [&](int rank) -> std::string {
    World world = World::join(address, rank, 2);
    Imports imports(world);
    return "good";
  });
  for (int rank = 0; rank < 2; ++rank) EXPECT_TRUE(has(ranks.said(rank), "other: rank 0: "));
}

}  // namespace
}  // namespace chorale::test
