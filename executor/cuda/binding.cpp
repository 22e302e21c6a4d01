#include "binding.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "../cpu/report.hpp"
#include "../world/together.hpp"
#include "device.hpp"
#include "driver.hpp"
#include "error.hpp"
#include "identity.hpp"
#include "kernels.hpp"
#include "monitor.hpp"
#include "recorder.hpp"

namespace chorale::cuda {
namespace {

using interpreter::packet_kind;

constexpr int most_shared_bytes = 200 << 10;  ///< of a block, whatever the plan: the limit is the kernel's

uint64_t up(uint64_t value, uint64_t step) { return (value + step - 1) / step * step; }

bool reduces(const Plan& plan) {
  for (const Gpu& gpu : plan.gpus) {
    for (const ThreadBlock& block : gpu.threadblocks) {
      for (const Op& op : block.ops) {
        if (info(op.code).has(Role::Reduce)) return true;
      }
    }
  }
  return false;
}

/// Which allocation an address lies in; 0 for what is no memory of a device.
uint64_t buffer_id(const void* at) {
  if (!at) return 0;
  unsigned long long id = 0;
  CUpointer_attribute what[] = {CU_POINTER_ATTRIBUTE_BUFFER_ID};
  void* to[] = {&id};
  if (driver().cuPointerGetAttributes(1, what, to, reinterpret_cast<CUdeviceptr>(at)) != CUDA_SUCCESS)
    return 0;
  return id;
}

/// Whether any rank says yes. Collective.
bool any(World& world, bool mine) {
  const std::byte said{mine};
  bool yes = false;
  for (const auto& of : world.allgather(std::span(&said, 1))) yes |= of.at(0) != std::byte{0};
  return yes;
}

}  // namespace

/// Where what lies in a rank's control memory begins. Every rank computes it for every rank.
struct Binding::Parts {
  uint64_t plain, packets, bytes;  // signals are at 0

