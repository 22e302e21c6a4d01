#include "binding.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstring>

namespace chorale::cpu {

using interpreter::packet_kind;

/// Where what lies in a rank's window begins. Every rank computes it for every rank.
struct Binding::Parts {
  uint64_t signals, plain, packets, staging, bytes;

  Parts(const Plan& plan, uint32_t rank, const interpreter::Layout& layout, bool stages) {
    const Gpu& gpu = plan.gpus[rank];
    const interpreter::ScratchBytes scratch = interpreter::scratch_bytes(plan, rank, layout);
    signals = sizeof(Published);
    const uint64_t channels =
        uint64_t(gpu.channel_count(ChannelType::memory)) + gpu.channel_count(ChannelType::port);
    plain = signals + channels * sizeof(Signal);
    packets = plain + scratch.plain_banks * scratch.plain_bank;
    staging = packets + 2 * scratch.packet_bank;
    bytes = staging;
    if (stages) {
      staging = (bytes + 4095) / 4096 * 4096;
      bytes = staging + layout.sizes.input + layout.sizes.output;
    }
  }
};

namespace {

/// Throws on all ranks what one of them has to say.
void agree_on_use(World& world, const std::string& mine) {
  const auto all = world.allgather(std::as_bytes(std::span(mine.data(), mine.size())));
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty()) continue;
    if (!mine.empty()) throw UsageError(mine);
    throw UsageError(fmt::format(
        "rank {}: {}", rank, std::string(reinterpret_cast<const char*>(all[rank].data()), all[rank].size())));
  }
}

/// Whether operations read or write a buffer of this kind anywhere.
bool touches(const Plan& plan, BufferKind kind) {
  for (uint32_t rank = 0; rank < plan.ranks(); ++rank) {
    if (interpreter::reached_by_peers(plan, rank, kind)) return true;
    for (const ThreadBlock& block : plan.gpus[rank].threadblocks) {
      for (const Op& op : block.ops) {
        for (const bool dests : {false, true}) {
          const std::span<const Operand> operands = dests ? block.dests(op) : block.sources(op);
          size_t at = 0;
          for (const Field& field : info(op.code).fields) {
            if (!is_operand(field.role) || field.in_dst != dests) continue;
            for (const size_t end = field.many ? operands.size() : at + 1; at < end && at < operands.size();
                 ++at) {
              const bool here = !is_remote(field.role) && !is_switched(field.role);
              if (here && operands[at].ref == uint32_t(kind)) return true;
            }
          }
        }
      }
    }
  }
  return false;
}

}  // namespace

Binding::Binding(const Shared& shared, const Plan& plan, const Call& call)
    : shared_(shared), world_(*shared.world), call_(call), rank_(uint32_t(world_.rank())) {
  std::string error;
  try {
    layout_ = interpreter::layout_of(plan, call.bytes, call.dtype);
    std::optional<ReduceOp> replacement;
    if (call.op >= 0) {
      const ReduceOp op = ReduceOp(call.op);
      interpreter::only_operator(plan, reduce_op_name(op));
      replacement = op;
      if (op == ReduceOp::avg) {
        if (plan.collective != "allreduce" && plan.collective != "reducescatter") {
          throw UsageError(fmt::format("plan '{}': avg is for allreduce and reducescatter, not for {}",
                                       plan.name, plan.collective));
        }
        replacement = ReduceOp::sum;
        average_over_ = plan.ranks();
      }
    }
    image_ = interpreter::build_image(plan, rank_, layout_, call.dtype, replacement);
  } catch (const UsageError& wrong) {
    error = wrong.what();
  }
  agree_on_use(world_, error);

  plan_in_place_ = plan.inplace;
  const bool both = touches(plan, BufferKind::input) && touches(plan, BufferKind::output);
  one_storage_ = plan.inplace && (!both || plan.collective == "allreduce" || plan.collective == "allgather" ||
                                  plan.collective == "reducescatter");
  if (layout_.sizes.input != layout_.sizes.output && plan.collective != "allgather" &&
      plan.collective != "reducescatter") {
    one_storage_ = false;
  }
  output_is_complete_ =
      plan.collective != "sendrecv" && plan.collective != "custom" && plan.collective != "test";
  needs_input_ = plan.collective != "broadcast" || plan.extension.root == rank_;
  if (plan.collective == "allgather") in_at_ = rank_ * layout_.sizes.input;
  scatters_ = plan.collective == "reducescatter";
  if (scatters_) out_at_ = rank_ * layout_.sizes.output;
  make_control(plan);
  body_ = [this](int block, BlockHost& host) { body(block, host); };
  spdlog::debug("rank {} bound plan '{}' to {} bytes: chunks of {} bytes, {} bytes of window", rank_,
                plan.name, call.bytes, layout_.chunk_bytes, window_->bytes(int(rank_)));
}

Binding::~Binding() = default;

