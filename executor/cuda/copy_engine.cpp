#include "copy_engine.hpp"

#include <cassert>

#include "chorale/device/atomics.hpp"
#include "device.hpp"
#include "error.hpp"

namespace chorale::cuda {
namespace {

constexpr size_t most_under_way = 128;  ///< copies: more wait until one has ended

}  // namespace

void CopyEngine::Words::add(uint64_t* word, uint64_t value) {
  assert(count_ < most);
  all_[count_++] = {word, value};
}

void CopyEngine::Words::write() const {
  for (unsigned at = 0; at < count_; ++at) store_release(all_[at].word, all_[at].value);
}

CopyEngine::CopyEngine(const char* what, size_t streams) : what_(what) {
  while (streams_.size() < streams) streams_.emplace_back(what);
  while (streams != 0 && events_.size() < most_under_way) events_.emplace_back(what);
}

void CopyEngine::copy(void* to, const void* from, uint64_t bytes, size_t which) {
  while (copies_ - ended_ == most_under_way) work();
  const OutsideCapture outside;
  const cudaStream_t stream = streams_[which % streams_.size()].get();
  const size_t event = copies_ % most_under_way;
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), what_);
  check(cudaEventRecord(events_[event].get(), stream), what_);
  ++copies_;
  waiting_.push_back({event, {}});
}

void CopyEngine::then(const Words& words) { waiting_.push_back({std::nullopt, words}); }

bool CopyEngine::work() {
  if (waiting_.empty()) return false;
  const OutsideCapture outside;
  while (!waiting_.empty()) {
    const Waiting& first = waiting_.front();
    if (first.copy) {
      const cudaError_t result = cudaEventQuery(events_[*first.copy].get());
      if (result == cudaErrorNotReady) break;
      ++ended_;
      if (result != cudaSuccess) {
        waiting_.clear();
        ended_ = copies_;
        check(result, what_);
      }
    }
    first.words.write();
    waiting_.pop_front();
  }
  return true;
}

void CopyEngine::finish() {
  for (const OwnedStream& stream : streams_) check(cudaStreamSynchronize(stream.get()), what_);
  work();
}

void CopyEngine::drop() {
  waiting_.clear();
  ended_ = copies_;
  for (const OwnedStream& stream : streams_) check(cudaStreamSynchronize(stream.get()), what_);
}

}  // namespace chorale::cuda
