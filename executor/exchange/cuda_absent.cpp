#include "carrier.hpp"

namespace chorale::exchange {

std::unique_ptr<Carrier> cuda_carrier(World&, const ExchangeOptions&, const Config&) {
  throw UsageError(
      "backend 'cuda': this library was built without CUDA; build it where nvcc is on the PATH, or use "
      "backend 'cpu'");
}

}  // namespace chorale::exchange
