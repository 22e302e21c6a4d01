// Multiplies elements of all types by a factor on a GPU, eagerly and in a graph, and compares with the scalar
// oracle.

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <chorale/world.hpp>
#include <vector>

#include "executor/cuda/device/device_memory.hpp"
#include "executor/cuda/device/error.hpp"
#include "tests/scaled.hpp"

namespace chorale::test {
namespace {

/// Runs the cases on a stream, which a graph captures or not.
std::string wrong_on_stream(bool graph) {
  std::vector<World> worlds = World::local(1);
  Config config = Config::load();
  config.backend = "cuda";
  Executor executor(worlds[0], config);
  cudaStream_t stream = nullptr;
  cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
  const std::string wrong = scale_wrongly([&](const ScaleCase& of) {
    const size_t bytes = of.input.size();
    const cuda::DeviceMemory in(bytes + of.shift, "input"), out(bytes + of.shift, "output"),
        factor(of.factor.size(), "factor");
    char* const from = static_cast<char*>(in.data()) + of.shift;
    char* const to = of.in_place ? from : static_cast<char*>(out.data()) + of.shift;
    cuda::copy_to_device(from, of.input.data(), bytes, "the input");
    if (!graph) cuda::copy_to_device(factor.data(), of.factor.data(), of.factor.size(), "the factor");
    if (graph) cuda::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "a capture");
    executor.scale(to, from, of.elements, of.dtype, factor_of(of, factor.data()), stream);
    // The factor is read when the graph runs.
    cudaGraph_t captured = nullptr;
    cudaGraphExec_t replay = nullptr;
    if (graph) {
      cuda::check(cudaStreamEndCapture(stream, &captured), "the end of a capture");
      cuda::check(cudaGraphInstantiate(&replay, captured, 0), "a graph");
      cuda::copy_to_device(factor.data(), of.factor.data(), of.factor.size(), "the factor");
      cuda::check(cudaGraphLaunch(replay, stream), "a launch");
    }
    executor.synchronize(stream);
    if (graph) {
      cudaGraphExecDestroy(replay);
      cudaGraphDestroy(captured);
    }
    oracle::Bytes result(bytes);
    cuda::check(cudaMemcpy(result.data(), to, bytes, cudaMemcpyDeviceToHost), "the output");
    return result;
  });
  cudaStreamDestroy(stream);
  return wrong;
}

TEST(ScaleOnGpu, GivesTheProductsOfTheOracle) { EXPECT_EQ(wrong_on_stream(false), ""); }
TEST(ScaleOnGpu, ReadsTheFactorWhenAGraphRuns) { EXPECT_EQ(wrong_on_stream(true), ""); }

}  // namespace
}  // namespace chorale::test
