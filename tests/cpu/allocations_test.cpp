/// \file
/// A bound run allocates nothing. An executable of its own would do; here operator new counts for all tests.

#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/cpu/harness.hpp"

namespace {

std::atomic<uint64_t> allocations{0};

void* counted(std::size_t bytes, std::size_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* const memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (!memory) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes ? bytes : 1, 16); }
void* operator new[](std::size_t bytes) { return counted(bytes ? bytes : 1, 16); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, std::size_t(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, std::size_t(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace chorale::test {
namespace {

TEST(Allocations, a_bound_run_makes_none) {
  for (const char* name : {"allreduce_ring_4", "allreduce_one_shot_4", "allgather_direct_4"}) {
    const Plan plan = load((source_dir() / "plans/shipped" / (std::string(name) + ".json")).string());
    run_local(4, [&](World& world) {
      Executor executor(world);
      std::vector<float> in(1024, 1), out(4096);
      const Arguments arguments{.in = in.data(), .out = out.data(), .bytes = 4096};
      // The first runs make the stacks of the blocks.
      for (int warm = 0; warm < 200; ++warm) executor.execute(plan, arguments);
      world.barrier();
      const uint64_t before = allocations.load();
      for (int run = 0; run < 200; ++run) executor.execute(plan, arguments);
      const uint64_t after = allocations.load();
      world.barrier();
      EXPECT_EQ(after - before, 0u) << name;
    });
  }
}

}  // namespace
}  // namespace chorale::test
