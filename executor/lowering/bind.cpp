#include "bind.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "chorale/collective.hpp"
#include "chorale/json.hpp"

namespace chorale::lowering {
namespace {

using image::Buffer;

/// Builds the image of one rank.
class Builder {
 public:
  Builder(const Plan& plan, const std::vector<ScratchUse>& use, uint32_t rank, const Layout& layout,
          DType dtype, std::optional<ReduceOp> replacement)
      : plan_(plan),
        use_(use),
        gpu_(plan.gpus[rank]),
        rank_(rank),
        layout_(layout),
        dtype_(dtype),
        replacement_(replacement) {}

  BoundImage build() {
    image_.alignment = layout_.alignment;
    for (uint32_t kind = 0; kind <= packet_kind; ++kind) buffer(rank_, kind);
    add_channels();
    for (size_t semaphore = 0; semaphore < gpu_.semaphores.size(); ++semaphore) {
      if (gpu_.semaphores[semaphore] < 0) {
        throw UsageError(fmt::format("plan '{}': semaphore {} of rank {} starts at {}, which is less than 0",
                                     plan_.name, semaphore, rank_, gpu_.semaphores[semaphore]));
      }
      image_.semaphores.push_back(uint64_t(gpu_.semaphores[semaphore]));
    }
    reserve();
    for (const ThreadBlock& block : gpu_.threadblocks) add(block);
    return std::move(image_);
  }

 private:
  void reserve() {
    size_t ops = 0, operands = 0, ids = 0;
    for (const ThreadBlock& block : gpu_.threadblocks) {
      ops += block.ops.size();
      operands += block.operands.size();
      ids += block.ids.size();
    }
    image_.blocks.reserve(gpu_.threadblocks.size());
    image_.records.reserve(ops);
    image_.places.reserve(operands);
    image_.ids.reserve(ids);
  }

  [[noreturn]] void refuse(const std::string& why) const {
    const SourceLine line = plan_.line_of(*op_);
    throw UsageError(fmt::format("plan '{}': rank {}, thread block {}, op {} ({}{}): {}", plan_.name, rank_,
                                 block_ - gpu_.threadblocks.data(), op_ - block_->ops.data(),
                                 info(op_->code).name,
                                 line.line ? fmt::format(", {}:{}", line.file, line.line) : "", why));
  }

  /// Returns the position of a rank's buffer in the image. The image lists each buffer once.
  uint32_t buffer(uint32_t rank, uint32_t kind, bool encoded = false) {
    for (uint32_t at = 0; at < image_.buffers.size(); ++at) {
      const Buffer& known = image_.buffers[at];
      if (known.rank == rank && known.kind == kind && known.encoded == encoded) return at;
    }
    Buffer of;
    of.rank = rank;
    of.kind = kind;
    of.encoded = encoded;
    const ScratchBytes scratch = scratch_bytes(use_[rank], layout_);
    if (kind <= uint32_t(BufferKind::output) && layout_.rounds() > 1) {
      of.segment_nominal = layout_.chunks_per_segment * layout_.slice_bytes;
      of.segment_bytes = layout_.segment_bytes;
      of.slice_bytes = layout_.slice_bytes;
      of.chunk_bytes = layout_.chunk_bytes;
    } else if (kind <= uint32_t(BufferKind::output)) {
      of.segment_nominal = layout_.segment_nominal();
      of.segment_bytes = layout_.segment_bytes;
      if (of.segment_bytes != 0 && of.segment_bytes == of.segment_nominal && !layout_.segments_apart) {
        // Without gaps after segments, make one segment of all, so that a move across several is one piece.
        const uint64_t all = kind == 0 ? layout_.sizes.input : layout_.sizes.output;
        if (all != 0) of.segment_nominal = of.segment_bytes = all;
      }
    } else if (kind == packet_kind) {
      of.bank_bytes = scratch.packet_bank;
    } else if (scratch.plain_banks == 2) {
      of.bank_bytes = scratch.plain_bank;
    }
    image_.buffers.push_back(of);
    return uint32_t(image_.buffers.size() - 1);
  }

