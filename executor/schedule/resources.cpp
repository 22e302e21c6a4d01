#include "resources.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <vector>

#include "executor/system/available_memory.hpp"

namespace chorale::schedule_run {
namespace {

constexpr size_t most_named = 3;

/// Returns the tensors that the caller has not given, the largest first.
std::vector<const schedule::ConcreteTensor*> own_tensors(const Bound& bound) {
  std::vector<const schedule::ConcreteTensor*> own;
  for (const schedule::ConcreteTensor& tensor : bound.unrolled.concrete.tensors)
    if (!bound.given(tensor)) own.push_back(&tensor);
  std::stable_sort(own.begin(), own.end(),
                   [](const auto* left, const auto* right) { return left->bytes > right->bytes; });
  return own;
}

}  // namespace

uint64_t bytes_to_allocate(const Bound& bound) {
  uint64_t bytes = 0;
  for (const schedule::ConcreteTensor* tensor : own_tensors(bound))
    if (__builtin_add_overflow(bytes, tensor->bytes, &bytes)) return UINT64_MAX;
  return bytes;
}

void check_resources(const Bound& bound, const Resources& there) {
  const size_t streams = bound.unrolled.concrete.streams.size() - 1;
  if (there.most_streams && streams > *there.most_streams) {
    throw RunError(RunError::Reason::resources,
                   fmt::format("schedule '{}' has {} streams, but {} has room for {}; use a smaller pool",
                               bound.plan, streams, there.where, *there.most_streams));
  }
  const uint64_t needed = bytes_to_allocate(bound);
  if (!there.free_bytes || needed <= *there.free_bytes) return;
  std::string largest;
  for (const schedule::ConcreteTensor* tensor : own_tensors(bound)) {
    if (std::count(largest.begin(), largest.end(), ',') + 1 == most_named) break;
    largest += fmt::format("{}'{}' {}", largest.empty() ? "" : ", ", tensor->name, tensor->bytes);
  }
  throw RunError(
      RunError::Reason::resources,
      fmt::format("schedule '{}' needs {} bytes on rank {} ({}), but {} has {} free; use smaller parameters, "
                  "more ranks, or your own buffers",
                  bound.plan, needed, bound.rank(), largest, there.where, *there.free_bytes));
}

Resources host_resources() {
  Resources all{"this host", {}, {}};
  const uint64_t available = system::available_memory();
  if (available != UINT64_MAX) all.free_bytes = available;
  rlimit threads{};
  if (::getrlimit(RLIMIT_NPROC, &threads) == 0 && threads.rlim_cur != RLIM_INFINITY)
    all.most_streams = threads.rlim_cur;
  return all;
}

}  // namespace chorale::schedule_run
