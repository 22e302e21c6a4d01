#include "binding.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstring>

#include "chorale/storage.hpp"
#include "executor/binding/agreement.hpp"
#include "executor/fibers/report.hpp"
#include "executor/remote/hosts.hpp"
#include "executor/system/round_up.hpp"
#include "executor/world/collective_try.hpp"
#include "executor/world/group.hpp"
#include "reduction.hpp"

namespace chorale::cpu {

using lowering::ControlBlock;
using lowering::packet_kind;

namespace {

/// Returns true if a window has staging for data that peers in other processes cannot map.
bool stages_in(const World& world, const Plan& plan, uint32_t rank) {
  return !world.local() && (reached_by_peers(plan, rank, BufferKind::input) ||
                            reached_by_peers(plan, rank, BufferKind::output));
}

/// Returns the control blocks of all ranks. They begin with the words that a rank publishes at every run.
std::vector<ControlBlock> control_blocks(const Plan& plan, const std::vector<ScratchUse>& use,
                                         const Layout& layout) {
  std::vector<ControlBlock> blocks;
  for (uint32_t rank = 0; rank < plan.ranks(); ++rank)
    blocks.emplace_back(plan, rank, use[rank], layout, sizeof(Published));
  return blocks;
}

/// Returns the bytes of a rank's window before its staging.
uint64_t staging_at(const ControlBlock& block) { return round_up(block.bytes, uint64_t(4096)); }

}  // namespace

uint64_t CpuBinding::scratch_of(const Plan& plan, const std::vector<ScratchUse>& use, const Call& call) {
  const Layout layout =
      in_rounds(plan, use, layout_of(plan, call.bytes, call.dtype, call.packet), call.round_scratch);
  uint64_t most = 0;
  for (const ControlBlock& block : control_blocks(plan, use, layout)) most = std::max(most, block.bytes);
  return most;
}

CpuBinding::CpuBinding(const Shared& shared, const Plan& plan, const std::vector<ScratchUse>& use,
                       const Call& call)
    : chorale::Binding(call), shared_(shared), world_(*shared.world), rank_(uint32_t(world_.rank())) {
  agree_on_use(world_, [&] {
    bound_ = lowering::bind_plan(plan, use, rank_, call.bytes, call.dtype, call.packet, call.op,
                                 call.round_scratch);
    if (world_.group().several_hosts()) {
      crosses_hosts_ = remote::checked_hosts(
          plan, rank_, [this](uint32_t rank) { return world_.group().host(int(rank)); });
    }
    placement_ = std::make_unique<lowering::Placement>(plan, rank_, bound_.layout);
  });
  make_control(plan);
  body_ = [this](int block, fibers::BlockHost& host) { body(block, host); };
  describe_ = [this](const fibers::Stuck& stuck) { return fibers::line(*plan_, stuck); };
  spdlog::debug("rank {} bound plan '{}' to {} bytes: chunks of {} bytes, {} bytes of window", rank_,
                plan.name, call.bytes, bound_.layout.chunk_bytes, window_->bytes(int(rank_)));
}

CpuBinding::~CpuBinding() {
  if (!run_.endpoint) return;
  run_.endpoint->unregister_binding(run_.binding);
  proxy_->remove_client(run_.client);
}

/// Makes the window with scratch and signals, and fills the Run. Collective.
void CpuBinding::make_control(const Plan& plan) {
  const uint64_t staged_bytes = bound_.layout.sizes.input + bound_.layout.sizes.output;
  const std::vector<ControlBlock> blocks = control_blocks(plan, bound_.scratch, bound_.layout);
  std::vector<uint64_t> bytes;  // of the ranks' windows
  for (uint32_t rank = 0; rank < plan.ranks(); ++rank) {
    scratch_ = std::max(scratch_, blocks[rank].bytes);
    bytes.push_back(stages_in(world_, plan, rank) ? staging_at(blocks[rank]) + staged_bytes
                                                  : blocks[rank].bytes);
  }
  window_ = std::make_unique<Window>(Window::create(world_, bytes));
  if (stages_in(world_, plan, rank_))
    window_staging_ = reinterpret_cast<char*>(window_->local()) + staging_at(blocks[rank_]);
  user_staging_.own = [this] {
    if (!own_staging_) own_staging_ = std::make_unique_for_overwrite<char[]>(bound_.layout.sizes.input);
    return own_staging_.get();
  };
  if (window_staging_) {
    user_staging_.shared = [this] { return window_staging_; };
    user_staging_.reachable = [this](const char* at, uint64_t bytes) { return shared_word(at, bytes) != 0; };
  }

  for (uint32_t rank = 0; rank < plan.ranks(); ++rank)
    published_.push_back(reinterpret_cast<Published*>(window_->at(int(rank))));
  name_buffers(blocks);
  // This may fail for lack of a thread or of memory. Then all ranks fail; otherwise peers would wait for this
  // one.
  world::collective_try(world_, [&] {
    if (bound_.image.uses_port || crosses_hosts_) proxy_ = &shared_.proxy();
    if (shared_.trace_launches != 0)
      trace_ = std::make_unique<LaunchTrace>(plan, bound_.image, shared_.trace_launches);
    make_channels(blocks);
    make_programs(blocks);
  });
  run_.rank = rank_;
  run_.packet = this->call().packet;
  run_.dtype = this->call().dtype;
  // The scheduler ends a launch that times out, because it knows which block waits for which rank.
  run_.deadline = Deadline{world_.abort_word(), 0, 0};
  run_.states = reinterpret_cast<char*>(states_.data());
  run_.completed = completed_.data();
  run_.published = published_.data();
  run_.window = window_.get();
  run_.windows = shared_.windows;
  run_.local = world_.local();
  if (trace_) run_.trace = trace_->trace();
  if (proxy_) run_.fifo = &proxy_->fifo();
  if (crosses_hosts_) {
    run_.endpoint = proxy_->endpoint();
    run_.binding = remote::join_hosts(world_, plan, *run_.endpoint, memory_for_hosts(blocks[rank_]));
    run_.client = proxy_->add_client(run_);
  }
}

/// Sets the base addresses of buffers. Peers publish their own input and output at every run, so a program
/// has a FarPlace for these. All memory of other hosts also has a FarPlace.
void CpuBinding::name_buffers(const std::vector<ControlBlock>& blocks) {
  for (image::Buffer& buffer : bound_.image.buffers) {
    char* const window = reinterpret_cast<char*>(window_->at(int(buffer.rank)));
    if (window && buffer.kind == uint32_t(BufferKind::scratch)) {
      buffer.base = window + blocks[buffer.rank].plain;
    } else if (window && buffer.kind == packet_kind) {
      buffer.base = window + blocks[buffer.rank].packets;
    } else {
      buffer.base = remote::FarPlace::base(buffer.rank, buffer.kind);
    }
  }
}

void CpuBinding::make_channels(const std::vector<ControlBlock>& blocks) {
  for (const image::Channel& channel : bound_.image.channels) {
    ChannelEnd& end = run_.channels.emplace_back();
    end.peer = int(channel.peer);
    const bool heard = channel.signal_at_peer != image::Channel::none;
    if (far(channel.peer)) end.far = {end.peer, channel.signal_at_peer};
    if (heard && !end.far)
      end.signal_at_peer = reinterpret_cast<Signal*>(window_->at(end.peer) + blocks[channel.peer].signals) +
                           channel.signal_at_peer;
  }
}

/// Lowers the plan once per shape of rounds. The image and the list of scratch are not used after this.
void CpuBinding::make_programs(const std::vector<ControlBlock>& control) {
  const size_t channels = bound_.image.channels.size();
  expected_.resize(channels);
  if (proxy_) {  // no one else pushes or completes transfers
    pushed_.resize(channels);
    completed_.resize(channels);
  }
  barriers_.resize(bound_.image.barriers);
  for (const uint64_t permits : bound_.image.semaphores) semaphores_.push_back({permits});
  lowering::ProgramAddresses addresses;
  const auto* const signals = reinterpret_cast<const Signal*>(window_->local() + control[rank_].signals);
  for (size_t at = 0; at < channels; ++at) {
    addresses.signals.push_back(signals + at);
    addresses.signals_at_peer.push_back(run_.channels[at].signal_at_peer);
  }
  addresses.expected = expected_.data();
  addresses.pushed = pushed_.data();
  addresses.completed = completed_.data();
  addresses.semaphores = semaphores_.data();
  addresses.barriers = barriers_.data();
  uint64_t staging_bytes = 0;
  const auto lower_all = [&] {
    programs_.clear();
    for (const uint64_t round : lowering::rounds_of_all_shapes(bound_.layout)) {
      addresses.skip = round * bound_.layout.slice_bytes;
      programs_.push_back({lowering::shape_of_round(bound_.layout, round),
                           lowering::lower(bound_.image, addresses, this->call().packet)});
      staging_bytes = std::max(staging_bytes, programs_.back().program.staging_bytes);
    }
  };
  lower_all();
  if (staging_bytes != 0) {
    // The first lowering tells how many bytes the programs stage. Lower again, now with the address.
    packets_to_hosts_ = std::make_unique_for_overwrite<char[]>(staging_bytes + 128);
    addresses.staging = round_up(reinterpret_cast<uint64_t>(packets_to_hosts_.get()), uint64_t(128));
    lower_all();
  }
  const size_t blocks = bound_.image.blocks.size();
  bound_.image = {};
  bound_.scratch = {};
  // Lowering has taken and freed much memory below the programs. Copies use it, so that the pages above can
  // go.
  for (RoundProgram& of : programs_) of.program.bytes = std::vector<char>(of.program.bytes);
  size_t state_bytes = 0;
  for (const RoundProgram& of : programs_) {
    // Blocks wait for the same channels in every round, so their states have the same layout.
    state_bytes = std::max<size_t>(state_bytes, of.program.state_bytes);
    interpreter_lines_ = std::max(
        interpreter_lines_, round_up(Interpreter::memory_bytes(of.program), sizeof(Line)) / sizeof(Line));
  }
  states_.resize(blocks * state_bytes / sizeof(Line));
  interpreter_memory_.resize(blocks * interpreter_lines_);
}

bool CpuBinding::far(uint32_t rank) const {
  return world_.group().host(int(rank)) != world_.group().host(int(rank_));
}

/// Returns what ranks of other hosts may write to.
remote::RemoteEndpoint::Memory CpuBinding::memory_for_hosts(const ControlBlock& mine) const {
  char* const window = reinterpret_cast<char*>(window_->local());
  remote::RemoteEndpoint::Memory memory = remote::memory_of(mine, window + mine.plain, window + mine.packets);
  memory.signals = reinterpret_cast<Signal*>(window + mine.signals);
  memory.n_signals = uint32_t(run_.channels.size());
  memory.runs_name_buffers = true;
  return memory;
}

// -- Places

/// Returns the word that tells peers where this rank's memory is; 0 if they cannot reach it.
uint64_t CpuBinding::shared_word(const char* at, uint64_t bytes) const {
  if (run_.local) return reinterpret_cast<uint64_t>(at);
  const auto inside = [&](const Window& window) {
    const char* const first = reinterpret_cast<const char*>(window.local());
    const uint64_t size = window.bytes(int(rank_));
    return first && at >= first && at <= first + size && bytes <= uint64_t(first + size - at);
  };
  const auto word = [&](const Window& window, uint64_t id) {
    return SharedAddress::make(id, uint64_t(at - reinterpret_cast<const char*>(window.local())));
  };
  if (inside(*window_)) return word(*window_, SharedAddress::own_window);
  for (size_t id = 0; id < shared_.windows->size(); ++id) {
    if (inside((*shared_.windows)[id])) return word((*shared_.windows)[id], id);
  }
  return 0;
}

void CpuBinding::place(const Arguments& arguments) {
  placed_ = placement_->place(arguments.in, arguments.out, user_staging_, arguments.proved_in_place);
  if (placed_.staged && !staged_) {
    staged_ = true;
    spdlog::debug("rank {}: buffers outside Executor::allocate() are staged: {} bytes in, {} bytes out",
                  rank_, placed_.before[0].bytes + placed_.before[1].bytes, placed_.after.bytes);
  }
}

// -- Runs

void CpuBinding::run(const Plan& plan, void*) {
  plan_ = &plan;
  const fibers::LaunchResult result = launch();
  if (result.stop == Stop::none) return;
  const auto ranks = run_.local ? fibers::Ranks::all : fibers::Ranks::some;
  try {
    world_.check();
  } catch (const RunError& error) {
    throw RunError(error.reason, error.what() + fibers::describe(result.stuck, ranks, error.what()));
  }
  throw RunError(RunError::Reason::other, "the run was stopped" + fibers::describe(result.stuck, ranks));
}

void CpuBinding::add_trace(std::vector<TraceSpan>& spans) {
  if (trace_) trace_->add_to(spans, rank_);
}

fibers::LaunchResult CpuBinding::launch() {
  // Copy the output first, because the plan may leave parts of it unchanged. Then copy the input, which may
  // be inside the output.
  for (const lowering::Move* move : {&placed_.before[1], &placed_.before[0]}) {
    if (move->needed()) std::memcpy(move->to, move->from, move->bytes);
  }
  fibers::LaunchResult result;
  for (uint64_t round = 0; round < bound_.layout.rounds(); ++round) {
    result = launch_round(round);
    if (result.stop != Stop::none) break;
  }
  if (last_round_ && (result.stop == Stop::none || epoch_ == run_.epoch)) {
    if (placed_.after.bytes) std::memcpy(placed_.after.to, placed_.after.from, placed_.after.bytes);
  }
  return result;
}

/// Launches one round. Each round is a launch of its own, which peers know by its epoch.
fibers::LaunchResult CpuBinding::launch_round(uint64_t round) {
  run_.epoch = epoch_ + 1;
  run_.skip = round * bound_.layout.slice_bytes;
  run_.in = placed_.in ? placed_.in + run_.skip : nullptr;
  run_.out = placed_.out ? placed_.out + run_.skip : nullptr;
  const lowering::RoundShape shape = lowering::shape_of_round(bound_.layout, round);
  run_.program = &std::find_if(programs_.begin(), programs_.end(), [&](const RoundProgram& of) {
                    return of.shape == shape;
                  })->program;
  last_round_ = round + 1 == bound_.layout.rounds();
  publish();
  const uint32_t blocks = run_.program->blocks;
  blocks_left_.store(int(blocks), std::memory_order_relaxed);
  const bool fiber = proxy_ && world_.scheduler().seeded();
  if (run_.endpoint) {
    run_.endpoint->begin_run(run_.binding, run_.epoch, {placed_.in, bound_.layout.sizes.input},
                             {placed_.out, bound_.layout.sizes.output});
  }
  if (proxy_) proxy_->begin();
  fibers::LaunchResult result;
  try {
    result = world_.scheduler().launch(int(rank_), int(blocks + (fiber ? 1 : 0)), body_, describe_);
  } catch (...) {
    if (proxy_) proxy_->end(true, run_.deadline);  // the next binding uses the proxy too
    if (run_.endpoint) run_.endpoint->end_run(run_.binding);
    throw;
  }
  if (proxy_) {
    const Stop stop = proxy_->end(result.stop != Stop::none, run_.deadline);
    if (result.stop == Stop::none) result.stop = stop;
  }
  if (run_.endpoint) run_.endpoint->end_run(run_.binding);
  if (blocks == 0 && (result.stop == Stop::none || epoch_ == run_.epoch)) finish();
  return result;
}

/// Tells peers where this rank's memory is. From now on they may access it when the plan's signals allow it.
void CpuBinding::publish() {
  Published& mine = *published_[rank_];
  store_relaxed(&mine.in,
                placement_->in_reached() ? shared_word(placed_.in, bound_.layout.sizes.input) : uint64_t(0));
  store_relaxed(&mine.out, placement_->out_reached() ? shared_word(placed_.out, bound_.layout.sizes.output)
                                                     : uint64_t(0));
  store_release(&mine.epoch, run_.epoch);
}

void CpuBinding::body(int block, fibers::BlockHost& host) {
  const uint32_t blocks = run_.program->blocks;
  if (uint32_t(block) == blocks) return proxy_->run_fiber(host, blocks_left_);
  const Stop stop =
      Interpreter(run_, uint32_t(block), host,
                  reinterpret_cast<char*>(interpreter_memory_.data() + size_t(block) * interpreter_lines_))
          .run();
  if (stop == Stop::none && ended_.fetch_add(1, std::memory_order_acq_rel) + 1 == blocks) finish();
  blocks_left_.fetch_sub(1, std::memory_order_acq_rel);
}

/// Ends a run. The last block calls it, when no peer touches this rank's output any more.
void CpuBinding::finish() {
  if (bound_.average_over > 1 && last_round_) {
    reduction(ReduceOp::sum, this->call().dtype)
        .divide(placed_.out, bound_.layout.sizes.output / dtype_size(this->call().dtype),
                bound_.average_over);
  }
  ended_.store(0, std::memory_order_relaxed);
  epoch_ = run_.epoch;
}

}  // namespace chorale::cpu
