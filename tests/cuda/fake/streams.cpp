#include "streams.hpp"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "state.hpp"

namespace chorale::test::fake {
namespace {

struct Graph;

/// Returns a number that no stream and no capture had before.
unsigned long long next_number() {
  static std::atomic<unsigned long long> next = 1;
  return next++;
}

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
  const unsigned long long number = next_number();
  Graph* capture = nullptr;  ///< the graph that captures the work, during a capture

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
  std::thread thread_;  // is last because it uses the other members
};

/// Holds the streams of a process. Streams that are never destroyed live as long as the process.
struct Streams {
  std::mutex mutex;
  // A stream lives until its destruction, and until those who wait for the whole device have seen its end.
  std::map<Stream*, std::shared_ptr<Stream>> all;
  std::map<int, Stream*> defaults;  // by device

  static Streams& get() {
    static Streams* streams = [] {
      // A fork copies no threads, so the child begins without streams.
      pthread_atfork(nullptr, nullptr, [] { streams = new Streams; });
      return new Streams;
    }();
    return *streams;
  }

  Stream* make(int device) {
    const std::lock_guard lock(mutex);
    return add(device);
  }

  Stream& of(cudaStream_t stream) {
    if (stream) return *reinterpret_cast<Stream*>(stream);
    const std::lock_guard lock(mutex);
    Stream*& known = defaults[current_device()];
    if (!known) known = add(current_device());
    return *known;
  }

 private:
  Stream* add(int device) {
    auto made = std::make_shared<Stream>(device);
    return all.emplace(made.get(), made).first->first;
  }
};

/// Reads a GPU's memory for the streams of other GPUs in its process. It does the reads one after the other,
/// in the order in which they were enqueued, whatever each has to wait for.
class Reads {
 public:
  static Reads& of(int device) {
    static std::map<int, Reads>* const all = new std::map<int, Reads>;
    static std::mutex* const mutex = new std::mutex;
    const std::lock_guard lock(*mutex);
    return (*all)[device];
  }

  std::function<void()> enqueued(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    return [this, turn = next_++, work = std::move(work)] {
      std::unique_lock waiting(mutex_);
      changed_.wait(waiting, [&] { return done_ == turn; });
      work();
      ++done_;
      changed_.notify_all();
    };
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t next_ = 0, done_ = 0;
};

/// Returns the device that owns the memory if it was allocated in this process, else -1.
int device_of(const void* memory) {
  const std::lock_guard lock(state().mutex);
  const auto range = state().around(reinterpret_cast<uint64_t>(memory));
  if (range == state().ranges.end() || range->second.kind == Kind::host) return -1;
  if (range->second.kind != Kind::mapped) return range->second.device;
  const Handle& handle = state().handles.at(range->second.handle);
  return handle.created ? handle.device : -1;
}

/// Marks a point in a stream, which has been reached or not.
struct Point {
  std::mutex mutex;
  std::condition_variable changed;
  bool reached = false;
};
struct Event {
  std::shared_ptr<Point> last;
  Graph* graph = nullptr;  // the graph, if it was recorded in a capture; `point` is its point there
  size_t point = 0;
};

void reach(Point& point) {
  const std::lock_guard lock(point.mutex);
  point.reached = true;
  point.changed.notify_all();
}
bool is_reached(Point& point) {
  const std::lock_guard lock(point.mutex);
  return point.reached;
}
void wait_for(Point& point) {
  std::unique_lock lock(point.mutex);
  point.changed.wait(lock, [&] { return point.reached; });
}

using Points = std::vector<std::shared_ptr<Point>>;

/// Calls the function of a user object when its last owner goes: the program, or a graph that holds it.
class UserObject {
 public:
  UserObject(cudaHostFn_t destroy, void* data) : destroy_(destroy), data_(data) {}
  ~UserObject() { destroy_(data_); }
  UserObject(const UserObject&) = delete;

