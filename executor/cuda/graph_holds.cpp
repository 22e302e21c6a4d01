#include "graph_holds.hpp"

#include "executor/cuda/device/error.hpp"

namespace chorale::cuda {
namespace {

using Count = std::shared_ptr<std::atomic<int>>;

void CUDART_CB let_go(void* held) {
  Count* const count = static_cast<Count*>(held);
  (*count)->fetch_sub(1, std::memory_order_release);
  delete count;
}

}  // namespace

void GraphHolds::add(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  cudaGraph_t graph = nullptr;
#if CUDART_VERSION >= 13000
  check(cudaStreamGetCaptureInfo(stream, &status, &id, &graph, nullptr, nullptr, nullptr),
        "asking which graph a stream captures");
#else
  check(cudaStreamGetCaptureInfo_v2(stream, &status, &id, &graph, nullptr, nullptr),
        "asking which graph a stream captures");
#endif
  if (status != cudaStreamCaptureStatusActive || id == last_) return;
  auto held = std::make_unique<Count>(graphs_);
  cudaUserObject_t object = nullptr;
  check(cudaUserObjectCreate(&object, held.get(), let_go, 1, cudaUserObjectNoDestructorSync),
        "attaching a plan to a graph");
  graphs_->fetch_add(1, std::memory_order_relaxed);
  static_cast<void>(held.release());  // from here on let_go() owns it, even if the graph does not take it
  const cudaError_t result = cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove);
  if (result != cudaSuccess) check_quietly(cudaUserObjectRelease(object, 1), "cudaUserObjectRelease");
  check(result, "attaching a plan to a graph");
  last_ = id;
}

}  // namespace chorale::cuda
