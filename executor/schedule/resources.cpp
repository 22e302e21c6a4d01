#include "resources.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "executor/system/available_memory.hpp"
#include "sm_copies.hpp"

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

/// Checks that there is room for the blocks of SM copies. They wait for blocks of peers, so all that may run
/// at the same time must fit on the machine together.
void check_blocks(const Bound& bound, const Resources& there) {
  const schedule::Concrete& all = bound.unrolled.concrete;
  const std::vector<uint64_t> by_stream = bound.unrolled.channels.blocks_by_stream(all, bound.rank());
  uint64_t blocks = 0;
  std::string streams;
  for (size_t stream = 0; stream < by_stream.size(); ++stream) {
    if (by_stream[stream] == 0) continue;
    blocks += by_stream[stream];
    streams += fmt::format("{}'{}' {}", streams.empty() ? "" : ", ", all.streams[stream], by_stream[stream]);
  }
  if (blocks <= *there.most_blocks) return;
  throw RunError(
      RunError::Reason::resources,
      fmt::format(
          "transfers of schedule '{}' have {} thread blocks at a time on rank {} (stream {}), and they wait "
          "for each other, but {} holds {} of them; use fewer streams, or a smaller CHORALE_MOVER_BLOCKS",
          bound.plan, blocks, bound.rank(), streams, there.where, *there.most_blocks));
}

}  // namespace

uint64_t bytes_to_allocate(const Bound& bound) {
  uint64_t bytes = bytes_of_links(bound.unrolled);
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
  if (there.most_blocks) check_blocks(bound, there);
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
