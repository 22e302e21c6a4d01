#include "proxy_copies.hpp"

#include <cassert>

#include "chorale/device/atomics.hpp"
#include "executor/cuda/device/device.hpp"
#include "executor/cuda/device/error.hpp"

namespace chorale::cuda {
namespace {

/// Limits the copies at a time; a further one waits until one has ended.
constexpr size_t most_under_way = 128;

}  // namespace

void ProxyCopies::Words::add(uint64_t* word, uint64_t value) {
  assert(count_ < most);
  all_[count_++] = {word, value};
}

void ProxyCopies::Words::write() const {
  for (unsigned at = 0; at < count_; ++at) store_release(all_[at].word, all_[at].value);
}

ProxyCopies::ProxyCopies(const char* what, size_t streams) : what_(what) {
  while (streams_.size() < streams) streams_.emplace_back(what);
  while (streams != 0 && events_.size() < most_under_way) events_.emplace_back(what);
}

void ProxyCopies::copy(void* to, const void* from, uint64_t bytes, size_t which) {
  while (copies_ - ended_ == most_under_way) work();
  const OutsideCapture outside;
  const cudaStream_t stream = streams_[which % streams_.size()].get();
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), what_);
  check(cudaEventRecord(events_[copies_ % most_under_way].get(), stream), what_);
  ++copies_;
}

void ProxyCopies::then(const Words& words) { waiting_.push_back({copies_, words}); }

bool ProxyCopies::work() {
  if (waiting_.empty() && ended_ == copies_) return false;
  const OutsideCapture outside;
  do {
    for (; !waiting_.empty() && waiting_.front().copies <= ended_; waiting_.pop_front())
      waiting_.front().words.write();
  } while (ended_ != copies_ && oldest_has_ended());
  return true;
}

/// Returns true if the oldest copy has ended, and then counts it.
bool ProxyCopies::oldest_has_ended() {
  const cudaError_t result = cudaEventQuery(events_[ended_ % most_under_way].get());
  if (result == cudaErrorNotReady) return false;
  if (result != cudaSuccess) {
    waiting_.clear();
    ended_ = copies_;
    check(result, what_);
  }
  ++ended_;
  return true;
}

void ProxyCopies::finish() {
  for (const OwnedStream& stream : streams_) check(cudaStreamSynchronize(stream.get()), what_);
  work();
}

void ProxyCopies::drop() {
  waiting_.clear();
  ended_ = copies_;
  for (const OwnedStream& stream : streams_) check(cudaStreamSynchronize(stream.get()), what_);
}

}  // namespace chorale::cuda
