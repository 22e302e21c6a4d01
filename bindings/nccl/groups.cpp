#include "groups.hpp"

#include <utility>

namespace chorale::nccl::group {
namespace {

thread_local int depth = 0;
thread_local ncclResult_t error = ncclSuccess;

}  // namespace

void start() { ++depth; }

End end() {
  if (depth == 0) return {false, false, ncclInvalidUsage};
  if (--depth > 0) return {true, false, ncclSuccess};
  return {true, true, std::exchange(error, ncclSuccess)};
}

void fail(ncclResult_t result) {
  if (depth > 0) error = result;
}

}  // namespace chorale::nccl::group
