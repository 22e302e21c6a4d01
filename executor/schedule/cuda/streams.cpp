#include "streams.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "executor/cuda/device/device.hpp"
#include "executor/cuda/device/driver.hpp"
#include "executor/cuda/device/error.hpp"
#include "executor/schedule/resources.hpp"
#include "executor/system/thrown.hpp"
#include "executor/world/collective_try.hpp"
#include "executor/world/group.hpp"
#include "kernels.hpp"

namespace chorale::schedule_run {

using schedule::StepKind;

namespace {
/// This many blocks are enough to fill a link. They leave most of the GPU for computing.
constexpr uint32_t most_copy_blocks = 32;
}  // namespace

CudaStreams::CudaStreams(Bound bound)
    : bound_(std::move(bound)),
      world_(bound_.world),
      imports_(world_),
      device_(imports_.devices()[bound_.rank()].ordinal),
      pool_(world_, imports_),
      memory_(bound_, imports_, pool_),
      program_(make_rank_program(bound_.unrolled, bound_.rank(), memory_.places(), bound_.functions, {}, {})),
      launches_(world_, bound_.config, bound_.plans, program_) {
  world::collective_try(world_, [this] {
    for (size_t stream = 0; stream < program_.streams.size(); ++stream)
      streams_.emplace_back("a stream of a schedule");
    for (const Action& action : program_.actions) {
      std::vector<cuda::OwnedEvent>& mine = events_.emplace_back();
      for (const Action::Point& point : action.points)
        if (!point.mark || action.kind == StepKind::mark) mine.emplace_back("an event of a schedule");
    }
    watcher_ = std::make_unique<Watcher>(bound_, program_, taken_flags());
    load_functions();
  });
  // All CUDA streams must be empty before the world runs again after a reset.
  world_.group().before_reset(world_.rank(), this, [this] {
    const cuda::CurrentDevice on(device_);
    cuda::check_quietly(cudaDeviceSynchronize(), "waiting for running kernels");
  });
}

/// Waits until all enqueued work has ended, because peers may need it. The work ends because all waits end.
CudaStreams::~CudaStreams() {
  world_.group().before_reset(world_.rank(), this, {});
  const cuda::CurrentDevice on(device_);
  cuda::check_quietly(cudaDeviceSynchronize(), "waiting for a schedule's runs");
  watcher_.reset();
}

/// Launches the kernel of copies, and calls every built-in function once with unused results.
/// CUDA loads a kernel at its first launch, and may wait for all CUDA streams to do so. In a run, that could
/// wait forever: a stream may wait for a peer that waits for work that this rank has not enqueued yet.
/// Workspaces are made here too, so that none is made in a run.
void CudaStreams::load_functions() {
  if (std::any_of(program_.actions.begin(), program_.actions.end(),
                  [this](const Action& action) { return gets_by_threads(action); })) {
    const cuda::OwnedStream stream("a stream for first calls");
    cuda::check(enqueue_copy({}, 1, stream.get()), "the first copy by threads");
    cuda::check(cudaStreamSynchronize(stream.get()), "the first copy by threads");
  }
  std::set<std::string> done;
  for (const Action& action : program_.actions) {
    if (!action.function) continue;
    const std::string name = action.kind == StepKind::fill ? "fill" : action.step->name;
    if (!action.step->built_in && bound_.applications.count(name)) continue;
    std::string what = fmt::format("{} {}", action.stream, name);
    for (const auto& views : {action.writes, action.reads})
      for (const TensorView& view : views)
        what += fmt::format(" {} {}", view.text(), fmt::join(view.strides, " "));
    for (const auto& [key, value] : action.step->attributes) what += fmt::format(" {} {}", key, value);
    if (!done.insert(what).second) continue;
    Action elsewhere = action;
    std::vector<cuda::DeviceMemory> room;
    for (TensorView& view : elsewhere.writes) {
      uint64_t elements = 1;
      for (size_t axis = 0; axis < view.shape.size(); ++axis)
        elements += (std::max<uint64_t>(view.shape[axis], 1) - 1) * view.strides[axis];
      room.emplace_back(elements * dtype_size(view.dtype), "the result of a first call");
      view.data = room.back().data();
    }
    const cuda::OwnedStream stream("a stream for first calls");
    call(elsewhere, stream.get());
    cuda::check(cudaStreamSynchronize(stream.get()), "a first call");
  }
}

std::vector<uint32_t*> CudaStreams::taken_flags() const {
  std::vector<uint32_t*> flags;
  for (const Action& action : program_.actions)
    flags.push_back(action.kind == StepKind::take ? memory_.on_host(action.step->flag) : nullptr);
  return flags;
}

// -- Enqueueing

void CudaStreams::run(void* stream) {
  if (enqueues_) refuse_in_a_function("run");
  check();
  const cuda::CurrentDevice on(device_);
  const cudaStream_t main = static_cast<cudaStream_t>(stream);
  const FlagSet enqueues(enqueues_);
  try {
    cuda::check(enqueue_count(watcher_->runs(), main), "counting a schedule's runs");
    for (uint32_t index = 0; index < program_.actions.size(); ++index) enqueue(index, main);
  } catch (const std::exception& error) {
    // Stop the world, because peers would wait for work that will never be enqueued.
    world_.abort(error.what());
    check();
  }
}

void CudaStreams::enqueue(uint32_t index, cudaStream_t main) {
  const Action& action = program_.actions[index];
  const cudaStream_t stream = stream_of(action.stream, main);
  switch (action.kind) {
    case StepKind::copy:
    case StepKind::put:
    case StepKind::get:
      copy(action, stream);
      break;
    case StepKind::fill:
    case StepKind::call:
      call(action, stream);
      break;
    case StepKind::launch:
      launch(action, stream);
      break;
    case StepKind::after:
      for (size_t at = 0; at < action.points.size(); ++at) {
        const Action::Point& point = action.points[at];
        // A stream that has done nothing needs no wait, and is not part of a capture.
        if (point.actions == 0 && point.stream != 0) continue;
        const cudaEvent_t event = point.mark ? events_[*point.mark][0].get() : events_[index][at].get();
        if (!point.mark)
          cuda::check(cudaEventRecord(event, stream_of(point.stream, main)), "recording a stream's event");
        cuda::check(cudaStreamWaitEvent(stream, event, 0), "waiting for a stream");
      }
      break;
    case StepKind::mark:
      if (!action.points.empty())
        cuda::check(cudaEventRecord(events_[index][0].get(), stream), "recording the event of a mark");
      break;
    case StepKind::post:
      // The flag becomes visible after everything that the CUDA stream has written, on this GPU and on peers.
      cuda::check(cuda::driver().cuStreamWriteValue32(stream, reinterpret_cast<CUdeviceptr>(action.flag), 1,
                                                      CU_STREAM_WRITE_VALUE_DEFAULT),
                  "setting a flag at a peer");
      break;
    case StepKind::take:
      take(index, stream);
      break;
    default:
      break;
  }
}

void CudaStreams::copy(const Action& action, cudaStream_t stream) {
  const bool by_threads = gets_by_threads(action);
  for (const Copy& copy : action.copies) {
    cudaError_t result = cudaSuccess;
    if (by_threads) {
      result = enqueue_copy(copy, blocks_for(copy.bytes * copy.rows, most_copy_blocks), stream);
    } else if (copy.rows == 1) {
      result = cudaMemcpyAsync(copy.to, copy.from, copy.bytes, cudaMemcpyDefault, stream);
    } else {
      result = cudaMemcpy2DAsync(copy.to, copy.to_pitch, copy.from, copy.from_pitch, copy.bytes, copy.rows,
                                 cudaMemcpyDefault, stream);
    }
    if (result != cudaSuccess)
      cuda::check(result, describe(*bound_.schedule, bound_.unrolled, bound_.rank(), action));
  }
}

/// Returns true if threads must do a get. Within a process CUDA assigns copies out of another GPU's memory to
/// that GPU. It does the copies of all CUDA streams and ranks in the order in which they were enqueued. So a
/// copy behind a wait delays all others, forever if the wait is for one of them. Copies out of another
/// process's memory use the reader's own copy engine.
bool CudaStreams::gets_by_threads(const Action& action) const {
  if (action.kind != StepKind::get) return false;
  const cuda::RankDevice &mine = imports_.devices()[bound_.rank()],
                         &theirs = imports_.devices()[size_t(action.peer)];
  return mine.process == theirs.process && !mine.same_device(theirs);
}

/// Enqueues the wait for a flag. The owner clears the flag, so the same commands are right in every replay of
/// a graph.
void CudaStreams::take(uint32_t index, cudaStream_t stream) {
  const Action& action = program_.actions[index];
  CUstreamBatchMemOpParams all[4] = {};
  const auto write = [](CUstreamBatchMemOpParams& to, uint32_t* word, uint32_t value) {
    to.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    to.writeValue.address = reinterpret_cast<CUdeviceptr>(word);
    to.writeValue.value = value;
    to.writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
  };
  write(all[0], watcher_->at(action.stream), index + 1);
  all[1].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  all[1].waitValue.address = reinterpret_cast<CUdeviceptr>(action.flag);
  all[1].waitValue.value = 1;
  all[1].waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;  // a watcher that releases it writes a larger value
  write(all[2], action.flag, 0);
  write(all[3], watcher_->at(action.stream), 0);
  cuda::check(cuda::driver().cuStreamBatchMemOp(stream, 4, all, 0), "waiting for a flag of a peer");
}

void CudaStreams::call(const Action& action, cudaStream_t stream) {
  try {
    call_function(action, world_, stream);
  } catch (...) {
    throw RunError(RunError::Reason::aborted,
                   fmt::format("{}: {}", describe(*bound_.schedule, bound_.unrolled, bound_.rank(), action),
                               system::thrown_text()));
  }
}

void CudaStreams::launch(const Action& action, cudaStream_t stream) {
  try {
    launches_.execute(action, stream);
  } catch (...) {
    throw RunError(RunError::Reason::aborted,
                   fmt::format("{}: {}", describe(*bound_.schedule, bound_.unrolled, bound_.rank(), action),
                               system::thrown_text()));
  }
}

// -- Ends

void CudaStreams::synchronize(void* stream) {
  if (enqueues_) refuse_in_a_function("synchronize");
  const cuda::CurrentDevice on(device_);
  cuda::check(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)), "waiting for a schedule's runs");
  try {
    launches_.synchronize(stream);
  } catch (const RunError&) {
    check();  // its error includes the state of the streams
    throw;
  }
  check();
}

