#include "streams.hpp"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "state.hpp"

namespace chorale::test::fake {
namespace {

class Stream {
 public:
  explicit Stream(int device) : device(device), thread_([this] { serve(); }) {}
  ~Stream() {
    finish();
    {
      const std::lock_guard lock(mutex_);
      quit_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void enqueue(std::function<void()> work) {
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(work));
    }
    changed_.notify_all();
  }

  void finish() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_.empty() && !busy_; });
  }

  const int device;

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return quit_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const std::function<void()> work = std::move(waiting_.front());
      waiting_.pop_front();
      busy_ = true;
      lock.unlock();
      work();
      lock.lock();
      busy_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool busy_ = false, quit_ = false;
  std::thread thread_;  // last: it uses the others
};

/// The streams of a process; those that are never destroyed live as long as it does.
struct Streams {
  std::mutex mutex;
  std::set<Stream*> all;
  std::map<int, Stream*> defaults;  // by device

  static Streams& get() {
    static Streams* const streams = new Streams;
    return *streams;
  }

  Stream* make(int device) {
    const std::lock_guard lock(mutex);
    return *all.insert(new Stream(device)).first;
  }

  Stream& of(cudaStream_t stream) {
    if (stream) return *reinterpret_cast<Stream*>(stream);
    const std::lock_guard lock(mutex);
    Stream*& known = defaults[current_device()];
    if (!known) all.insert(known = new Stream(current_device()));
    return *known;
  }
};

/// Where a stream has come to.
struct Point {
  std::mutex mutex;
  std::condition_variable changed;
  bool reached = false;
};
struct Event {
  std::shared_ptr<Point> last;
};

}  // namespace

void enqueue(cudaStream_t stream, std::function<void()> work) {
  Streams::get().of(stream).enqueue(std::move(work));
}

}  // namespace chorale::test::fake

using namespace chorale::test::fake;

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = reinterpret_cast<cudaStream_t>(Streams::get().make(current_device()));
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  Stream* const gone = reinterpret_cast<Stream*>(stream);
  {
    const std::lock_guard lock(Streams::get().mutex);
    Streams::get().all.erase(gone);
  }
  delete gone;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  Streams::get().of(stream).finish();
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  std::vector<Stream*> mine;
  {
    const std::lock_guard lock(Streams::get().mutex);
    for (Stream* const stream : Streams::get().all)
      if (stream->device == current_device()) mine.push_back(stream);
  }
  for (Stream* const stream : mine) stream->finish();
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(new Event);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete reinterpret_cast<Event*>(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const auto point = std::make_shared<Point>();
  reinterpret_cast<Event*>(event)->last = point;
  enqueue(stream, [point] {
    const std::lock_guard lock(point->mutex);
    point->reached = true;
    point->changed.notify_all();
  });
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const std::shared_ptr<Point> point = reinterpret_cast<Event*>(event)->last;
  if (!point) return cudaSuccess;
  enqueue(stream, [point] {
    std::unique_lock lock(point->mutex);
    point->changed.wait(lock, [&] { return point->reached; });
  });
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  enqueue(stream, [=] { std::memcpy(to, from, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind, cudaStream_t stream) {
  if (width > to_pitch || width > from_pitch) return cudaErrorInvalidPitchValue;
  enqueue(stream, [=] {
    for (size_t row = 0; row < height; ++row)
      std::memcpy(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch,
                  width);
  });
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* at, int value, size_t bytes, cudaStream_t stream) {
  enqueue(stream, [=] { std::memset(at, value, bytes); });
  return cudaSuccess;
}

}  // extern "C"
