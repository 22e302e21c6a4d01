#include "executor/binding/backend.hpp"

namespace chorale {

std::unique_ptr<Backend> make_cuda_backend(World&, const Config&) {
  throw UsageError(
      "backend 'cuda': this library was built without CUDA; build it where nvcc is on the PATH, or use "
      "backend 'cpu'");
}

}  // namespace chorale