/// Throws the error of the world or of a launch. Adds the state of this rank's streams, unless the error
/// already includes it.
void CudaStreams::check() {
  try {
    world_.check();
    launches_.check();
  } catch (const RunError& error) {
    const std::string mine = watcher_->report();
    if (mine.empty() || std::string(error.what()).find(mine) != std::string::npos) throw;
    throw RunError(error.reason, std::string(error.what()) + "\n  " + mine);
  }
}

void* CudaStreams::buffer(uint32_t tensor) const { return memory_.places().tensors[bound_.rank()][tensor]; }

Resources cuda_resources() {
  const int device = cuda::current_device();
  int words = 0;
  const CUresult asked =
      cuda::driver().cuDeviceGetAttribute(&words, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, device);
  if (asked == CUDA_SUCCESS && words == 0) {
    throw RunError(
        RunError::Reason::resources,
        fmt::format("the streams of GPU {} cannot wait for words in memory, but host schedules need that",
                    device));
  }
  size_t free = 0, all = 0;
  cuda::check(cudaMemGetInfo(&free, &all), "asking for the free memory of the GPU");
  return {fmt::format("GPU {}", device), free, {}};
}

std::unique_ptr<Streams> make_cuda_streams(Bound bound) {
  return std::make_unique<CudaStreams>(std::move(bound));
}

}  // namespace chorale::schedule_run