/// Collective.
void Binding::make_control(const Plan& plan) {
  const auto stages = [&](uint32_t rank) {
    return !world_.local() && (interpreter::reached_by_peers(plan, rank, BufferKind::input) ||
                               interpreter::reached_by_peers(plan, rank, BufferKind::output));
  };
  const Parts mine(plan, rank_, layout_, stages(rank_));
  window_ = std::make_unique<Window>(Window::create(world_, mine.bytes));
  if (stages(rank_)) window_staging_ = reinterpret_cast<char*>(window_->local()) + mine.staging;
  in_reached_ = interpreter::reached_by_peers(plan, rank_, BufferKind::input);
  out_reached_ = interpreter::reached_by_peers(plan, rank_, BufferKind::output);

  std::vector<Parts> parts;
  for (uint32_t rank = 0; rank < plan.ranks(); ++rank) {
    parts.emplace_back(plan, rank, layout_, stages(rank));
    published_.push_back(reinterpret_cast<Published*>(window_->at(int(rank))));
  }
  for (image::Buffer& buffer : image_.buffers) {
    char* const window = reinterpret_cast<char*>(window_->at(int(buffer.rank)));
    if (buffer.kind == uint32_t(BufferKind::scratch)) buffer.base = window + parts[buffer.rank].plain;
    if (buffer.kind == packet_kind) buffer.base = window + parts[buffer.rank].packets;
  }
  const auto signals_of = [&](uint32_t rank) {
    return reinterpret_cast<Signal*>(window_->at(int(rank)) + parts[rank].signals);
  };
  for (const image::Channel& channel : image_.channels) {
    const bool heard = channel.signal_at_peer != image::Channel::none;
    signals_at_peer_.push_back(heard ? signals_of(channel.peer) + channel.signal_at_peer : nullptr);
  }
  const size_t channels = image_.channels.size();
  expected_.resize(channels);
  pushed_.resize(channels);
  completed_.resize(channels);
  barriers_.resize(image_.barriers);
  for (const uint64_t permits : image_.semaphores) semaphores_.push_back({permits});

  run_.image = image_.view();
  room_bytes_ = Machine::room_bytes(run_.image);
  rooms_.resize(image_.blocks.size() * room_bytes_);
  run_.rank = rank_;
  run_.ll16 = call_.packet == PacketForm::ll16;
  run_.dtype = call_.dtype;
  // The scheduler ends a launch whose time is over, and knows then who waited for whom.
  run_.deadline = Deadline{world_.abort_word(), 0, 0};
  run_.signals = signals_of(rank_);
  run_.signals_at_peer = signals_at_peer_.data();
  run_.expected = expected_.data();
  run_.barriers = barriers_.data();
  run_.semaphores = semaphores_.data();
  run_.pushed = pushed_.data();
  run_.completed = completed_.data();
  run_.published = published_.data();
  run_.window = window_.get();
  run_.windows = shared_.windows;
  run_.local = world_.local();
  if (image_.uses_port) {
    proxy_ = &shared_.proxy();
    run_.fifo = &proxy_->fifo();
  }
}

// -- Places
// ---------------------------------------------------------------------------------------------------

char* Binding::staging() {
  if (window_staging_) return window_staging_;
  if (!own_staging_) own_staging_ = std::make_unique_for_overwrite<char[]>(layout_.sizes.input);
  return own_staging_.get();
}