  Parts(const Plan& plan, uint32_t rank, const interpreter::Layout& layout) {
    const Gpu& gpu = plan.gpus[rank];
    const interpreter::ScratchBytes scratch = interpreter::scratch_bytes(plan, rank, layout);
    const uint64_t channels =
        uint64_t(gpu.channel_count(ChannelType::memory)) + gpu.channel_count(ChannelType::port);
    plain = channels * sizeof(Signal);
    packets = plain + scratch.plain_banks * scratch.plain_bank;
    bytes = std::max<uint64_t>(packets + 2 * scratch.packet_bank, sizeof(Signal));
  }
};

Binding::Binding(const Common& common, const Plan& plan, const Call& call, const Arguments& arguments)
    : chorale::Binding(call),
      common_(common),
      world_(*common.world),
      rank_(uint32_t(world_.rank())),
      plan_(std::make_shared<const Plan>(plan)) {
  std::string error;
  try {
    bound_ = interpreter::bind_plan(plan, rank_, call.bytes, call.dtype, call.packet, call.op);
    placement_ = std::make_unique<interpreter::Placement>(plan, rank_, bound_.layout);
    choose_kernel();
    if (call.packet == PacketForm::ll128) require_whole_lines();
  } catch (const UsageError& wrong) {
    error = wrong.what();
  }
  agree_on_use(world_, error);
  for (uint32_t rank = 0; rank < plan.ranks(); ++rank) {
    for (const BufferKind kind : {BufferKind::input, BufferKind::output}) {
      reached_ |= interpreter::reached_by_peers(plan, rank, kind);
    }
  }
  if (reached_) place_for_peers(arguments);
  make_control();
  world::together(world_, [this] { make_tapes(); });
  common_.monitor->add(this);
  spdlog::debug(
      "rank {} bound plan '{}' to {} bytes on device {}: {} blocks of {} threads, {} bytes of control memory",
      rank_, plan.name, call.bytes, common.device, bound_.image.blocks.size(), threads_, control_.bytes());
}

Binding::~Binding() { common_.monitor->remove(this); }

void Binding::choose_kernel() {
  kernel_ = interpreter_kernel(call().dtype, call().packet, reduces(*plan_));
  if (!kernel_) {
    throw UsageError(
        fmt::format("reductions of {} were left out of this library: configure it with CHORALE_CUDA_DTYPES "
                    "that holds {}",
                    dtype_name(call().dtype), dtype_name(call().dtype)));
  }
  threads_ = uint32_t(std::clamp<uint64_t>(up(plan_->threads_per_block, 32), 32, most_block_threads));
}

/// LL128 packets rely on lines of 128 bytes that arrive whole, as they do over NVLink.
void Binding::require_whole_lines() const {
  const std::vector<RankDevice>& devices = common_.imports->devices();
  const RankDevice& mine = devices[rank_];
  for (size_t peer = 0; peer < devices.size(); ++peer) {
    if (devices[peer].same_device(mine)) continue;
    int device = -1, native = 0;
    const bool known = cudaDeviceGetByPCIBusId(&device, devices[peer].bus_id.data()) == cudaSuccess &&
                       cudaDeviceGetP2PAttribute(&native, cudaDevP2PAttrNativeAtomicSupported, common_.device,
                                                 device) == cudaSuccess;
    cudaGetLastError();  // a device that this process does not see is no failure
    if (known && native != 0) continue;
    throw UsageError(
        fmt::format("packets of form ll128 need NVLink between all GPUs, but {} of rank {} and {} of rank {} "
                    "are not seen to have it: take ll16",
                    mine.text(), rank_, devices[peer].text(), peer));
  }
}

// -- The caller's memory
// ------------------------------------------------------------------------------------------------------

Binding::Passed Binding::passed(const Arguments& arguments) {
  return {arguments.in, arguments.out, buffer_id(arguments.in), buffer_id(arguments.out)};
}

bool Binding::serves(const Arguments& arguments) {
  return !reached_ ||
         (arguments.in == bound_to_.in && arguments.out == bound_to_.out && passed(arguments) == bound_to_);
}

interpreter::Rooms Binding::rooms() {
  interpreter::Rooms rooms;
  rooms.own = [this] {
    if (!own_staging_.data()) own_staging_ = DeviceMemory(bound_.layout.sizes.input, "a copy of the input");
    return own_staging_.data();
  };
  return rooms;
}

/// Collective. What peers cannot map goes through memory that they can.
void Binding::place_for_peers(const Arguments& arguments) {
  bound_to_ = passed(arguments);
  const uint64_t staging_bytes =
      bound_.layout.sizes.input + bound_.layout.sizes.output;  // one behind the other
  bool staged = false;
  std::string error, why;
  interpreter::Rooms rooms;
  // Looked at twice: first whether anybody needs the room, which all ranks then take together.
  char* room = reinterpret_cast<char*>(uintptr_t(1) << 62);
  rooms.shared = [&] {
    staged = true;
    return room;
  };
  rooms.reachable = [&](const char* at, uint64_t bytes) {
    return (at >= room && at < room + staging_bytes) || identity_of(at, bytes, &why).has_value();
  };
  try {
    placed_ = placement_->place(arguments.in, arguments.out, rooms);
  } catch (const UsageError& wrong) {
    error = wrong.what();
  }
  agree_on_use(world_, error);
  if (any(world_, staged)) {
    staging_ = common_.pool->take(staging_bytes);
    room = staging_.at(int(rank_));
    placed_ = placement_->place(arguments.in, arguments.out, rooms);
    if (staged && !why.empty())
      spdlog::info("rank {}: buffers are staged through scratch, since {}", rank_, why);
  }
  peers_in_ =
      PeerMemory::exchange(world_, *common_.imports, placed_.in, placed_.in ? bound_.layout.sizes.input : 0);
  peers_out_ = PeerMemory::exchange(world_, *common_.imports, placed_.out,
                                    placed_.out ? bound_.layout.sizes.output : 0);
}

// -- What the kernel works on
// ------------------------------------------------------------------------------------------------------

/// Collective.
void Binding::make_control() {
  std::vector<Parts> parts;
  uint64_t most = 0;
  for (uint32_t rank = 0; rank < plan_->ranks(); ++rank) {
    parts.emplace_back(*plan_, rank, bound_.layout);
    most = std::max(most, parts.back().bytes);
  }
  control_ = common_.pool->take(most);
  for (image::Buffer& buffer : bound_.image.buffers) {
    char* const there = control_.at(int(buffer.rank));
    if (buffer.kind == uint32_t(BufferKind::scratch)) buffer.base = there + parts[buffer.rank].plain;
    if (buffer.kind == packet_kind) buffer.base = there + parts[buffer.rank].packets;
    if (reached_ && buffer.kind == uint32_t(BufferKind::input)) buffer.base = peers_in_.at(int(buffer.rank));
    if (reached_ && buffer.kind == uint32_t(BufferKind::output))
      buffer.base = peers_out_.at(int(buffer.rank));
  }
  for (const image::Channel& channel : bound_.image.channels) {
    const bool heard = channel.signal_at_peer != image::Channel::none;
    signals_at_peer_.push_back(
        heard ? reinterpret_cast<Signal*>(control_.at(int(channel.peer))) + channel.signal_at_peer : nullptr);
  }
}

void Binding::make_tapes() {
  const size_t channels = bound_.image.channels.size(), blocks = bound_.image.blocks.size();
  // Recorded twice, since tapes name addresses of the memory that they lie in: their size is known after the
  // first.
  TapePlaces places;
  places.signals_at_peer = signals_at_peer_;
  Tapes tapes = record_tapes(bound_.image, places, call().packet);
  uint64_t bytes = 0;
  const auto part = [&bytes](uint64_t size) {
    const uint64_t at = bytes;
    bytes = up(at + size, 128);
    return at;
  };
  const uint64_t tapes_at = part(tapes.bytes.size()), states_at = part(blocks * tapes.state_bytes),
                 expected_at = part(channels * sizeof(uint64_t)),
                 pushed_at = part(channels * sizeof(uint64_t)),
                 completed_at = part(channels * sizeof(Signal)),
                 semaphores_at = part(bound_.image.semaphores.size() * sizeof(Semaphore)),
                 barriers_at = part(bound_.image.barriers * sizeof(Signal));
  local_ = DeviceMemory(bytes, "a plan's tapes and counters");
  char* const base = local_.data();
  places.signals = reinterpret_cast<const Signal*>(control_.at(int(rank_)));
  places.expected = reinterpret_cast<uint64_t*>(base + expected_at);
  places.pushed = reinterpret_cast<uint64_t*>(base + pushed_at);
  Signal* const completed = reinterpret_cast<Signal*>(base + completed_at);
  places.completed = completed;
  places.semaphores = reinterpret_cast<Semaphore*>(base + semaphores_at);
  places.barriers = reinterpret_cast<Signal*>(base + barriers_at);
  tapes = record_tapes(bound_.image, places, call().packet);

  std::vector<char> content(bytes);
  std::memcpy(content.data() + tapes_at, tapes.bytes.data(), tapes.bytes.size());
  for (size_t at = 0; at < bound_.image.semaphores.size(); ++at) {
    const Semaphore semaphore{bound_.image.semaphores[at]};
    std::memcpy(content.data() + semaphores_at + at * sizeof semaphore, &semaphore, sizeof semaphore);
  }
  check(cudaMemcpy(base, content.data(), bytes, cudaMemcpyHostToDevice), "the tapes of a plan");
  stops_ = HostArray<StopRecord>(std::max<size_t>(blocks, 1));

  launch_.tapes = base + tapes_at;
  launch_.states = base + states_at;
  launch_.page = tapes.page;
  launch_.pages = tapes.pages;
  launch_.state_bytes = tapes.state_bytes;
  launch_.rank = rank_;
  launch_.abort = common_.abort;
  launch_.timeout_ns = common_.timeout_ns;
  launch_.stops = stops_.device();
  if (common_.trace_launches != 0) {
    uint32_t most = 0;
    for (const image::Block& block : bound_.image.blocks) most = std::max(most, block.n);
    launch_.trace.per_launch = most + 1;
    launch_.trace.per_block = launch_.trace.per_launch * common_.trace_launches;
    trace_ = DeviceMemory(blocks * launch_.trace.per_block * sizeof(TraceEntry), "a trace");
    launch_.trace.entries = reinterpret_cast<TraceEntry*>(trace_.data());
  }
  if (bound_.image.uses_port) {
    port_ = std::make_unique<Proxy::Client>(common_.proxy(), signals_at_peer_, completed);
    launch_.fifo = port_->fifo();
  }

  shared_bytes_ = launch_.state_bytes + launch_.page.shared_bytes();
  check(cudaFuncSetAttribute(kernel_, cudaFuncAttributeMaxDynamicSharedMemorySize, most_shared_bytes),
        fmt::format("{} bytes of shared memory for a block", shared_bytes_));
  int per_multiprocessor = 0, multiprocessors = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_multiprocessor, kernel_, int(threads_),
                                                      shared_bytes_),
        "the number of blocks that can be resident");
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, common_.device),
        "the number of multiprocessors");
  const uint64_t resident = uint64_t(per_multiprocessor) * uint64_t(multiprocessors);
  if (blocks > resident) {
    throw RunError(
        RunError::Reason::resources,
        fmt::format("plan '{}' has {} thread blocks, but only {} can be resident at a time on device {} ({} "
                    "multiprocessors, {} blocks of {} threads each): blocks that wait for one that has not "
                    "begun would wait for ever; compile it with fewer instances",
                    plan_->name, blocks, resident, common_.device, multiprocessors, per_multiprocessor,
                    threads_));
  }
}

