#include "p2p_connection.hpp"

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <chorale/exchange.hpp>
#include <deque>
#include <set>
#include <thread>
#include <utility>

#include "errors.hpp"
#include "stream_order.hpp"

namespace chorale::torch_backend {
namespace {

/// Gives the shape of a p2p connection's exchange, which takes 12 MB on each of the two ranks.
constexpr ExchangeOptions shape{.slot_bytes = 128 << 10, .slots = 3, .blocks_per_peer = 16};

/// Records the streams that p2p connections use, by GPU. The pool hands out its 32 streams in turn, again and
/// again, and two connections on the same stream would wait for each other.
struct Taken {
  std::mutex mutex;
  std::set<std::pair<c10::DeviceIndex, c10::StreamId>> streams;
};
Taken& taken() {
  static Taken all;
  return all;
}

}  // namespace

void Transfer::finish(std::exception_ptr error) {
  const std::lock_guard<std::mutex> lock(mutex_);
  done_ = true;
  error_ = std::move(error);
  finished_.notify_all();
}

void Transfer::wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  finished_.wait(lock, [this] { return done_; });
  if (error_) std::rethrow_exception(error_);
  if (end_) end_->block(c10::impl::VirtualGuardImpl(end_->device_type()).getStream(tensor_.device()));
}

bool Transfer::ended() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return done_ && (error_ || !end_ || end_->query());
}

/// Holds the state of a p2p connection. It outlives the connection if its thread still waits for the other
/// rank.
struct P2pConnection::Core {
  Core(std::string at, std::string name, bool sends, Config with, std::optional<c10::Stream> on)
      : address(std::move(at)),
        where(name + ", here ranks 0 and 1: "),
        sends(sends),
        config(std::move(with)),
        stream(on) {}

  const std::string address, where;
  const bool sends;
  const Config config;
  const std::optional<c10::Stream> stream;

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::shared_ptr<Transfer>> queue;  ///< the first one may be running
  bool open = false;                            ///< the ends have connected, or have failed to connect
  bool idle = false;                            ///< on a GPU: the ends have connected, and nothing is queued
  bool quit = false;
  bool settled = false;       ///< nothing is on the stream
  std::exception_ptr failed;  ///< the reason why the ends failed to connect
  std::optional<World> world;
  std::optional<Exchange> exchange;
  std::thread thread;

  int rank() const { return sends ? 0 : 1; }

  void join() {
    std::optional<c10::StreamGuard> on_its_device;
    if (stream) on_its_device.emplace(*stream);
    with_torch_errors(
        [&] {
          World joined = World::join(address, rank(), 2, config.join());
          const std::lock_guard<std::mutex> lock(mutex);
          world.emplace(std::move(joined));
        },
        where);
    with_torch_errors(
        [&] {
          Exchange made(*world, stream ? shape : ExchangeOptions{}, config);
          const std::lock_guard<std::mutex> lock(mutex);
          exchange.emplace(std::move(made));
        },
        where);
  }
};

P2pConnection::P2pConnection(const std::string& address, const std::string& name, bool sends,
                             const Config& config, std::optional<c10::Stream> stream)
    : core_(std::make_shared<Core>(address, name, sends, config, stream)) {
  core_->thread = std::thread([core = core_] { work(core); });
}

P2pConnection::~P2pConnection() {
  bool open;
  {
    const std::lock_guard<std::mutex> lock(core_->mutex);
    core_->quit = true;
    open = core_->open;
    if (core_->world && (!core_->queue.empty() || (core_->idle && !core_->settled)))
      core_->world->abort("torch.distributed destroyed the process group");
  }
  core_->changed.notify_all();
  // If the thread still waits for the other rank, it runs until its deadline.
  open ? core_->thread.join() : core_->thread.detach();
  try {
    if (open && !core_->settled) settle();  // kernels use the memory that is freed next
  } catch (const std::exception& error) {
    TORCH_WARN("chorale: a process group is destroyed before its messages have ended: ", error.what());
  }
  if (!core_->stream) return;
  const std::lock_guard<std::mutex> lock(taken().mutex);
  taken().streams.erase({core_->stream->device().index(), core_->stream->id()});
}

