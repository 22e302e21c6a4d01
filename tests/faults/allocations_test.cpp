/// \file
/// Checks that a bound run allocates nothing. operator new counts for the whole program, so the tests
/// allocate everything that they need before and after the run.

#include <atomic>
#include <cstdlib>
#include <new>

#include "caller.hpp"

namespace {

std::atomic<uint64_t> allocations{0};

void* counted(std::size_t bytes, std::size_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* const memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (!memory) throw std::bad_alloc();
  return memory;
}

/// Frees memory. It is a call, so that GCC does not see free() on memory from operator new.
[[gnu::noinline]] void give_back(void* memory) noexcept { std::free(memory); }

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes ? bytes : 1, 16); }
void* operator new[](std::size_t bytes) { return counted(bytes ? bytes : 1, 16); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, std::size_t(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, std::size_t(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return counted(bytes ? bytes : 1, 16);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return counted(bytes ? bytes : 1, 16);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept { give_back(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { give_back(memory); }
void operator delete(void* memory) noexcept { give_back(memory); }
void operator delete[](void* memory) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t) noexcept { give_back(memory); }
void operator delete[](void* memory, std::size_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { give_back(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { give_back(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { give_back(memory); }

namespace chorale::test {
namespace {

class Allocations : public Faults {};
INSTANTIATE_TEST_SUITE_P(Ranks, Allocations, both_ways, way_name);

TEST_P(Allocations, are_not_made_by_bound_runs) {
  expect_good({.body = [](Rank& me) {
    Caller caller(me);
    for (const Plan* plan :
         {&by_signals(me), &by_packets(me), &in_two_steps(me), &built("allreduce_ring", me.ranks())}) {
      const auto run = [&](int times) {
        for (int at = 0; at < times; ++at)
          caller.executor.execute(*plan, caller.data.arguments(), caller.data.stream());
        caller.executor.synchronize(caller.data.stream());
        me.world.barrier();
      };
      run(200);  // the first runs make the stacks of the blocks
      const uint64_t before = allocations.load(), free_before = device().free_bytes();
      run(200);
      const uint64_t made = allocations.load() - before;
      const bool same = device().free_bytes() == free_before;
      me.world.barrier();
      must(made == 0, plan->name + " makes no allocations, but there were " + std::to_string(made));
      must(same, plan->name + " takes no memory of the device");
    }
  }});
}

}  // namespace
}  // namespace chorale::test
