// Tests that scratch is at the same offset on all ranks, and that the GPU sees host memory.

#include "executor/cuda/memory/pool.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "chorale/device/deadline.hpp"
#include "executor/cuda/device/driver.hpp"
#include "executor/cuda/device/host_words.hpp"
#include "tests/cuda/ranks.hpp"

namespace chorale::test {
namespace {

using namespace cuda;

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::vector<unsigned char> read(const char* from, size_t bytes) {
  std::vector<unsigned char> all(bytes);
  check(cudaMemcpy(all.data(), from, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
  return all;
}

void fill(char* to, int value, size_t bytes) {
  check(cudaMemset(to, value, bytes), "cudaMemset");
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

/// Expects zeros at first. Then every rank writes the last bytes of all peers' memory, one rank at a time.
std::string use(World& world, const Pool::Block& block) {
  const uint64_t bytes = block.bytes();
  for (int peer = 0; peer < world.ranks(); ++peer) {
    if (read(block.at(peer), bytes) != std::vector<unsigned char>(bytes)) return "not zero";
  }
  for (int writer = 0; writer < world.ranks(); ++writer) {
    world.barrier();
    for (int peer = 0; peer < world.ranks() && writer == world.rank(); ++peer) {
      fill(block.at(peer), 16 * writer + peer + 1, bytes);
    }
    world.barrier();
    const auto expected = static_cast<unsigned char>(16 * writer + world.rank() + 1);
    if (read(block.at(world.rank()), bytes) != std::vector<unsigned char>(bytes, expected))
      return "wrong bytes";
  }
  world.barrier();
  return "good";
}

class Scratch : public OnRanks {};

TEST_P(Scratch, BlocksAreZeroAndReachAllRanks) {
  CHORALE_NEEDS_GPUS(1);
  expect_good(
      [](World& world) -> std::string {
        Imports imports(world);
        Pool pool(world, imports);
        for (const uint64_t bytes : {1, 511, 513, 4096, 1000003}) {
          const Pool::Block one = pool.take(bytes), other = pool.take(bytes);
          for (const Pool::Block* block : {&one, &other}) {
            const std::string said = use(world, *block);
            if (said != "good") return said;
          }
        }
        const Pool::Block none = pool.take(0);
        if (none || none.at(0)) return "something of 0 bytes";
        return pool.reserved() == Pool::slab_bytes ? "good" : "wrong number of slabs";
      },
      3);
}

TEST_P(Scratch, ALargeBlockHasASlabOfItsOwn) {
  CHORALE_NEEDS_GPUS(1);
  expect_good([](World& world) -> std::string {
    Imports imports(world);
    Pool pool(world, imports);
    const Pool::Block small = pool.take(1000);
    const Pool::Block large = pool.take(Pool::slab_bytes + 1);
    if (pool.reserved() != 2 * Pool::slab_bytes + (2 << 20)) return "wrong slabs";
    fill(large.at(1 - world.rank()) + Pool::slab_bytes, 7, 1);
    world.barrier();
    return read(large.at(world.rank()) + Pool::slab_bytes, 1)[0] == 7 ? "good" : "the last byte is wrong";
  });
}

TEST_P(Scratch, WhatIsGivenBackIsTakenAgain) {
  CHORALE_NEEDS_GPUS(1);
  expect_good([](World& world) -> std::string {
    Imports imports(world);
    Pool pool(world, imports);
    std::mt19937 random(5);  // the same on all ranks
    std::vector<Pool::Block> blocks;
    for (int round = 0; round < 300; ++round) {
      if (blocks.size() > 8) blocks.erase(blocks.begin() + random() % blocks.size());
      blocks.push_back(pool.take(1 + random() % (5 << 20)));
      fill(blocks.back().at(1 - world.rank()), 1, blocks.back().bytes());
      world.barrier();
    }
    blocks.clear();
    const Pool::Block all = pool.take(Pool::slab_bytes);
    return pool.reserved() == Pool::slab_bytes ? "good" : "pieces do not join again";
  });
}

TEST_P(Scratch, BlocksOutliveTheirPool) {
  CHORALE_NEEDS_GPUS(1);
  expect_good([](World& world) -> std::string {
    Imports imports(world);
    Pool::Block block;
    {
      Pool pool(world, imports);
      block = pool.take(5000);
    }
    return use(world, block);
  });
}

TEST_P(Scratch, RanksThatDifferAreNamed) {
  CHORALE_NEEDS_GPUS(1);
  expect_good([](World& world) -> std::string {
    Imports imports(world);
    Pool pool(world, imports);
    try {
      pool.take(1000 + world.rank());
      return "took";
    } catch (const RunError& error) {
      if (!has(error.what(), "rank 1 takes 1001 bytes of scratch, rank 0 takes 1000")) return error.what();
    }
    Pool::Block first = pool.take(1000), second = pool.take(1000);
    if (world.rank() == 1) first = {};
    try {
      pool.take(1000);
      return "took";
    } catch (const RunError& error) {
      if (error.reason != RunError::Reason::mismatch || !has(error.what(), "have not given back the same"))
        return error.what();
    }
    if (world.rank() == 0) first = {};
    return use(world, pool.take(1000));
  });
}

TEST_P(Scratch, TooMuchIsAnErrorOnAllRanks) {
  CHORALE_NEEDS_GPUS(1);
  expect_good([](World& world) -> std::string {
    Imports imports(world);
    Pool pool(world, imports);
    try {
      pool.take(1ull << 46);
      return "took";
    } catch (const RunError& error) {
      if (error.reason != RunError::Reason::resources || !has(error.what(), "rank 0: ")) return error.what();
    }
    return use(world, pool.take(1000));
  });
}

TEST_P(Scratch, TheAbortWordIsSeenByTheGpu) {
  CHORALE_NEEDS_GPUS(1);
  expect_good([](World& world) -> std::string {
    current_device();
    AbortWord* const word = world.abort_word();
    HostMapping mapping(word, sizeof *word);
    const HostMapping again(word, sizeof *word);
    mapping = HostMapping();  // the registration stays for the other mapping
    world.barrier();
    // Each rank's GPU writes a word that no other GPU writes, and all see both.
    uint32_t* const words[] = {&word->rank, &word->claimed};
    const uint32_t wanted = 40u + uint32_t(world.rank());
    check(driver().cuStreamWriteValue32(
              nullptr, reinterpret_cast<CUdeviceptr>(again.device(words[world.rank()])), wanted, 0),
          "cuStreamWriteValue32");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    world.barrier();
    if (word->rank != 40 || word->claimed != 41) return "the GPU's write is not seen";
    uint32_t read_back = 0;
    check(cudaMemcpy(&read_back, again.device(&word->claimed), 4, cudaMemcpyDefault), "cudaMemcpy");
    world.barrier();
    return read_back == 41 ? "good" : "the GPU does not see the host's word";
  });
}

TEST_P(Scratch, AForeignRegistrationIsLeftAlone) {
  CHORALE_NEEDS_GPUS(1);
  expect_good([](World& world) -> std::string {
    if (world.rank() != 0) return "good";
    current_device();
    void* const memory = std::aligned_alloc(4096, 4096);
    check(cudaHostRegister(memory, 4096, cudaHostRegisterMapped), "cudaHostRegister");
    { const HostMapping mapping(memory, 64); }
    check(cudaHostUnregister(memory), "cudaHostUnregister");  // the memory still exists
    std::free(memory);
    return "good";
  });
}

TEST_P(Scratch, HostArraysAreZeroAndShared) {
  CHORALE_NEEDS_GPUS(1);
  expect_good([](World&) -> std::string {
    current_device();
    HostArray<uint64_t> made(1000);
    const HostArray<uint64_t> words = std::move(made);
    for (size_t at = 0; at < words.size(); ++at) {
      if (words[at] != 0) return "not zero";
    }
    // Write the upper half of the last word.
    check(driver().cuStreamWriteValue32(nullptr, reinterpret_cast<CUdeviceptr>(words.device() + 999) + 4,
                                        1 << 8, 0),
          "cuStreamWriteValue32");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    return words[999] == 1ull << 40 && words[998] == 0 ? "good" : "the GPU's write is not seen";
  });
}

CHORALE_FOR_ALL_RANKS(Cuda, Scratch);

}  // namespace
}  // namespace chorale::test
