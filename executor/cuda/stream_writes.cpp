#include "stream_writes.hpp"

#include <cassert>

#include "driver.hpp"
#include "error.hpp"

namespace chorale::cuda {

void StreamWrites::add(const uint64_t* word, uint64_t value) {
  assert(count_ < most);
  auto& write = writes_[count_++].writeValue;
  write.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
  write.address = reinterpret_cast<CUdeviceptr>(word);
  write.value64 = value;
  write.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
}

void StreamWrites::enqueue(cudaStream_t stream, const char* what) {
  if (count_ == 0) return;
  check(driver().cuStreamBatchMemOp(stream, count_, writes_.data(), 0), what);
  count_ = 0;
}

}  // namespace chorale::cuda