  void add_channels() {
    for (const ChannelType type : signalled_types) {
      const uint32_t n = gpu_.channel_count(type);
      for (uint32_t id = 0; id < n; ++id) {
        const uint32_t peer = uint32_t(gpu_.peer(type, id));
        if (peer >= plan_.ranks()) {
          throw UsageError(
              fmt::format("plan '{}': {} channel {} of rank {} leads to rank {}, but there are {} ranks",
                          plan_.name, channel_type_names[size_t(type)], id, rank_, peer, plan_.ranks()));
        }
        image_.channels.push_back({peer, signal_at(type, id, peer)});
      }
      if (is_direct(type)) image_.memory_channels += n;
    }
  }

  /// Returns the signal at a peer. The k-th channel from here to a peer pairs with the k-th from there to
  /// here.
  uint32_t signal_at(ChannelType type, uint32_t id, uint32_t peer) const {
    uint32_t turn = 0;
    for (uint32_t before = 0; before < id; ++before) turn += gpu_.peer(type, before) == peer;
    const Gpu& there = plan_.gpus[peer];
    const uint32_t first = there.first_signal(type);
    for (uint32_t back = 0; back < there.channel_count(type); ++back) {
      if (there.peer(type, back) == rank_ && turn-- == 0) return first + back;
    }
    return image::Channel::none;
  }

  void add(const ThreadBlock& block) {
    block_ = &block;
    image_.blocks.push_back({uint32_t(image_.records.size()), uint32_t(block.ops.size())});
    size_t body_end = 0;
    bool in_body = false;
    uint64_t unit = 0;
    for (size_t at = 0; at < block.ops.size(); ++at) {
      op_ = &block.ops[at];
      in_body = at < body_end;
      if (op_->code == Opcode::pipeline) {
        if (in_body) refuse("a pipeline must not be inside a pipeline");
        if (op_->body >= block.ops.size() - at) refuse("its body is longer than the thread block");
        body_end = at + 1 + op_->body;
        unit = op_->unit_bytes;
      }
      add(*op_, in_body ? unit : 0);
    }
  }

  void add(const Op& op, uint64_t unit) {
    const OpInfo& row = info(op.code);
    image::Record record{};
    record.code = op.code;
    record.via = op.via;
    record.reduce_op = op.reduce_op;
    record.first_place = uint32_t(image_.places.size());
    record.sources = op.sources;
    record.dests = op.destinations;
    record.group_index = op.group_index;
    record.group_size = op.group_size;
    record.participants = op.participants;
    if (op.group_size != 0 && op.group_index >= op.group_size) {
      refuse(fmt::format("group_index {} is not below group_size {}", op.group_index, op.group_size));
    }
    if (row.has(Role::Reduce)) {
      if (std::find(std::begin(all_reduce_ops), std::end(all_reduce_ops), op.reduce_op) ==
          std::end(all_reduce_ops))
        refuse(fmt::format("reduction operator {} is unknown", int(op.reduce_op)));
      if (op.reduce_op == ReduceOp::avg)
        refuse(
            "use avg as Arguments::op, not in a plan: the plan adds, and the result is divided at the end");
      if (replacement_) record.reduce_op = *replacement_;
    }
    add_places(block_->sources(op), row, false);
    add_places(block_->dests(op), row, true);
    record.codec = codec_of(op);
    if (record.codec && unit % layout_.block != 0)
      refuse(fmt::format(
          "a pipeline whose unit is {} bytes cuts blocks of encoded elements: make it a multiple of {}", unit,
          layout_.block));
    check_sizes(row, record);
    add_ids(row, record);
    if (op.code == Opcode::pipeline) add_turns(record);
    if (unit % unit_bytes != 0) {
      for (const Field& field : row.fields) {
        if (is_packet(field.role)) {
          refuse(fmt::format("packets need a pipeline whose unit is a multiple of {} bytes, but it has {}",
                             unit_bytes, unit));
        }
      }
    }
    image_.records.push_back(record);
  }