void P2pConnection::work(const std::shared_ptr<Core>& core) {
  std::exception_ptr failed;
  try {
    core->join();
  } catch (...) {
    failed = std::current_exception();
  }
  std::unique_lock<std::mutex> lock(core->mutex);
  if (core->quit && !failed)
    failed = std::make_exception_ptr(std::runtime_error("chorale: the process group was destroyed"));
  core->failed = failed;
  core->open = true;
  core->changed.notify_all();
  for (;;) {
    core->idle = core->stream && core->queue.empty();
    core->changed.wait(lock, [&] { return core->quit || !core->queue.empty(); });
    if (core->queue.empty()) return;
    const std::shared_ptr<Transfer> transfer = core->queue.front();
    lock.unlock();
    run(*core, *transfer, core->stream.has_value());
    lock.lock();
    core->queue.pop_front();
    core->changed.notify_all();
  }
}

/// Runs one transfer. Only one thread at a time calls it: the connection's thread, or, while that is idle,
/// the thread that holds the mutex.
void P2pConnection::run(Core& core, Transfer& transfer, bool barrier_first) {
  const at::Tensor& tensor = transfer.tensor_;
  std::exception_ptr failed = core.failed;
  try {
    if (!failed) {
      // The ranks run a barrier first, because a kernel that waits for its peer can block work that the peer
      // needs. CUDA may want an idle GPU to load a kernel, and streams may share a queue. A receive that
      // starts before the send has hung here.
      if (barrier_first) with_torch_errors([&] { core.world->barrier(); }, core.where);
      std::optional<c10::StreamGuard> on_its_stream;
      if (core.stream) {
        on_its_stream.emplace(*core.stream);
        transfer.ready_->block(*core.stream);
      }
      void* const stream = core.stream ? core.stream->native_handle() : nullptr;
      with_torch_errors(
          [&] {
            const int peer = 1 - core.rank();
            if (core.sends) {
              core.exchange->send(tensor.data_ptr(), tensor.nbytes(), peer, stream);
            } else {
              core.exchange->recv(tensor.data_ptr(), tensor.nbytes(), peer, stream);
            }
          },
          core.where);
      if (core.stream) {
        tensor.record_stream(*core.stream);
        transfer.end_.emplace(core.stream->device_type());
        transfer.end_->record(*core.stream);
      }
    }
  } catch (...) {
    failed = std::current_exception();
  }
  transfer.finish(failed);
}

std::shared_ptr<Transfer> P2pConnection::enqueue(const at::Tensor& tensor) {
  auto transfer = std::make_shared<Transfer>(tensor);
  bool captured = false;
  if (core_->stream) {
    const c10::Stream current =
        c10::impl::VirtualGuardImpl(core_->stream->device_type()).getStream(core_->stream->device());
    captured = capture_of(current) != 0;
    transfer->ready_.emplace(core_->stream->device_type());
    transfer->ready_->record(current);
  }
  const std::lock_guard<std::mutex> lock(core_->mutex);
  core_->settled = false;
  if (captured) {
    TORCH_CHECK(core_->idle, "chorale: ", core_->where,
                "a CUDA graph captures a message before an earlier message of these two ranks has ended");
    run(*core_, *transfer, false);
    if (transfer->error_) std::rethrow_exception(transfer->error_);
  } else {
    core_->queue.push_back(transfer);
    core_->idle = false;
    core_->changed.notify_all();
  }
  return transfer;
}

void P2pConnection::check() {
  const std::lock_guard<std::mutex> lock(core_->mutex);
  if (core_->failed) std::rethrow_exception(core_->failed);
  if (core_->idle) with_torch_errors([&] { core_->exchange->check(); }, core_->where);
}

void P2pConnection::settle() {
  std::unique_lock<std::mutex> lock(core_->mutex);
  core_->changed.wait(lock, [this] { return core_->queue.empty(); });
  if (!core_->idle || !core_->exchange) return;
  core_->settled = true;
  lock.unlock();  // so that an abort may come meanwhile
  with_torch_errors([&] { core_->exchange->synchronize(core_->stream->native_handle()); }, core_->where);
}

void P2pConnection::abort(const std::string& why) {
  const std::lock_guard<std::mutex> lock(core_->mutex);
  if (core_->world) core_->world->abort(why);
}

c10::Stream stream_for_line(const c10::Device& device) {
  const c10::impl::VirtualGuardImpl guard(device.type());
  const std::lock_guard<std::mutex> lock(taken().mutex);
  for (int look = 0; look < 64; ++look) {
    const c10::Stream stream = guard.getStreamFromGlobalPool(device, /*isHighPriority=*/false);
    if (taken().streams.emplace(device.index(), stream.id()).second) return stream;
  }
  TORCH_WARN_ONCE(
      "chorale: more pairs of ranks send and receive than there are streams: some wait for each other");
  return guard.getStreamFromGlobalPool(device, /*isHighPriority=*/false);
}

}  // namespace chorale::torch_backend
