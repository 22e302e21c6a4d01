// Runs reductions by operators that a program created: it multiplies the input and then sums the products.

#include <algorithm>

#include "communicator.hpp"

namespace chorale::nccl {
namespace {

/// Limits the memory for the products of reductions other than all-reduces, in bytes.
constexpr uint64_t most_scaled = uint64_t(64) << 20;
constexpr uint64_t unit = 128;  ///< bytes; aligned parts move faster

}  // namespace

/// Returns memory for products. Memory that became too small stays, because CUDA graphs may hold it.
void* Communicator::memory_for_products(uint64_t bytes) {
  if (bytes > products_bytes_) {
    uint64_t size = 4096;
    while (size < bytes) size *= 2;
    products_.push_back(device_->allocate(size));
    products_bytes_ = size;
  }
  return products_.back()->at();
}

/// Returns the parts of a reduction, whose sizes are the same on all ranks. The products of an all-reduce go
/// to the place of the result, and are summed in place. Those of other reductions go to memory of this
/// communicator. A reduce does this on the root too, because either all ranks or none pass registered memory.
std::vector<Communicator::Scaled> Communicator::scaled_parts(const Task& task) {
  const uint64_t width = element_bytes(task.type);
  const char* const in = static_cast<const char*>(task.send);
  char* const out = static_cast<char*>(task.recv);
  Task sum = task;
  sum.factor.reset();
  if (task.function == Function::ncclAllReduce || ranks() == 1) {
    sum.send = out;
    return {{out, in, 1, task.count, 0, sum}};
  }
  const uint64_t blocks = task.function == Function::ncclReduceScatter ? uint64_t(ranks()) : 1;
  const uint64_t most = std::max<uint64_t>(most_scaled / blocks / unit, 1) * unit / width;
  void* const products = memory_for_products(std::min(task.count, most) * blocks * width);
  std::vector<Scaled> parts;
  for (uint64_t begin = 0; begin < task.count; begin += most) {
    sum.count = std::min(task.count - begin, most);
    sum.send = products;
    sum.recv = out ? out + begin * width : nullptr;
    parts.push_back({products, in + begin * width, blocks, sum.count, task.count * width, sum});
  }
  return parts;
}

void Communicator::run_scaled(const Task& task) {
  const DType dtype = reduction_of(task.type, ncclSum).dtype;
  for (const Scaled& part : scaled_parts(task)) {
    const uint64_t bytes = part.elements * element_bytes(task.type);
    for (uint64_t block = 0; block < part.blocks; ++block) {
      executor_.scale(static_cast<char*>(part.products) + block * bytes, part.in + block * part.distance,
                      part.elements, dtype, *task.factor, task.stream);
    }
    run_collective(part.sum);
  }
}

}  // namespace chorale::nccl