  /// Returns Codec::packed() of the only codec of an operation; 0 if no operand is encoded.
  uint16_t codec_of(const Op& op) const {
    uint32_t only = 0;
    for (const std::span<const Operand> operands : {block_->sources(op), block_->dests(op)}) {
      for (const Operand& operand : operands) {
        if (!operand.codec) continue;
        if (operand.codec > plan_.extension.codecs.size())
          refuse(fmt::format("no codec {}", operand.codec - 1));
        if (only && only != operand.codec) refuse("its operands are encoded by different codecs");
        only = operand.codec;
      }
    }
    return only ? plan_.extension.codecs[only - 1].packed() : uint16_t(0);
  }

  void add_turns(image::Record& record) {
    if (op_->unit_bytes == 0 || op_->unit_bytes % dtype_size(dtype_) != 0) {
      refuse(fmt::format("a unit of {} bytes is not a whole number of {} elements", op_->unit_bytes,
                         dtype_name(dtype_)));
    }
    const uint64_t bytes = op_->chunks * layout_.slice_bytes;
    // A turn ends between packets. The turns of all pipelines of the plan are lengthened by the same factor,
    // because pipelines may count each other's turns.
    uint64_t turn = op_->unit_bytes;
    const uint64_t grain = std::lcm(layout_.packet, layout_.block);
    if (layout_.packet > unit_bytes) turn = (turn + grain - 1) / grain * grain;
    record.body = op_->body;
    record.turn_bytes = turn;
    record.turns = bytes / turn + (bytes % turn != 0 ? 1 : 0);
  }

  void add_places(std::span<const Operand> operands, const OpInfo& row, bool dests) {
    size_t at = 0;
    for (const Field& field : row.fields) {
      if (!is_operand(field.role) || field.in_dst != dests) continue;
      const size_t end = field.many ? operands.size() : at + 1;
      if (at >= end || end > operands.size()) {
        if (field.many && end == at && dests) continue;  // there is no receiver
        refuse(fmt::format("it lacks the operand '{}'", field.name));
      }
      for (; at < end; ++at) add_place(operands[at], field);
    }
    if (at != operands.size()) {
      refuse(fmt::format("it has {} {} operands, but needs {}", operands.size(), dests ? "dst" : "src", at));
    }
  }

  void add_place(const Operand& operand, const Field& field) {
    image::Place place;
    place.start = operand.index * layout_.slice_bytes;
    place.bytes = operand.size * layout_.slice_bytes;
    if (is_switched(field.role)) {
      place.buffer = switch_of(operand, field);
    } else {
      uint32_t rank = rank_;
      BufferKind kind{};
      if (is_remote(field.role)) {
        const RemoteBuffer& remote = remote_of(operand, field);
        rank = remote.rank;
        kind = remote.buffer;
      } else {
        if (operand.ref > uint32_t(BufferKind::scratch)) refuse(fmt::format("no buffer {}", operand.ref));
        kind = BufferKind(operand.ref);
      }
      place.buffer = target(rank, kind, operand, field);
    }
    const Buffer& shape =
        image_.buffers[is_switched(field.role) ? image_.members[image_.switches[place.buffer].first]
                                               : place.buffer];
    const image::Position at = image::locate(shape, place.start);
    place.offset = at.offset;
    place.valid = at.valid;
    // In the next round the slice may have another number of bytes.
    place.whole = at.run >= place.bytes && shape.slice_bytes == 0;
    image_.places.push_back(place);
  }