// -- Runs
// ------------------------------------------------------------------------------------------------------

void Binding::prepare(const Arguments& arguments) {
  const CurrentDevice on(common_.device);
  if (!reached_) placed_ = placement_->place(arguments.in, arguments.out, rooms());
}

void Binding::run(const Plan&, const Arguments& arguments, void* run_on) {
  const CurrentDevice on(common_.device);
  const cudaStream_t stream = static_cast<cudaStream_t>(run_on);
  if (!reached_) placed_ = placement_->place(arguments.in, arguments.out, rooms());
  const auto move = [stream](const interpreter::Move& of) {
    if (!of.needed()) return;
    check(cudaMemcpyAsync(of.to, of.from, of.bytes, cudaMemcpyDefault, stream), "a copy around a run");
  };
  move(placed_.before[1]);
  move(placed_.before[0]);
  if (!bound_.image.blocks.empty()) {
    launch_.in = placed_.in;
    launch_.out = placed_.out;
    void* parameters[] = {&launch_};
    // It may begin before what precedes it in the stream has ended, and waits for that itself: see
    // player.cuh.
    cudaLaunchAttribute early{};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(unsigned(bound_.image.blocks.size()));
    config.blockDim = dim3(threads_);
    config.dynamicSmemBytes = shared_bytes_;
    config.stream = stream;
    config.attrs = &early;
    config.numAttrs = 1;
    check(cudaLaunchKernelExC(&config, kernel_, parameters), "the launch of a plan");
  }
  if (bound_.average_over > 1) {
    enqueue_average(placed_.out, bound_.layout.sizes.output / dtype_size(call().dtype), call().dtype,
                    bound_.average_over, stream);
    check(cudaGetLastError(), "the division of an average");
  }
  move(placed_.after);
}