 private:
  const cudaHostFn_t destroy_;
  void* const data_;
};

/// Holds captured work in order. Each node runs on its stream, with the points of this launch.
struct Graph {
  struct Node {
    Stream* stream;
    std::function<void(const Points&)> work;
    Reads* reads = nullptr;  ///< the node takes its turn there
  };
  const unsigned long long number = next_number();
  Stream* origin = nullptr;
  bool broken = false;  ///< a call has ended the capture that no capture allows
  std::vector<Node> nodes;
  size_t points = 0;
  std::vector<std::shared_ptr<UserObject>> held;
};

/// Holds a graph that can be launched. It has its own streams, besides the one on which it is launched.
struct Executable {
  Graph graph;
  std::map<Stream*, std::unique_ptr<Stream>> own;
};

/// Breaks the capture that a stream is in. Returns false if it is in none.
bool break_capture(Stream& stream) {
  if (stream.capture) stream.capture->broken = true;
  return stream.capture != nullptr;
}

}  // namespace

void enqueue(cudaStream_t stream, std::function<void()> work) {
  Stream& on = Streams::get().of(stream);
  if (!on.capture) return on.enqueue(std::move(work));
  on.capture->nodes.push_back({&on, [work = std::move(work)](const Points&) { work(); }});
}

size_t streams() {
  Streams& streams = Streams::get();
  const std::lock_guard lock(streams.mutex);
  return streams.all.size() - streams.defaults.size();
}

void enqueue_copy(cudaStream_t stream, const void* from, std::function<void()> work) {
  Stream& on = Streams::get().of(stream);
  const int device = device_of(from);
  Reads* const reads = device < 0 || device == on.device ? nullptr : &Reads::of(device);
  if (!on.capture) return on.enqueue(reads ? reads->enqueued(std::move(work)) : std::move(work));
  on.capture->nodes.push_back({&on, [work = std::move(work)](const Points&) { work(); }, reads});
}

}  // namespace chorale::test::fake