/// What peers find memory of ours by; 0 if they cannot reach it.
uint64_t Binding::shared_word(const char* at, uint64_t bytes) const {
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

void Binding::place(const void* in, void* out) {
  const auto [in_bytes, out_bytes] = layout_.sizes;
  char* const user_in = static_cast<char*>(const_cast<void*>(in));
  char* const user_out = static_cast<char*>(out);
  if ((!in && in_bytes && needs_input_) || (!out && out_bytes)) {
    throw UsageError(fmt::format("rank {}: {} is null", rank_, !out && out_bytes ? "out" : "in"));
  }
  const bool in_place = in_bytes && out_bytes && in && user_in + out_at_ == user_out + in_at_;
  if (!in_place && in && in_bytes && out_bytes && user_in < user_out + out_bytes &&
      user_out < user_in + in_bytes) {
    throw UsageError(
        fmt::format("rank {}: input [{}, {}) and output [{}, {}) overlap, and not as in place: input at "
                    "output + {}, output at "
                    "input + {}",
                    rank_, fmt::ptr(user_in), fmt::ptr(user_in + in_bytes), fmt::ptr(user_out),
                    fmt::ptr(user_out + out_bytes), in_at_, out_at_));
  }

  before_[0] = before_[1] = after_ = {};
  in_ = user_in;
  out_ = user_out;
  bool together = false;
  if (plan_in_place_ && in_place) {
    together = true;
  } else if (one_storage_ && !scatters_) {
    in_ = user_out + in_at_;
    before_[0] = {in_, in, in_bytes};
    together = true;
  } else if (one_storage_ && in && in_bytes) {
    // Reduce-scatter: the plan writes its result over its input, which is not to be changed.
    in_ = staging();
    out_ = in_ + out_at_;
    before_[0] = {in_, in, in_bytes};
    after_ = {user_out, out_, out_bytes};
  } else if (in_place) {
    in_ = staging();
    before_[0] = {in_, in, in_bytes};
  }
  if (run_.local || !(in_reached_ || out_reached_)) return;
  char* const storage = in_ - in_at_ < out_ - out_at_ ? in_ - in_at_ : out_ - out_at_;
  place_for_peers(in, out, together, storage, std::max(in_bytes, out_bytes));
}

/// Several processes: what peers touch must be where they can.
void Binding::place_for_peers(const void* in, void* out, bool one_storage, char* storage,
                              uint64_t storage_bytes) {
  const auto [in_bytes, out_bytes] = layout_.sizes;
  const char* const first = in_;
  bool moved = false;
  if (one_storage) {
    if (shared_word(storage, storage_bytes)) return;
    in_ = window_staging_ + in_at_;
    out_ = window_staging_ + out_at_;
    if (!output_is_complete_) before_[1] = {out_, out, out_bytes};
    before_[0] = {in_, in, in_bytes};
    after_ = {out, out_, out_bytes};
    moved = true;
  } else {
    if (in_reached_ && in_bytes && in_ && !shared_word(in_, in_bytes)) {
      in_ = window_staging_;
      before_[0] = {in_, first, in_bytes};
      moved = true;
    }
    if (out_reached_ && out_bytes && !shared_word(out_, out_bytes)) {
      out_ = window_staging_ + in_bytes;
      if (!output_is_complete_) before_[1] = {out_, out, out_bytes};
      after_ = {out, out_, out_bytes};
      moved = true;
    }
  }
  if (moved && !staged_) {
    staged_ = true;
    spdlog::debug("rank {}: buffers outside Executor::allocate() are staged: {} bytes in, {} bytes out",
                  rank_, before_[0].bytes + before_[1].bytes, after_.bytes);
  }
}

// -- Runs
// -----------------------------------------------------------------------------------------------------

LaunchResult Binding::launch() {
  // An output that came back unchanged where the plan leaves it, before the input that may lie in it.
  for (const Move* move : {&before_[1], &before_[0]}) {
    if (move->bytes && move->from && move->to != move->from) std::memcpy(move->to, move->from, move->bytes);
  }
  run_.epoch = epoch_ + 1;
  image_.buffers[0].base = in_;
  image_.buffers[1].base = out_;
  publish();
  const uint32_t blocks = run_.image.n_blocks;
  blocks_left_.store(int(blocks), std::memory_order_relaxed);
  const bool fiber = proxy_ && world_.scheduler().seeded();
  if (proxy_) proxy_->begin();
  LaunchResult result = world_.scheduler().launch(int(rank_), int(blocks + (fiber ? 1 : 0)), body_);
  if (proxy_) proxy_->end(result.stop != Stop::none);
  if (result.stop == Stop::none || epoch_ == run_.epoch) {
    if (blocks == 0) finish();
    if (after_.bytes) std::memcpy(after_.to, after_.from, after_.bytes);
  }
  return result;
}

/// Peers may touch our memory from now on, if the plan's own signals say so.
void Binding::publish() {
  Published& mine = *published_[rank_];
  store_relaxed(&mine.in, in_reached_ ? shared_word(in_, layout_.sizes.input) : uint64_t(0));
  store_relaxed(&mine.out, out_reached_ ? shared_word(out_, layout_.sizes.output) : uint64_t(0));
  store_release(&mine.epoch, run_.epoch);
}

void Binding::body(int block, BlockHost& host) {
  if (uint32_t(block) == run_.image.n_blocks) return proxy_->run_fiber(host, blocks_left_);
  Machine machine(run_, block_group(uint32_t(block), run_.image.n_blocks, &host), &host,
                  rooms_.data() + size_t(block) * room_bytes_);
  machine.begin(uint32_t(block));
  const Stop stop = run_block(machine, uint32_t(block));
  if (stop == Stop::none && ended_.fetch_add(1, std::memory_order_acq_rel) + 1 == run_.image.n_blocks)
    finish();
  blocks_left_.fetch_sub(1, std::memory_order_acq_rel);
}

/// By the last block: nobody touches this rank's output any more.
void Binding::finish() {
  if (average_over_ > 1) {
    reduction(ReduceOp::sum, call_.dtype)
        .divide(out_, layout_.sizes.output / dtype_size(call_.dtype), average_over_);
  }
  ended_.store(0, std::memory_order_relaxed);
  epoch_ = run_.epoch;
}

}  // namespace chorale::cpu
