#include "launcher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "chorale/block_threads.hpp"
#include "chorale/layout.hpp"
#include "chorale/next_launch.hpp"
#include "chorale/resident.cuh"
#include "executor/cuda/device/error.hpp"
#include "executor/cuda/multicast/multicast_plan.hpp"
#include "executor/fibers/report.hpp"

namespace chorale::cuda {
namespace {

constexpr uint64_t most_page_bytes = 160 << 10;
constexpr int most_shared_bytes = 200 << 10;  ///< per block; this is the kernel's limit, for all plans

uint64_t up(uint64_t value, uint64_t step) { return (value + step - 1) / step * step; }

/// Returns the block size when `busy` threads have work and `most` are possible. At least `least` threads
/// fetch a page.
uint32_t threads_for(uint64_t busy, uint32_t most) {
  constexpr uint64_t least = 64;
  return uint32_t(std::min<uint64_t>(std::max(up(busy, 32), least), most));
}

detail::Resident room_for(const void* kernel, uint32_t threads, uint64_t shared_bytes, int device) {
  detail::Resident room;
  check(detail::find_resident(kernel, threads, shared_bytes, device, room),
        "the number of blocks that can be resident");
  return room;
}

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

}  // namespace

ChosenKernel ChosenKernel::of(const Plan& plan, const Call& call) {
  ChosenKernel chosen;
  chosen.interpreters = interpreters_of(call.dtype, call.packet, reduces(plan));
  if (!chosen.interpreters.any) {
    throw UsageError(
        fmt::format("reductions of {} were left out of this library: configure it with CHORALE_CUDA_DTYPES "
                    "that contains {}",
                    dtype_name(call.dtype), dtype_name(call.dtype)));
  }
  // This kernel runs all the steps of the others too.
  if (call.multicast && SwitchUse(plan).any())
    chosen.interpreters.any = multicast_interpreter_of(call.dtype, call.packet, reduces(plan));
  if (!chosen.interpreters.any) {
    throw UsageError(fmt::format(
        "plan '{}': with switch_channels = multicast there is no kernel for {} and packets of form "
        "{}: set packet = ll16, or switch_channels = peer",
        plan.name, dtype_name(call.dtype), packet_form_names[size_t(call.packet)]));
  }
  if (!plan.extension.codecs.empty()) {
    // Without packets their form does not matter.
    const PacketForm packet = sends_packets(plan) ? call.packet : PacketForm::ll16;
    chosen.interpreters.any =
        call.multicast && SwitchUse(plan).any() ? nullptr : coded_interpreter_of(call.dtype, packet);
    if (!chosen.interpreters.any)
      throw UsageError(fmt::format(
          "plan '{}': there is no kernel that encodes {}, with packets of form {}{}: set packet = ll16, and "
          "switch_channels = peer",
          plan.name, dtype_name(call.dtype), packet_form_names[size_t(packet)],
          call.multicast ? " and multicast" : ""));
  }
  chosen.threads = uint32_t(std::clamp<uint64_t>(up(plan.threads_per_block, 32), 32, most_block_threads));
  return chosen;
}

Launcher::Launcher(const Common& common, const ChosenKernel& kernel, const Plan& plan,
                   const lowering::BoundPlan& bound, PacketForm packet, const Ends& ends,
                   const lowering::SwitchAliases* switches)
    : common_(common),
      kernel_(kernel),
      plan_(plan),
      image_(bound.image),
      layout_(bound.layout),
      rank_(uint32_t(common.world->rank())) {
  make_programs(packet, ends, switches);
  require_residence();
  for (RoundProgram& of : programs_) make_kernels(of);
}

void Launcher::make_kernels(RoundProgram& of) const {
  of.any = ready(kernel_.interpreters.any, of.busy_threads, launch_.state_bytes + of.page.shared_bytes());
  if (!of.exchange) return;
  const Interpreters& all = kernel_.interpreters;
  of.exchange_whole = ready(all.exchange, of.busy_threads, of.page.bytes());
  // Without this kernel the one for all programs runs parts of units.
  of.exchange_parts =
      all.exchange_parts ? ready(all.exchange_parts, of.busy_threads, of.page.bytes()) : of.any;
}

/// Lowers the plan once per shape of rounds.
std::vector<lowering::DeviceProgram> Launcher::lower(lowering::ProgramAddresses places,
                                                     PacketForm packet) const {
  std::vector<lowering::DeviceProgram> all;
  for (const uint64_t round : lowering::rounds_of_all_shapes(layout_)) {
    places.skip = round * layout_.slice_bytes;
    lowering::LowerOptions options;
    options.most_page_bytes = most_page_bytes;
    // A loop takes no more shared memory than pages without loops, so that as many blocks are resident.
    options.loop_bytes = options.page_bytes;
    all.push_back(lowering::lower(image_, places, packet, options));
  }
  return all;
}

void Launcher::make_programs(PacketForm packet, const Ends& ends, const lowering::SwitchAliases* switches) {
  const size_t channels = image_.channels.size(), blocks = image_.blocks.size();
  // Programs contain addresses of the memory in which they are stored, so they are lowered twice: the first
  // time gives their size.
  lowering::ProgramAddresses places;
  places.signals_at_peer = ends.signals_at_peer;
  places.switches = switches;
  places.signals = ends.signals;
  if (image_.uses_port) completed_ = HostArray<Signal>(channels);
  places.completed = completed_.device();
  const auto lie_at = [&places](char* expected, char* pushed, char* semaphores, char* barriers,
                                char* staging) {
    places.expected = reinterpret_cast<uint64_t*>(expected);
    places.pushed = reinterpret_cast<uint64_t*>(pushed);
    places.semaphores = reinterpret_cast<Semaphore*>(semaphores);
    places.barriers = reinterpret_cast<Signal*>(barriers);
    places.staging = reinterpret_cast<uint64_t>(staging);
  };
  char* const somewhere = reinterpret_cast<char*>(uintptr_t{1} << 40);
  lie_at(somewhere, somewhere, somewhere, somewhere, somewhere);
  std::vector<lowering::DeviceProgram> programs = lower(places, packet);
  uint64_t bytes = 0, staging_bytes = 0;
  const auto part = [&bytes](uint64_t size) {
    const uint64_t at = bytes;
    bytes = up(at + size, 128);
    return at;
  };
  std::vector<uint64_t> programs_at;
  for (const lowering::DeviceProgram& of : programs) {
    programs_at.push_back(part(of.bytes.size()));
    // Blocks wait for the same channels in every round, so their states have the same layout.
    launch_.state_bytes = std::max(launch_.state_bytes, of.state_bytes);
    staging_bytes = std::max(staging_bytes, of.staging_bytes);
  }
  const uint64_t states_at = part(blocks * launch_.state_bytes),
                 expected_at = part(channels * sizeof(uint64_t)),
                 pushed_at = part(channels * sizeof(uint64_t)),
                 semaphores_at = part(image_.semaphores.size() * sizeof(Semaphore)),
                 barriers_at = part(image_.barriers * sizeof(Signal));
  // Staging needs no zeroing: no block reads a packet there before it is stored.
  const uint64_t known_bytes = bytes;
  const uint64_t staging_at = part(staging_bytes);
  memory_ = DeviceMemory(bytes, "a plan's program and counters");
  char* const base = memory_.data();
  lie_at(base + expected_at, base + pushed_at, base + semaphores_at, base + barriers_at, base + staging_at);
  programs = lower(places, packet);

  std::vector<char> content(known_bytes);
  const std::vector<uint64_t> rounds = lowering::rounds_of_all_shapes(layout_);
  for (size_t at = 0; at < programs.size(); ++at) {
    const lowering::DeviceProgram& of = programs[at];
    std::memcpy(content.data() + programs_at[at], of.bytes.data(), of.bytes.size());
    const bool exchange = of.exchange && common_.trace_launches == 0;  // that kernel keeps no trace
    programs_.push_back({lowering::shape_of_round(layout_, rounds[at]),
                         base + programs_at[at],
                         of.page,
                         of.pages,
                         threads_for(of.busy_threads, kernel_.threads),
                         of.whole,
                         exchange,
                         {},
                         {},
                         {}});
  }
  for (size_t at = 0; at < image_.semaphores.size(); ++at) {
    const Semaphore semaphore{image_.semaphores[at]};
    std::memcpy(content.data() + semaphores_at + at * sizeof semaphore, &semaphore, sizeof semaphore);
  }
  copy_to_device(base, content.data(), known_bytes, "the program of a plan");
  stops_ = HostArray<StopRecord>(std::max<size_t>(blocks, 1));

  launch_.states = base + states_at;
  launch_.rank = rank_;
  launch_.abort = common_.abort;
  launch_.timeout_ns = common_.timeout_ns;
  launch_.stops = stops_.device();
  if (common_.trace_launches != 0) {
    trace_ = std::make_unique<LaunchTrace>(image_, common_.trace_launches);
    launch_.trace = trace_->trace();
  }
  if (image_.uses_port) {
    std::vector<int> peers;
    for (const image::Channel& channel : image_.channels) peers.push_back(int(channel.peer));
    port_ = std::make_unique<Proxy::Client>(common_.proxy(), ends.signals_at_peer, completed_.host(),
                                            std::move(peers), ends.far, ends.binding);
    launch_.fifo = port_->fifo();
  }
}

/// Checks that all blocks fit on the GPU at once, because they wait for each other.
void Launcher::require_residence() {
  const size_t blocks = image_.blocks.size();
  uint32_t shared_bytes = 0;
  for (const RoundProgram& of : programs_)
    shared_bytes = std::max(shared_bytes, launch_.state_bytes + of.page.shared_bytes());
  check(cudaFuncSetAttribute(kernel_.interpreters.any, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             most_shared_bytes),
        fmt::format("{} bytes of shared memory for a block", shared_bytes));
  const detail::Resident room =
      room_for(kernel_.interpreters.any, kernel_.threads, shared_bytes, common_.device);
  if (blocks > room.blocks()) {
    throw RunError(
        RunError::Reason::resources,
        fmt::format("plan '{}' has {} thread blocks, but only {} can be resident at a time on device {} ({} "
                    "multiprocessors, {} blocks of {} threads each): blocks that wait for one that has not "
                    "begun would wait forever; compile it with fewer instances",
                    plan_.name, blocks, room.blocks(), common_.device, room.multiprocessors,
                    room.per_multiprocessor, kernel_.threads));
  }
}

/// Decides how a kernel is launched. Short launches take two or three microseconds. If the next launch may
/// reach its wait early, it saves half a microsecond or more. Then only busy threads are launched, because
/// idle warps take time to be placed, started and waited for. If it may not, it is faster with all threads.
Launcher::Kernel Launcher::ready(const void* kernel, uint32_t busy_threads, uint32_t shared_bytes) const {
  const detail::Resident room = room_for(kernel, busy_threads, shared_bytes, common_.device);
  const bool beside = detail::next_may_stand_beside(image_.blocks.size(), room.blocks());
  return {kernel, beside ? busy_threads : kernel_.threads, shared_bytes, beside};
}

const Launcher::RoundProgram& Launcher::program_of(uint64_t round) const {
  const lowering::RoundShape shape = lowering::shape_of_round(layout_, round);
  size_t at = 0;
  while (!(programs_[at].shape == shape)) ++at;
  return programs_[at];
}

void Launcher::launch(const lowering::Placed& placed, cudaStream_t stream) {
  if (image_.blocks.empty()) return;
  launch_.gaps = {layout_.segment_bytes, placed.in_gap, placed.out_gap};
  for (uint64_t round = 0; round < layout_.rounds(); ++round)
    launch_round(round, placed.in, placed.out, stream);
}

void Launcher::launch_round(uint64_t round, char* in, char* out, cudaStream_t stream) {
  const RoundProgram& of = program_of(round);
  launch_.skip = round * layout_.slice_bytes;
  launch_.in = in ? in + launch_.skip : nullptr;
  launch_.out = out ? out + launch_.skip : nullptr;
  launch_.program = of.program;
  launch_.page = of.page;
  launch_.pages = of.pages;
  void* parameters[] = {&launch_};
  // Slices are whole lines, so that all rounds are aligned if the first one is. The kernels for exchanges do
  // not publish buffers.
  const bool exchange = of.exchange && !launch_.publication.from_peers;
  const bool whole =
      of.whole && (reinterpret_cast<uintptr_t>(in) | reinterpret_cast<uintptr_t>(out)) % unit_bytes == 0;
  const Kernel& kernel = !exchange ? of.any : whole ? of.exchange_whole : of.exchange_parts;
  launch_.next_beside = kernel.next_beside;
  // The kernel may begin before earlier work in the stream has ended, and waits for that work itself: see
  // interpreter.cuh.
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(unsigned(image_.blocks.size()));
  config.blockDim = dim3(kernel.threads);
  config.dynamicSmemBytes = kernel.shared_bytes;
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = 1;
  check(cudaLaunchKernelExC(&config, kernel.function, parameters), "the launch of a plan");
}

Stop Launcher::stopped(std::string& report) const {
  std::vector<fibers::Stuck> stuck;
  Stop reason = Stop::none;
  for (size_t block = 0; block < image_.blocks.size(); ++block) {
    const StopRecord& record = stops_[block];
    const Stop why = Stop(load_acquire(&record.reason));
    if (why == Stop::none) continue;
    reason = std::max(reason, why);
    fibers::Stuck one;
    one.rank = int(rank_);
    one.block = int(block);
    one.parked = true;
    one.waiting.op_index = record.op;
    one.waiting.what = "";
    one.waiting.expected = record.expected;
    one.waiting.peer = record.peer;
    one.waiting.word = record.waits_on_word ? &record.seen : nullptr;
    one.seen = record.seen;
    one.line = fibers::line(plan_, one);
    stuck.push_back(one);
  }
  if (reason != Stop::none)
    report = fmt::format("plan '{}'", plan_.name) + fibers::describe(stuck, fibers::Ranks::some);
  return reason;
}

void Launcher::add_trace(std::vector<TraceSpan>& spans) const {
  if (trace_) trace_->add_to(spans, plan_, rank_);
}

}  // namespace chorale::cuda