using namespace chorale::test::fake;

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = reinterpret_cast<cudaStream_t>(Streams::get().make(current_device()));
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  std::shared_ptr<Stream> gone;
  {
    const std::lock_guard lock(Streams::get().mutex);
    const auto at = Streams::get().all.find(reinterpret_cast<Stream*>(stream));
    if (at == Streams::get().all.end()) return cudaErrorInvalidResourceHandle;
    gone = std::move(at->second);
    Streams::get().all.erase(at);
  }
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  Stream& on = Streams::get().of(stream);
  if (break_capture(on)) return cudaErrorStreamCaptureUnsupported;
  on.finish();
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  std::vector<std::shared_ptr<Stream>> mine;
  {
    const std::lock_guard lock(Streams::get().mutex);
    for (const auto& [at, stream] : Streams::get().all)
      if (at->device == current_device()) mine.push_back(stream);
  }
  for (const std::shared_ptr<Stream>& stream : mine) stream->finish();
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
  Event& of = *reinterpret_cast<Event*>(event);
  Stream& on = Streams::get().of(stream);
  if (on.capture && on.capture->broken) return cudaErrorStreamCaptureInvalidated;
  of.graph = on.capture;
  if (of.graph) {
    of.point = of.graph->points++;
    of.graph->nodes.push_back({&on, [at = of.point](const Points& points) { reach(*points[at]); }});
    return cudaSuccess;
  }
  of.last = std::make_shared<Point>();
  on.enqueue([point = of.last] { reach(*point); });
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Event& of = *reinterpret_cast<Event*>(event);
  return !of.last || is_reached(*of.last) ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const std::shared_ptr<Point> last = reinterpret_cast<Event*>(event)->last;
  if (last) wait_for(*last);
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const Event& of = *reinterpret_cast<Event*>(event);
  Stream& on = Streams::get().of(stream);
  if (on.capture && on.capture->broken) return cudaErrorStreamCaptureInvalidated;
  if (of.graph) {
    on.capture = of.graph;  // the stream is a part of the capture from here on
    of.graph->nodes.push_back({&on, [at = of.point](const Points& points) { wait_for(*points[at]); }});
    return cudaSuccess;
  }
  if (on.capture) return cudaErrorStreamCaptureIsolation;
  if (of.last) on.enqueue([point = of.last] { wait_for(*point); });
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  Stream& on = Streams::get().of(stream);
  if (on.capture) return cudaErrorIllegalState;
  on.capture = new Graph;
  on.capture->origin = &on;
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status = Streams::get().of(stream).capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  Graph* const captured = Streams::get().of(stream).capture;
  if (!captured) return cudaErrorIllegalState;
  const std::lock_guard lock(Streams::get().mutex);
  for (const auto& [one, stream] : Streams::get().all)
    if (one->capture == captured) one->capture = nullptr;
  if (captured->broken) {
    delete captured;
    *graph = nullptr;
    return cudaErrorStreamCaptureInvalidated;
  }
  *graph = reinterpret_cast<cudaGraph_t>(captured);
  return cudaSuccess;
}
cudaError_t cudaUserObjectCreate(cudaUserObject_t* made, void* data, cudaHostFn_t destroy, unsigned,
                                 unsigned) {
  *made = reinterpret_cast<cudaUserObject_t>(
      new std::shared_ptr<UserObject>(std::make_shared<UserObject>(destroy, data)));
  return cudaSuccess;
}
cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned) {
  delete reinterpret_cast<std::shared_ptr<UserObject>*>(object);
  return cudaSuccess;
}
/// The graph takes over the program's reference, as with cudaGraphUserObjectMove.
cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned, unsigned) {
  reinterpret_cast<Graph*>(graph)->held.push_back(*reinterpret_cast<std::shared_ptr<UserObject>*>(object));
  return cudaUserObjectRelease(object, 1);
}
#if CUDART_VERSION >= 13000
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* number, cudaGraph_t* graph, const cudaGraphNode_t**,
                                     const cudaGraphEdgeData**, size_t*) {
#else
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* number) {
  return cudaStreamGetCaptureInfo_v2(stream, status, number, nullptr, nullptr, nullptr);
}
cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                        unsigned long long* number, cudaGraph_t* graph,
                                        const cudaGraphNode_t**, size_t*) {
#endif
  Graph* const captured = Streams::get().of(stream).capture;
  *status = captured ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  if (number) *number = captured ? captured->number : 0;
  if (graph) *graph = reinterpret_cast<cudaGraph_t>(captured);
  return cudaSuccess;
}
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* number) {
  Stream& on = Streams::get().of(stream);
  if (break_capture(on)) return cudaErrorStreamCaptureUnsupported;
  *number = on.number;
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete reinterpret_cast<Graph*>(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
  auto* const all = new Executable{*reinterpret_cast<Graph*>(graph), {}};
  for (const Graph::Node& node : all->graph.nodes)
    if (node.stream != all->graph.origin && !all->own.count(node.stream))
      all->own[node.stream] = std::make_unique<Stream>(node.stream->device);
  *made = reinterpret_cast<cudaGraphExec_t>(all);
  return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  Executable& all = *reinterpret_cast<Executable*>(graph);
  const auto points = std::make_shared<Points>();
  for (size_t point = 0; point < all.graph.points; ++point) points->push_back(std::make_shared<Point>());
  for (const Graph::Node& node : all.graph.nodes) {
    const auto own = all.own.find(node.stream);
    Stream& on = own == all.own.end() ? Streams::get().of(stream) : *own->second;
    const std::function<void()> work = [work = node.work, points] { work(*points); };
    on.enqueue(node.reads ? node.reads->enqueued(work) : work);
  }
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete reinterpret_cast<Executable*>(graph);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  if (state().copies_fail) return cudaErrorInvalidValue;
  enqueue_copy(stream, from, [=] {
    if (state().copies_are_slow) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (bytes != 0) std::memcpy(to, from, bytes);  // for no bytes the pointers may be null
  });
  return cudaSuccess;
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind, cudaStream_t stream) {
  if (width > to_pitch || width > from_pitch) return cudaErrorInvalidPitchValue;
  enqueue_copy(stream, from, [=] {
    for (size_t row = 0; row < height; ++row)
      std::memcpy(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch,
                  width);
  });
  return cudaSuccess;
}
/// A copy to a GPU takes the data before it returns. The data arrive when the default stream reaches the
/// copy. CUDA promises no more for memory that is not pinned.
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  if (kind != cudaMemcpyHostToDevice) {
    cudaStreamSynchronize(nullptr);
    return std::memcpy(to, from, bytes), cudaSuccess;
  }
  const char* const begin = static_cast<const char*>(from);
  enqueue(nullptr, [=, taken = std::vector<char>(begin, begin + bytes)] {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::memcpy(to, taken.data(), bytes);
  });
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  enqueue(stream, [=] { function(data); });
  return cudaSuccess;
}
cudaError_t cudaMemset(void* at, int value, size_t bytes) {
  return cudaMemsetAsync(at, value, bytes, nullptr);
}
cudaError_t cudaMemsetAsync(void* at, int value, size_t bytes, cudaStream_t stream) {
  enqueue(stream, [=] { std::memset(at, value, bytes); });
  return cudaSuccess;
}

}  // extern "C"
