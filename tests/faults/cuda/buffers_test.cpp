/// \file
/// Tests device memory that is allocated and freed, and memory that peers cannot map.

#include <cuda_runtime_api.h>

#include <cstdio>

#include "executor/cuda/device/error.hpp"
#include "tests/faults/caller.hpp"

namespace chorale::test {
namespace {

class Buffers : public Faults {};
INSTANTIATE_TEST_SUITE_P(Ranks, Buffers, both_ways, way_name);

TEST_P(Buffers, that_are_freed_and_made_again_are_others) {
  expect_good({.body = [](Rank& me) {
    Caller caller(me);
    int same = 0;
    const void* before = nullptr;
    for (int run = 0; run < 16; ++run) {
      // Small buffers share pages, which stay; pages of large buffers are freed. Each rank's buffers are at
      // different places in them.
      const uint64_t more = run < 8 ? 4096 : 8 << 20;
      const auto inside = [&](int units) {
        const std::shared_ptr<void> all = device().allocate(Data::bytes + more);
        return std::shared_ptr<void>(all, static_cast<char*>(all.get()) + 64 * units);
      };
      caller.data.use(inside(me.rank() + 1), inside(me.rank() + 2));
      const void* const now = caller.data.arguments().in;
      same += now == before;
      before = now;
      caller.run_well(by_signals(me), run);
      me.world.barrier();  // until here peers may have read this memory
      caller.data.use(nullptr, nullptr);
    }
    if (me.rank() == 0) std::printf("    the same address came %d times\n", same);
  }});
}

TEST_P(Buffers, that_cannot_be_shared_are_staged) {
  expect_good({.body = [](Rank& me) {
    Caller caller(me);
    const auto pooled = [&]() -> std::shared_ptr<void> {
      const cudaStream_t stream = cudaStream_t(caller.data.stream());
      void* memory = nullptr;
      cuda::check(cudaMallocAsync(&memory, Data::bytes, stream), "cudaMallocAsync");
      device().wait(stream);
      return {memory, [](void* of) { cudaFree(of); }};
    };
    caller.data.use(pooled(), pooled());
    for (int run = 0; run < 5; ++run) caller.run_well(by_signals(me), run);
  }});
}

TEST_P(Buffers, that_are_new_on_one_rank_only_are_told_to_all) {
  expect_good({.body =
                   [](Rank& me) {
                     Caller caller(me);
                     caller.run_well(by_signals(me), 1);
                     // The buffers are freed before the others wait for this rank, because CUDA may wait for
                     // these ranks when it frees memory of their GPU.
                     if (me.last())
                       caller.data.use(device().allocate(Data::bytes), device().allocate(Data::bytes));
                     me.world.barrier();
                     const Failure seen = caller.failure(by_signals(me));
                     must_match(seen.text,
                                "rank [0-9] has launched call 2 of this executor, which it had bound before, "
                                "but rank " +
                                    std::to_string(me.ranks() - 1) + " has to bind it first");
                     me.world.reset();
                     caller.run_well(by_signals(me), 2);
                   },
               .deadline = far});
}

}  // namespace
}  // namespace chorale::test