  uint32_t target(uint32_t rank, BufferKind kind, const Operand& operand, const Field& field) {
    if (rank >= plan_.ranks())
      refuse(fmt::format("'{}' is at rank {}, but there are {} ranks", field.name, rank, plan_.ranks()));
    const uint64_t chunks = plan_.gpus[rank].chunks[size_t(kind)];
    if (operand.size > chunks || operand.index > chunks - operand.size) {
      refuse(fmt::format("'{}' ends at chunk {}, but the {} of rank {} has {}", field.name,
                         operand.index + operand.size, buffer_names[size_t(kind)], rank, chunks));
    }
    if (operand.codec && (kind != BufferKind::scratch || is_packet(field.role) || is_switched(field.role) ||
                          has_proxy(op_->via))) {
      refuse(fmt::format("'{}' is encoded, but only threads encode and decode plain chunks of scratch",
                         field.name));
    }
    if (!is_packet(field.role)) return buffer(rank, uint32_t(kind), operand.codec != 0);
    if (kind != BufferKind::scratch) {
      refuse(fmt::format("'{}' is packets, which must be in scratch, not in {}", field.name,
                         buffer_names[size_t(kind)]));
    }
    return buffer(rank, packet_kind);
  }

  const RemoteBuffer& remote_of(const Operand& operand, const Field& field) const {
    const bool through_proxy = info(op_->code).has(Role::PortChannels) || info(op_->code).has(Role::Post);
    if (!is_direct(op_->via) && !(has_proxy(op_->via) && through_proxy)) {
      refuse(fmt::format("has no form over {} channels", channel_type_names[size_t(op_->via)]));
    }
    const RemoteBufferRefs* refs = block_->remote_buffers_of(op_->via);
    if (!refs || operand.ref >= refs->ids.size() || refs->ids[operand.ref] >= gpu_.remote_buffers.size()) {
      refuse(fmt::format("'{}' is remote buffer {}, which the thread block does not have", field.name,
                         operand.ref));
    }
    return gpu_.remote_buffers[refs->ids[operand.ref]];
  }

  uint32_t switch_of(const Operand& operand, const Field& field) {
    const ChannelRefs* refs = block_->channels_of(ChannelType::switched);
    const SwitchGroup group = refs && operand.ref < refs->ids.size()
                                  ? gpu_.switch_group(refs->ids[operand.ref])
                                  : SwitchGroup{BufferKind::input, nullptr};
    if (!group.ranks || group.ranks->empty()) {
      refuse(fmt::format("'{}' is switch channel {}, which the thread block does not have", field.name,
                         operand.ref));
    }
    // Reductions go in rank order, in whatever order the channel lists its members.
    std::vector<uint32_t> ranks = *group.ranks;
    std::sort(ranks.begin(), ranks.end());
    image::Switch members{uint32_t(image_.members.size()), uint32_t(ranks.size())};
    for (const uint32_t rank : ranks) image_.members.push_back(target(rank, group.buffer, operand, field));
    image_.switches.push_back(members);
    return uint32_t(image_.switches.size() - 1);
  }

  /// Checks the sizes of operands. The two operands of a pair have one size; in other operations all operands
  /// have the same size.
  void check_sizes(const OpInfo& row, const image::Record& record) const {
    const image::Place* source = image_.places.data() + record.first_place;
    const bool pairs =
        row.fields.size() >= 2 && row.fields[0].many && row.fields[1].many && row.fields[1].in_dst;
    if (pairs && record.sources != record.dests) {
      refuse(fmt::format("it has {} sources but {} destinations", record.sources, record.dests));
    }
    if (record.sources + record.dests == 0) return;
    const image::Place& first = *source;
    for (uint32_t at = 0; at < record.sources + record.dests; ++at) {
      const image::Place& expected = !pairs                ? first
                                     : at < record.sources ? source[at]
                                                           : source[at - record.sources];
      if (source[at].bytes != expected.bytes) {
        refuse(fmt::format("its operands have different sizes: {} and {} chunks",
                           expected.bytes / layout_.slice_bytes, source[at].bytes / layout_.slice_bytes));
      }
    }
  }

