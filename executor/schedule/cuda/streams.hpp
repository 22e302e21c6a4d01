/// \file
/// On a GPU the streams of a schedule are CUDA streams.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "executor/cuda/device/stream.hpp"
#include "executor/schedule/backend.hpp"
#include "memory.hpp"

namespace chorale::schedule_run {

/// Watches at which wait for a peer each stream is; the streams record this for the host.
///
/// A CUDA stream that waits for a word in memory knows no deadline and no abort, so a thread watches. It
/// stops the world when a stream has been at the same take of the same run for too long. After the world has
/// stopped, it sets this rank's flags until every stream has reached its end.
class Watcher {
 public:
  /// \param flags by action: the flag that it takes, at the host's address; null: it takes none
  Watcher(const Bound& bound, const RankProgram& program, std::vector<uint32_t*> flags);
  ~Watcher();

  /// Returns the word of a stream. The stream writes `action + 1` there before the take `action`, and 0 after
  /// it.
  uint32_t* at(uint32_t stream) const { return at_.device() + stream; }
  /// Returns the word that counts the runs.
  uint64_t* runs() const { return runs_.device(); }

  /// Returns the state of this rank's streams when the world stopped; "" if none was at a wait.
  std::string report() const;

 private:
  void watch();
  void look();
  void release();

  const Bound& bound_;
  const RankProgram& program_;
  const std::vector<uint32_t*> flags_;
  cuda::HostArray<uint32_t> at_;
  cuda::HostArray<uint64_t> runs_;

  struct Stand {
    uint32_t at = 0;
    uint64_t run = 0;
    std::chrono::steady_clock::time_point since{};
  };
  std::vector<Stand> stands_;  // used only by the thread
  mutable std::mutex mutex_;
  std::string report_;  // guarded by mutex_
  std::atomic<bool> quit_{false};
  std::thread thread_;
};

class CudaStreams final : public Streams {
 public:
  explicit CudaStreams(Bound bound);
  ~CudaStreams() override;

  void run(void* stream) override;
  void synchronize(void* stream) override;
  void check() override;
  void* buffer(uint32_t tensor) const override;

 private:
  void load_functions();
  void enqueue(uint32_t index, cudaStream_t main);
  void copy(const Action& action, cudaStream_t stream);
  bool gets_by_threads(const Action& action) const;
  void call(const Action& action, cudaStream_t stream);
  void launch(const Action& action, cudaStream_t stream);
  void take(uint32_t index, cudaStream_t stream);
  cudaStream_t stream_of(uint32_t stream, cudaStream_t main) const {
    return stream == 0 ? main : streams_[stream].get();
  }
  std::vector<uint32_t*> taken_flags() const;

  bool enqueues_ = false;  ///< run() is in progress
  Bound bound_;
  World& world_;
  cuda::Imports imports_;
  const int device_;
  cuda::Pool pool_;
  CudaMemory memory_;
  RankProgram program_;
  Launches launches_;
  std::vector<cuda::OwnedStream> streams_;             // by stream; "main" is the one that run() is given
  std::vector<std::vector<cuda::OwnedEvent>> events_;  // by action: one for each of its points
  std::unique_ptr<Watcher> watcher_;
};

}  // namespace chorale::schedule_run