void Binding::add_trace(std::vector<TraceSpan>& spans) {
  if (!trace_.data()) return;
  const CurrentDevice on(common_.device);
  check(cudaDeviceSynchronize(), "the end of what is traced");
  const size_t per_block = launch_.trace.per_block;
  std::vector<TraceEntry> entries(bound_.image.blocks.size() * per_block);
  check(
      cudaMemcpy(entries.data(), trace_.data(), entries.size() * sizeof(TraceEntry), cudaMemcpyDeviceToHost),
      "a trace");
  for (size_t block = 0; block < bound_.image.blocks.size(); ++block) {
    const ThreadBlock& of = plan_->gpus[rank_].threadblocks[block];
    // An operation ends where the next one begins; pipelines may have left their body's times out of order.
    std::map<uint32_t, std::vector<TraceEntry>> launches;
    for (size_t at = 0; at < per_block; ++at) {
      const TraceEntry& entry = entries[block * per_block + at];
      if (entry.ns != 0) launches[entry.epoch].push_back(entry);
    }
    for (auto& [epoch, seen] : launches) {
      std::stable_sort(seen.begin(), seen.end(),
                       [](const TraceEntry& a, const TraceEntry& b) { return a.ns < b.ns; });
      for (size_t at = 0; at + 1 < seen.size(); ++at) {
        if (seen[at].op >= of.ops.size()) continue;
        const Op& op = of.ops[seen[at].op];
        spans.push_back({plan_->name, rank_, uint32_t(block), seen[at].op, info(op.code).name,
                         plan_->line_of(op), epoch, seen[at].ns, seen[at + 1].ns});
      }
    }
  }
}

Stop Binding::stopped(std::string& report) const {
  std::vector<cpu::Stuck> stuck;
  Stop reason = Stop::none;
  for (size_t block = 0; block < bound_.image.blocks.size(); ++block) {
    const StopRecord& record = stops_[block];
    const Stop why = Stop(load_acquire(&record.reason));
    if (why == Stop::none) continue;
    reason = std::max(reason, why);
    cpu::Stuck one;
    one.rank = int(rank_);
    one.block = int(block);
    one.parked = true;
    one.waiting.op_index = record.op;
    one.waiting.what = "";
    one.waiting.expected = record.expected;
    one.waiting.peer = record.peer;
    one.waiting.word = record.waits_on_word ? &record.seen : nullptr;
    one.seen = record.seen;
    stuck.push_back(one);
  }
  if (reason != Stop::none) report = fmt::format("plan '{}'", plan_->name) + cpu::describe(*plan_, stuck);
  return reason;
}

}  // namespace chorale::cuda