  void add_ids(const OpInfo& row, image::Record& record) {
    record.first_id = uint32_t(image_.ids.size());
    const std::span<const uint32_t> ids = block_->op_ids(*op_);
    if (row.has(Role::Acquire) || row.has(Role::Release)) {
      for (const uint32_t id : ids) {
        if (id >= gpu_.semaphores.size()) refuse(fmt::format("no semaphore {}", id));
        image_.ids.push_back(id);
      }
    } else if (row.has(Role::Arrive)) {
      if (ids.size() != 1 || op_->participants == 0)
        refuse("a barrier has one id and at least one participant");
      image_.ids.push_back(barrier(ids[0]));
    } else if (uses_channels(row)) {
      for (const uint32_t id : ids) image_.ids.push_back(channel(id));
      if (has_proxy(op_->via)) {
        image_.uses_port = true;
        if (row.fields[0].in_dst || !is_operand(row.fields[0].role)) {
        } else if (ids.size() != op_->destinations) {
          refuse(fmt::format("it has {} channels but {} destinations", ids.size(), op_->destinations));
        }
      }
    }
    record.ids = uint32_t(image_.ids.size()) - record.first_id;
  }

  /// Returns true if the ids name channels that are used. A memory put needs only the address.
  bool uses_channels(const OpInfo& row) const {
    if ((row.has(Role::Channels) || row.has(Role::PortChannels)) && !has_proxy(op_->via)) return false;
    for (const Role role : {Role::Channels, Role::PortChannels, Role::Post, Role::PostRelaxed, Role::Await,
                            Role::AwaitRelaxed, Role::Drain}) {
      if (row.has(role)) return true;
    }
    return false;
  }

  uint32_t channel(uint32_t local) const {
    if (!has_signals(op_->via)) {
      refuse(fmt::format("has no form over {} channels", channel_type_names[size_t(op_->via)]));
    }
    if (info(op_->code).has(Role::Drain) && !has_proxy(op_->via)) {
      refuse(fmt::format("has no form over {} channels", channel_type_names[size_t(op_->via)]));
    }
    const ChannelRefs* refs = block_->channels_of(op_->via);
    if (!refs || local >= refs->ids.size() || refs->ids[local] >= gpu_.channel_count(op_->via)) {
      refuse(fmt::format("{} channel {}, which the thread block does not have",
                         channel_type_names[size_t(op_->via)], local));
    }
    return refs->ids[local] + gpu_.first_signal(op_->via);
  }

  /// Returns the number of the barrier with the plan's id. Barriers are numbered in order of appearance.
  uint32_t barrier(uint32_t id) {
    for (uint32_t at = 0; at < barriers_.size(); ++at) {
      if (barriers_[at].first != id) continue;
      if (barriers_[at].second != op_->participants) {
        refuse(fmt::format("barrier {} has {} thread blocks here and {} elsewhere", id, op_->participants,
                           barriers_[at].second));
      }
      return at;
    }
    barriers_.push_back({id, op_->participants});
    image_.barriers = uint32_t(barriers_.size());
    return image_.barriers - 1;
  }

