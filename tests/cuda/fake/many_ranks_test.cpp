// Tests calls of more ranks than can publish their buffers, which are more than most machines have GPUs.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "chorale/executor.hpp"
#include "chorale/make_plan.hpp"
#include "tests/cuda/memory_kinds.hpp"
#include "tests/cuda/ranks.hpp"
#include "tests/has.hpp"

namespace chorale::test {
namespace {

/// Returns by rank why a call copied its buffers, or that its result was wrong.
std::vector<std::string> why_copied(int ranks) {
  return on_threads(ranks, [&](World& world) -> std::string {
    constexpr size_t count = 5000;
    Config config;
    config.backend = "cuda";
    Executor executor(world, config);
    cudaStream_t stream = nullptr;
    cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
    const Buffer in = malloced(count * 4), out = malloced(count * 4);
    std::vector<int32_t> words(count, world.rank());
    cuda::check(cudaMemcpy(in.data, words.data(), count * 4, cudaMemcpyDefault), "writing a buffer");
    executor.execute_staged(
        make_plan("allreduce_all_pairs", ranks),
        {.in = in.data, .out = out.data, .bytes = count * 4, .dtype = DType::i32, .op = {}}, stream);
    executor.synchronize(stream);
    cuda::check(cudaMemcpy(words.data(), out.data, count * 4, cudaMemcpyDefault), "reading a buffer");
    world.barrier();
    cudaStreamDestroy(stream);
    return words == std::vector<int32_t>(count, ranks * (ranks - 1) / 2) ? executor.why_copied() : "wrong";
  });
}

TEST(ManyRanks, CopyIfTheyCannotPublish) {
  EXPECT_EQ(why_copied(16), std::vector<std::string>(16));
  for (const std::string& why : why_copied(17)) EXPECT_TRUE(has(why, "16 ranks")) << why;
}

}  // namespace
}  // namespace chorale::test
