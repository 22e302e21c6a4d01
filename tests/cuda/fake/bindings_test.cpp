// Tests bindings of a plan with real bindings and launchers, and kernels that do nothing.

#include <cuda_runtime_api.h>

#include <string>

#include "chorale/executor.hpp"
#include "chorale/json.hpp"
#include "kernels.hpp"
#include "tests/cuda/ranks.hpp"

namespace chorale::test {
namespace {

/// Peers write only to the output. The input is memory that no peer could map.
TEST(Bindings, WhatNoPeerTouchesNeedNotBeShareable) {
  const auto said = on_processes(2, [](World& world) -> std::string {
    const Plan plan = load(std::string(CHORALE_SOURCE_DIR) + "/plans/shipped/allgather_direct_2.json");
    Config config;
    config.backend = "cuda";
    Executor executor(world, config);
    void* pooled = nullptr;
    cuda::check(cudaMallocAsync(&pooled, 4096, nullptr), "memory of a pool");
    void* const out = executor.allocate(4096);
    executor.execute(plan, {.in = pooled, .out = out, .bytes = 4096});
    executor.synchronize();
    const bool as_passed = fake::last_launch().in == pooled && fake::last_launch().out == out;
    cuda::check(cudaFree(pooled), "memory of a pool");
    return as_passed ? "good" : "it is staged";
  });
  EXPECT_EQ(said, std::vector<std::string>(2, "good"));
}

/// Short exchanges run in kernels of their own. One of them also moves parts of units, and other addresses.
TEST(Bindings, RunTheKernelForTheirProgramAndBuffers) {
  const auto said = on_processes(2, [](World& world) -> std::string {
    Config config;
    config.backend = "cuda";
    Executor executor(world, config);
    char* const data = static_cast<char*>(executor.allocate(1 << 20));
    const auto launched = [&](const std::string& name, uint64_t bytes, uint64_t shift) {
      const Plan plan = load(std::string(CHORALE_SOURCE_DIR) + "/plans/shipped/" + name + "_2.json");
      char* const out = data + (1 << 19);
      executor.execute(plan, {.in = data + shift, .out = out, .bytes = bytes, .dtype = DType::f32, .op = {}});
      executor.synchronize();
      return fake::last_kernel();
    };
    if (launched("allgather_packets", 256, 0) != "exchange") return "whole units: " + fake::last_kernel();
    if (launched("allgather_packets", 8, 0) != "exchange of parts") return "parts: " + fake::last_kernel();
    if (launched("allgather_packets", 256, 4) != "exchange of parts")
      return "shifted: " + fake::last_kernel();
    if (launched("allgather_direct", 256, 0) != "interpreter") return "signals: " + fake::last_kernel();
    return "good";
  });
  EXPECT_EQ(said, std::vector<std::string>(2, "good"));
}

/// Plans that encode run in a kernel of their own, in each form of packets as they have none.
TEST(Bindings, RunTheKernelThatEncodes) {
  const auto said = on_processes(2, [](World& world) -> std::string {
    Config config;
    config.backend = "cuda";
    Executor executor(world, config);
    char* const data = static_cast<char*>(executor.allocate(8192));
    const Plan plan = load(std::string(CHORALE_SOURCE_DIR) + "/plans/shipped/allreduce_quantised_2.json");
    Arguments arguments{.in = data, .out = data + 4096, .bytes = 4096, .dtype = DType::bf16};
    for (const PacketForm form : {PacketForm::ll8, PacketForm::ll16, PacketForm::ll128}) {
      arguments.packet = form;
      executor.execute(plan, arguments);
      executor.synchronize();
      if (fake::last_kernel() != "coded interpreter") return fake::last_kernel();
    }
    arguments.dtype = DType::i32;
    try {
      executor.execute(plan, arguments);
      return "integers are encoded";
    } catch (const UsageError& error) {
      const std::string why = error.what();
      return why.find("for f32, f16 and bf16, not for i32") != std::string::npos ? "good" : why;
    }
  });
  EXPECT_EQ(said, std::vector<std::string>(2, "good"));
}

/// One rank allocates its output anew, and binds another call with it. That closes the old output on its
/// peer, and the peer's binding of the first call becomes useless, too.
TEST(Bindings, OfMemoryThatAPeerHasFreedServeNoCall) {
  const auto said = on_processes(2, [](World& world) -> std::string {
    const Plan plan = load(std::string(CHORALE_SOURCE_DIR) + "/plans/shipped/allgather_direct_2.json");
    Config config;
    config.backend = "cuda";
    Executor executor(world, config);
    void *in = nullptr, *out = nullptr;
    cuda::check(cudaMalloc(&in, 4096), "an input");
    cuda::check(cudaMalloc(&out, 4096), "an output");
    const auto run = [&](uint64_t bytes) {
      executor.execute(plan, {.in = in, .out = out, .bytes = bytes});
      executor.synchronize();
      world.barrier();
    };
    run(4096);
    if (world.rank() == 1) {
      cuda::check(cudaFree(out), "an output");
      cuda::check(cudaMalloc(&out, 4096), "an output");
    }
    run(2048);
    run(4096);
    return "good";
  });
  EXPECT_EQ(said, std::vector<std::string>(2, "good"));
}

}  // namespace
}  // namespace chorale::test