  const Plan& plan_;
  const std::vector<ScratchUse>& use_;
  const Gpu& gpu_;
  uint32_t rank_;
  const Layout& layout_;
  DType dtype_;
  std::optional<ReduceOp> replacement_;
  BoundImage image_;
  const ThreadBlock* block_ = nullptr;
  const Op* op_ = nullptr;
  std::vector<std::pair<uint32_t, uint32_t>> barriers_;
};

}  // namespace

image::Image BoundImage::view() const {
  image::Image image;
  image.records = records.data();
  image.places = places.data();
  image.ids = ids.data();
  image.blocks = blocks.data();
  image.buffers = buffers.data();
  image.switches = switches.data();
  image.members = members.data();
  image.channels = channels.data();
  image.n_blocks = uint32_t(blocks.size());
  image.n_channels = uint32_t(channels.size());
  image.alignment = alignment;
  return image;
}

ScratchBytes scratch_bytes(const ScratchUse& of_rank, const Layout& layout) {
  // Each bank begins on a new line.
  const auto lines = [](uint64_t bytes) { return (bytes + 127) / 128 * 128; };
  // Packets of any form take at most two bytes per byte of data, because chunks are whole lines when the
  // packets are lines.
  static_assert(packet_slots<LL128> <= 2 * packet_payload<LL128>);
  return {lines(of_rank.plain * layout.slice_bytes), lines(2 * of_rank.packets * layout.slice_bytes),
          of_rank.plain_banks};
}

std::optional<ReduceOp> only_operator(const Plan& plan, const std::string& what_for) {
  std::optional<ReduceOp> only;
  for (const Gpu& gpu : plan.gpus) {
    for (const ThreadBlock& block : gpu.threadblocks) {
      for (const Op& op : block.ops) {
        if (!info(op.code).has(Role::Reduce)) continue;
        if (only && *only != op.reduce_op) {
          throw UsageError(fmt::format("plan '{}' reduces by {} and by {}: {} cannot replace them", plan.name,
                                       reduce_op_name(*only), reduce_op_name(op.reduce_op), what_for));
        }
        only = op.reduce_op;
      }
    }
  }
  return only;
}

BoundImage build_image(const Plan& plan, uint32_t rank, const Layout& layout, DType dtype,
                       std::optional<ReduceOp> replacement) {
  return build_image(plan, scratch_use(plan), rank, layout, dtype, replacement);
}

BoundImage build_image(const Plan& plan, const std::vector<ScratchUse>& use, uint32_t rank,
                       const Layout& layout, DType dtype, std::optional<ReduceOp> replacement) {
  return Builder(plan, use, rank, layout, dtype, replacement).build();
}

void check_numbers(DType dtype, PacketForm packet, int32_t op) {
  if (dtype_size(dtype) == 0) throw UsageError(fmt::format("dtype {} is unknown", int(dtype)));
  if (size_t(packet) >= std::size(packet_form_names))
    throw UsageError(fmt::format("packet {} is unknown", int(packet)));
  if (op >= 0 && std::find(std::begin(all_reduce_ops), std::end(all_reduce_ops), ReduceOp(op)) ==
                     std::end(all_reduce_ops))
    throw UsageError(fmt::format("op {} is unknown", op));
}

BoundPlan bind_plan(const Plan& plan, uint32_t rank, uint64_t bytes, DType dtype, PacketForm packet,
                    int32_t op) {
  return bind_plan(plan, scratch_use(plan), rank, bytes, dtype, packet, op);
}

BoundPlan bind_plan(const Plan& plan, const std::vector<ScratchUse>& use, uint32_t rank, uint64_t bytes,
                    DType dtype, PacketForm packet, int32_t op, uint64_t round_scratch, bool segments_apart) {
  check_numbers(dtype, packet, op);
  BoundPlan bound;
  bound.scratch = use;
  bound.layout = in_rounds(plan, bound.scratch, layout_of(plan, bytes, dtype, packet), round_scratch);
  bound.layout.segments_apart = segments_apart;
  std::optional<ReduceOp> replacement;
  if (op >= 0) {
    replacement = ReduceOp(op);
    only_operator(plan, reduce_op_name(*replacement));
  }
  if (replacement == ReduceOp::avg) {
    if (!collective_reduces(plan.collective)) {
      throw UsageError(fmt::format("plan '{}': avg is for collectives that reduce, and {} does not",
                                   plan.name, plan.collective));
    }
    replacement = ReduceOp::sum;
    // Another rank than the root of a reduce has no result, and perhaps no memory for one.
    if (Outcome(plan).promises(rank)) bound.average_over = plan.ranks();
  }
  bound.image = build_image(plan, bound.scratch, rank, bound.layout, dtype, replacement);
  return bound;
}

}  // namespace chorale::lowering
