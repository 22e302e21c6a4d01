#include "binding.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "chorale/storage.hpp"
#include "executor/binding/agreement.hpp"
#include "executor/cuda/device/device.hpp"
#include "executor/cuda/device/driver.hpp"
#include "executor/cuda/device/error.hpp"
#include "executor/cuda/device/stream.hpp"
#include "executor/cuda/kernels/kernels.hpp"
#include "executor/cuda/memory/identity.hpp"
#include "executor/lowering/control_block.hpp"
#include "executor/lowering/far_place.hpp"
#include "executor/remote/hosts.hpp"
#include "executor/world/collective_try.hpp"
#include "executor/world/group.hpp"

namespace chorale::cuda {
namespace {

using lowering::ControlBlock;
using lowering::packet_kind;

/// Returns a number for the allocation, or row of allocations, that contains a buffer; 0 if it is not device
/// memory. CUDA's number distinguishes each cudaMalloc from the next. With cuMemMap it may stay the same
/// while other memory is mapped in the buffer.
uint64_t allocation_of(const void* at, uint64_t bytes) {
  if (!at) return 0;
  unsigned long long id = 0;
  unsigned of_malloc = 0;
  CUpointer_attribute what[] = {CU_POINTER_ATTRIBUTE_BUFFER_ID,
                                CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE};
  void* to[] = {&id, &of_malloc};
  if (driver().cuPointerGetAttributes(2, what, to, reinterpret_cast<CUdeviceptr>(at)) != CUDA_SUCCESS)
    return 0;
  if (of_malloc || id == 0) return id;
  const std::optional<Identity> identity = identity_of(at, bytes);
  return identity ? identity->buffer_id : id;
}

/// Returns the scratch of a round; 0 for one round. With multicast a message runs in one round.
uint64_t round_scratch_of(const Plan& plan, const Call& call) {
  return call.multicast && SwitchUse(plan).any() ? 0 : call.round_scratch;
}

/// Returns the bytes of a control block in which peers publish their buffers.
uint64_t head_bytes(const Plan& plan, const Call& call) {
  return call.publishes ? plan.ranks() * sizeof(Published) : 0;
}

/// Returns true if any rank passes true. Collective.
bool any(World& world, bool mine) {
  const std::byte said{mine};
  bool yes = false;
  for (const auto& of : world.allgather(std::span(&said, 1))) yes |= of.at(0) != std::byte{0};
  return yes;
}

}  // namespace

uint64_t CudaBinding::scratch_of(const Plan& plan, const std::vector<ScratchUse>& use, const Call& call) {
  const Layout layout = in_rounds(plan, use, layout_of(plan, call.bytes, call.dtype, call.packet),
                                  round_scratch_of(plan, call));
  const SwitchUse switches = call.multicast ? SwitchUse(plan) : SwitchUse();
  uint64_t most = 0;
  for (uint32_t rank = 0; rank < plan.ranks(); ++rank)
    most = std::max(
        most, ControlBlock(plan, rank, use[rank], layout, head_bytes(plan, call), !switches.scratch).bytes);
  return most + (switches.any() ? SwitchRoom(plan, layout, switches).bytes : 0);
}

CudaBinding::CudaBinding(const Common& common, const Plan& plan, const std::vector<ScratchUse>& use,
                         const Call& call, const Arguments& arguments)
    : chorale::Binding(call),
      common_(common),
      world_(*common.world),
      rank_(uint32_t(world_.rank())),
      plan_(std::make_shared<const Plan>(plan)) {
  ChosenKernel kernel;
  agree_on_use(world_, [&] {
    bound_ = lowering::bind_plan(plan, use, rank_, call.bytes, call.dtype, call.packet, call.op,
                                 round_scratch_of(plan, call), call.part_distance != 0);
    placement_ = std::make_unique<lowering::Placement>(plan, rank_, bound_.layout, call.part_distance);
    kernel = ChosenKernel::of(plan, call);
    if (world_.group().several_hosts()) {
      crosses_hosts_ = remote::checked_hosts(
          plan, rank_, [this](uint32_t rank) { return world_.group().host(int(rank)); });
      if (crosses_hosts_ && plan.ranks() > remote::FarPlace::most_ranks) {
        throw UsageError(
            fmt::format("plan '{}' has {} ranks, but across several hosts GPUs support at most {}", plan.name,
                        plan.ranks(), remote::FarPlace::most_ranks));
      }
    }
    if (call.packet == PacketForm::ll128) require_whole_lines(plan);
    if (call.multicast) switches_ = SwitchUse(plan);
    if (switches_.any()) refuse_multicast();
  });
  reached_ = reached_by_peers(plan, BufferKind::input) || reached_by_peers(plan, BufferKind::output);
  if (switches_.any()) {
    const SwitchRoom room(plan, bound_.layout, switches_);
    multicast_ = std::make_unique<MulticastMemory>(world_, *common_.imports, room.bytes, switches_.groups);
  }
  if (switches_.passed) {
    place_for_switches(arguments);
  } else if (call.publishes) {
    make_bounce_buffer(arguments);
  } else if (reached_) {
    place_for_peers(arguments);
  }
  make_control();
  if (crosses_hosts_) {
    // This may fail for lack of a thread or of memory. Then all ranks fail; otherwise peers would wait for
    // this one.
    remote::RemoteEndpoint* endpoint = nullptr;
    world::collective_try(world_, [&] { endpoint = &common_.proxy().endpoint(); });
    ends_.binding = remote::join_hosts(world_, plan, *endpoint, memory_for_hosts());
  }
  world::collective_try(world_, [&] {
    const lowering::SwitchAliases switches = switch_aliases();
    launcher_ = std::make_unique<Launcher>(common_, kernel, *plan_, bound_, call.packet, ends_,
                                           multicast_ ? &switches : nullptr);
    if (call.publishes) prepare_to_publish();
    if (bound_.average_over > 1) check(load_average(), "the kernel of an average");
  });
  common_.monitor->add(this);
  spdlog::debug(
      "rank {} bound plan '{}' to {} bytes on device {}: {} blocks of {} threads, {} bytes of control memory",
      rank_, plan.name, call.bytes, common.device, bound_.image.blocks.size(), kernel.threads,
      control_.bytes());
}

CudaBinding::~CudaBinding() {
  common_.monitor->remove(this);
  launcher_.reset();
  if (crosses_hosts_) common_.proxy().endpoint().unregister_binding(ends_.binding);
}

/// Checks that LL128 packets can be used: they need lines of 128 bytes that arrive whole, as they do over
/// NVLink.
void CudaBinding::require_whole_lines(const Plan& plan) const {
  const std::vector<RankDevice>& devices = common_.imports->devices();
  const RankDevice& mine = devices[rank_];
  for (size_t peer = 0; peer < devices.size(); ++peer) {
    if (world_.group().host(int(peer)) != world_.group().host(int(rank_))) {
      if (!remote::sends_packets(plan, rank_, uint32_t(peer))) continue;
      throw UsageError(
          fmt::format("packets of form ll128 need NVLink, but rank {} sends some to rank {}, which is on "
                      "another host: set packet = ll16",
                      rank_, peer));
    }
    if (stores_whole_lines(mine, devices[peer])) continue;
    throw UsageError(
        fmt::format("packets of form ll128 need NVLink between all GPUs, but {} of rank {} and {} of rank {} "
                    "do not report it: set packet = ll16",
                    mine.text(), rank_, devices[peer].text(), peer));
  }
}

// -- The caller's memory

CudaBinding::Passed CudaBinding::passed(const Arguments& arguments) const {
  return {arguments.in, arguments.out, allocation_of(arguments.in, bound_.layout.sizes.input),
          allocation_of(arguments.out, bound_.layout.sizes.output)};
}

bool CudaBinding::serves(const Arguments& arguments) {
  if (!reached_ || call().publishes) return true;
  return arguments.in == bound_to_.in && arguments.out == bound_to_.out && !peers_in_.stale() &&
         !peers_out_.stale() && passed(arguments) == bound_to_;
}

/// Chooses the buffers when no peer reaches them: a launch uses the caller's buffers directly.
/// \throws UsageError for memory that the GPU cannot use
void CudaBinding::place_here(const Arguments& arguments) {
  if (arguments.in != bound_to_.in) require_readable(arguments.in, "input", common_.device);
  if (arguments.out != bound_to_.out) require_readable(arguments.out, "output", common_.device);
  lowering::StagingMemory staging;
  staging.own = [&] {
    if (own_staging_.data()) return own_staging_.data();
    const OutsideCapture outside;  // CUDA graphs may hold this memory, which lives as long as the binding
    own_staging_ = DeviceMemory(bound_.layout.sizes.input, "a copy of the input");
    return own_staging_.data();
  };
  placed_ = placement_->place(arguments.in, arguments.out, staging, arguments.proved_in_place);
  bound_to_.in = arguments.in;
  bound_to_.out = arguments.out;
  placed_here_ = true;
}

/// Makes the memory for copies, and finds out whether all ranks pass memory that peers can map. Collective.
void CudaBinding::make_bounce_buffer(const Arguments& arguments) {
  static_assert(BounceBuffer::spare >= unit_bytes, "an output behind an input is aligned");
  const auto [in_bytes, out_bytes] = bound_.layout.sizes;
  bounce_ = common_.registry().bounce_buffer(in_bytes + out_bytes);
  const auto cannot_map = [](bool reached, const void* at, uint64_t bytes) {
    return reached && at && bytes != 0 && !Registry::why_not_mapped(at, bytes).empty();
  };
  peers_map_ = !any(world_, cannot_map(placement_->in_reached(), arguments.in, placement_->in_span()) ||
                                cannot_map(placement_->out_reached(), arguments.out, placement_->out_span()));
}

/// Returns where the ranks see a buffer; null if some rank cannot access it.
const SeenBy* CudaBinding::seen_by_ranks(const void* at, uint64_t bytes) const {
  return bounce_->seen.contains(at, bytes) ? &bounce_->seen : common_.registry().find(at, bytes);
}

/// Tells the launcher where this rank publishes its buffers, and where its peers do.
void CudaBinding::prepare_to_publish() {
  static_assert(uint32_t(BufferKind::input) == remote::FarPlace::input &&
                uint32_t(BufferKind::output) == remote::FarPlace::output);
  std::vector<Published*> at;
  for (uint32_t rank = 0; rank < plan_->ranks(); ++rank)
    at.push_back(reinterpret_cast<Published*>(control_.at(int(rank))) + rank_);
  published_at_ = DeviceMemory(at.size() * sizeof(Published*), "the places where a rank publishes");
  copy_to_device(published_at_.data(), at.data(), at.size() * sizeof(Published*), "where a rank publishes");
  Publication& publication = launcher_->publication();
  publication.from_peers = reinterpret_cast<const Published*>(control_.at(int(rank_)));
  publication.at_peers = reinterpret_cast<Published* const*>(published_at_.data());
  if (placement_->in_reached() || placement_->out_reached()) publication.ranks = plan_->ranks();
  bounce_staging_.aligned = true;
  bounce_staging_.shared = [this] { return bounce_->block.at(int(rank_)); };
  bounce_staging_.reachable = [this](const char* at, uint64_t bytes) {
    if (reinterpret_cast<uintptr_t>(at) % unit_bytes != 0) {
      why_copied_ = "it is not aligned to 16 bytes";
      return false;
    }
    if (seen_by_ranks(at, bytes)) return true;
    why_copied_ = common_.registry().why_not();
    return false;
  };
}

/// Chooses the buffers of a launch that publishes them. Data that peers cannot access goes through the bounce
/// buffer.
void CudaBinding::place_to_publish(const Arguments& arguments, void* stream) {
  const CurrentDevice on(common_.device);
  Registry& registry = common_.registry();
  // If CUDA does not say whether a capture runs, one may run.
  if (registry.peers_have_freed() && !is_capturing(static_cast<cudaStream_t>(stream)).value_or(true))
    registry.close_freed();
  why_copied_.clear();
  if (arguments.in != bound_to_.in && arguments.in) require_readable(arguments.in, "input", common_.device);
  if (arguments.out != bound_to_.out && arguments.out)
    require_readable(arguments.out, "output", common_.device);
  placed_ = placement_->place(arguments.in, arguments.out, bounce_staging_, arguments.proved_in_place);
  bound_to_.in = arguments.in;
  bound_to_.out = arguments.out;
  const auto publish = [&](const char* at, uint64_t bytes, bool reached, uint64_t* to) {
    const bool passed = reached && at && bytes != 0;
    const SeenBy* const seen = passed ? seen_by_ranks(at, bytes) : nullptr;
    if (passed && !seen) {
      throw UsageError(fmt::format("rank {}: the buffer at {} was freed during the call", rank_,
                                   static_cast<const void*>(at)));
    }
    for (uint32_t rank = 0; rank < plan_->ranks(); ++rank)
      to[rank] = seen ? seen->at[rank] + (reinterpret_cast<uint64_t>(at) - seen->base) : 0;
  };
  Publication& publication = launcher_->publication();
  publish(placed_.in, placed_.in_span, placement_->in_reached(), publication.in);
  publish(placed_.out, placed_.out_span, placement_->out_reached(), publication.out);
  registry.tell_freed();
}

/// Chooses the buffers when peers reach them. Data that peers cannot map goes through staging that they can.
/// Collective.
void CudaBinding::place_for_peers(const Arguments& arguments) {
  const uint64_t staging_bytes =
      bound_.layout.sizes.input + bound_.layout.sizes.output;  // input, then output
  bool staged = false;
  std::string why;
  lowering::StagingMemory staging;
  // Place twice. The first time finds out whether any rank needs staging, which all ranks then allocate
  // together.
  char* shared = reinterpret_cast<char*>(uintptr_t(1) << 62);
  staging.shared = [&] {
    staged = true;
    return shared;
  };
  staging.reachable = [&](const char* at, uint64_t bytes) {
    return (at >= shared && at < shared + staging_bytes) || identity_of(at, bytes, &why).has_value();
  };
  agree_on_use(world_, [&] {
    bound_to_ = passed(arguments);
    placed_ = placement_->place(arguments.in, arguments.out, staging, arguments.proved_in_place);
  });
  if (any(world_, staged)) {
    staging_ = common_.pool->take(staging_bytes);
    shared = staging_.at(int(rank_));
    world::collective_try(world_, [&] {
      placed_ = placement_->place(arguments.in, arguments.out, staging, arguments.proved_in_place);
    });
    if (staged && !why.empty())
      spdlog::info("rank {}: buffers are staged through scratch, because {}", rank_, why);
  }
  map_for_peers();
}

/// Exchanges the buffers that peers access. The others may be memory that no peer could map. Collective.
void CudaBinding::map_for_peers() {
  const auto exchange = [this](bool reached, const void* at, uint64_t bytes) {
    const bool given = reached && at;
    return PeerMemory::exchange(world_, *common_.imports, given ? at : nullptr, given ? bytes : 0);
  };
  peers_in_ = exchange(placement_->in_reached(), placed_.in, bound_.layout.sizes.input);
  peers_out_ = exchange(placement_->out_reached(), placed_.out, bound_.layout.sizes.output);
}

/// Checks that this rank's part can use multicast, which the configuration requests.
/// \throws UsageError if it cannot
void CudaBinding::refuse_multicast() const {
  std::string why = cuda::refuse_multicast(*plan_, bound_.image, call().dtype);
  if (why.empty())
    why = refuse_multicast_devices(common_.imports->devices(), switches_.groups, common_.device);
  if (!why.empty()) throw UsageError(why);
}

/// Chooses the buffers when switches reach them. All data that peers access goes through memory that the
/// switch reaches, at the same offset on all ranks. Collective.
void CudaBinding::place_for_switches(const Arguments& arguments) {
  bound_to_ = passed(arguments);
  char* const shared = multicast_->at(int(rank_));
  lowering::StagingMemory staging;
  staging.shared = [shared] { return shared; };
  staging.reachable = [this, shared](const char* at, uint64_t bytes) {
    return at >= shared && at + bytes <= shared + multicast_->bytes();
  };
  agree_on_use(world_, [&] {
    placed_ = placement_->place(arguments.in, arguments.out, staging, arguments.proved_in_place);
  });
  map_for_peers();
}

/// Returns the aliases of the groups of which this rank is a member.
lowering::SwitchAliases CudaBinding::switch_aliases() const {
  lowering::SwitchAliases aliases{{}, placed_.in, placed_.out};
  for (size_t group = 0; group < switches_.groups.size(); ++group) {
    char* const at = multicast_->of_group(group);
    if (!at) continue;
    lowering::SwitchAlias& alias =
        aliases.all.emplace_back(lowering::SwitchAlias{{}, at, multicast_->bytes()});
    for (const uint32_t member : switches_.groups[group])
      alias.members.push_back(multicast_->at(int(member)));
  }
  return aliases;
}

// -- The memory that the kernel works on

/// Allocates the control memory, and finds the bases of buffers and the ends of channels. Collective.
void CudaBinding::make_control() {
  std::vector<ControlBlock> blocks;
  uint64_t most = 0;
  for (uint32_t rank = 0; rank < plan_->ranks(); ++rank) {
    blocks.emplace_back(*plan_, rank, bound_.scratch[rank], bound_.layout, head_bytes(*plan_, call()),
                        !switches_.scratch);
    most = std::max(most, blocks.back().bytes);
  }
  control_ = common_.pool->take(most);
  const auto far = [this](uint32_t rank) {
    return world_.group().host(int(rank)) != world_.group().host(int(rank_));
  };
  const uint64_t scratch_at = SwitchRoom(*plan_, bound_.layout, switches_).scratch_at;
  for (image::Buffer& buffer : bound_.image.buffers) {
    const bool passed =
        buffer.kind == uint32_t(BufferKind::input) || buffer.kind == uint32_t(BufferKind::output);
    if (far(buffer.rank) || (call().publishes && passed)) {
      buffer.base = remote::FarPlace::base(buffer.rank, buffer.kind);
      continue;
    }
    char* const there = control_.at(int(buffer.rank));
    if (buffer.kind == uint32_t(BufferKind::scratch)) {
      buffer.base = switches_.scratch ? multicast_->at(int(buffer.rank)) + scratch_at
                                      : there + blocks[buffer.rank].plain;
    }
    if (buffer.kind == packet_kind) buffer.base = there + blocks[buffer.rank].packets;
    if (reached_ && buffer.kind == uint32_t(BufferKind::input)) buffer.base = peers_in_.at(int(buffer.rank));
    if (reached_ && buffer.kind == uint32_t(BufferKind::output))
      buffer.base = peers_out_.at(int(buffer.rank));
  }
  make_port_signals();
  for (uint32_t at = 0; at < bound_.image.channels.size(); ++at) {
    const image::Channel& channel = bound_.image.channels[at];
    const bool heard = channel.signal_at_peer != image::Channel::none && !far(channel.peer);
    // A proxy sets signals in host memory.
    const bool port = at >= bound_.image.memory_channels;
    const void* const mine = port ? own_port_signals_.device<void>(port_signals_->local())
                                  : control_.at(int(rank_)) + blocks[rank_].signals;
    void* const there = port ? static_cast<void*>(port_signals_->at(int(channel.peer)))
                             : control_.at(int(channel.peer)) + blocks[channel.peer].signals;
    ends_.signals.push_back(static_cast<const Signal*>(mine) + at);
    ends_.signals_at_peer.push_back(heard ? static_cast<Signal*>(there) + channel.signal_at_peer : nullptr);
    if (!crosses_hosts_) continue;
    remote::RemoteEndpoint::FarEnd& end = ends_.far.emplace_back();
    if (far(channel.peer)) end = {int(channel.peer), channel.signal_at_peer};
  }
}

/// Makes the signals of channels with a proxy. Collective if any rank has such channels.
void CudaBinding::make_port_signals() {
  const bool any_has = std::any_of(plan_->gpus.begin(), plan_->gpus.end(), [](const Gpu& gpu) {
    return std::any_of(gpu.channels.begin(), gpu.channels.end(), [](const ChannelRecord& record) {
      return has_proxy(record.type) && !record.connected_to.empty();
    });
  });
  if (!any_has) return;
  const uint64_t bytes = bound_.image.channels.size() * sizeof(Signal);
  port_signals_ = Window::create(world_, bytes);
  world::collective_try(world_, [&] {
    if (bytes != 0) own_port_signals_ = HostMapping(port_signals_->local(), bytes);
  });
}

/// Returns what ranks of other hosts may write to.
remote::RemoteEndpoint::Memory CudaBinding::memory_for_hosts() const {
  const ControlBlock mine(*plan_, rank_, bound_.scratch[rank_], bound_.layout, 0, !switches_.scratch);
  char* const control = control_.at(int(rank_));
  char* const plain =
      switches_.scratch ? multicast_->at(int(rank_)) + SwitchRoom(*plan_, bound_.layout, switches_).scratch_at
                        : control + mine.plain;
  remote::RemoteEndpoint::Memory memory = remote::memory_of(mine, plain, control + mine.packets);
  memory.buffers[size_t(BufferKind::input)] = {placed_.in, placed_.in ? bound_.layout.sizes.input : 0};
  memory.buffers[size_t(BufferKind::output)] = {placed_.out, placed_.out ? bound_.layout.sizes.output : 0};
  memory.signals = reinterpret_cast<Signal*>(port_signals_->local());
  memory.n_signals = uint32_t(port_signals_->bytes(int(rank_)) / sizeof(Signal));
  return memory;
}

uint64_t CudaBinding::scratch() const { return control_.bytes() + (multicast_ ? multicast_->bytes() : 0); }

// -- Runs

void CudaBinding::prepare(const Arguments& arguments, void* stream) {
  if (call().publishes) return place_to_publish(arguments, stream);
  if (reached_ || (placed_here_ && arguments.in == bound_to_.in && arguments.out == bound_to_.out)) return;
  const CurrentDevice on(common_.device);
  place_here(arguments);
}

void CudaBinding::run(const Plan&, void* run_on) {
  const CurrentDevice on(common_.device);
  const cudaStream_t stream = static_cast<cudaStream_t>(run_on);
  const auto move = [stream](const lowering::Move& of) {
    if (!of.needed()) return;
    const Rows to{static_cast<char*>(of.to), of.to_distance},
        from{static_cast<char*>(const_cast<void*>(of.from)), of.from_distance};
    copy_rows(to, from, of.bytes, of.rows, stream, "copying to or from staging");
  };
  move(placed_.before[1]);
  move(placed_.before[0]);
  launcher_->launch(placed_, stream);
  if (bound_.average_over > 1) {
    check(enqueue_average(placed_.out, bound_.layout.sizes.output / dtype_size(call().dtype), call().dtype,
                          bound_.average_over, stream),
          "dividing at the end of an average");
  }
  move(placed_.after);
}

void CudaBinding::hold(void* stream) {
  const CurrentDevice on(common_.device);
  graphs_.add(static_cast<cudaStream_t>(stream));
}

void CudaBinding::add_trace(std::vector<TraceSpan>& spans) {
  const CurrentDevice on(common_.device);
  launcher_->add_trace(spans);
}

}  // namespace chorale::cuda
