// These mutations change the memory that an operation on data touches.

#include <utility>

#include "places.hpp"

namespace chorale::mutation {
namespace {

/// Calls visit(place, gpu, block, op, field, operand, position) for every operand.
template <class Visit>
void each_operand(const Plan& plan, Visit&& visit) {
  for_each_op(plan, [&](const Gpu& gpu, const ThreadBlock& block, const Op& op, const Op*, OpPlace at) {
    for_each_operand(block, op, [&](const Field& field, const Operand& operand) {
      visit(at, gpu, block, op, field, operand, size_t(&operand - block.sources(op).data()));
    });
  });
}

std::string operand_text(const Field& field, const Op& op, size_t position) {
  const size_t nth = field.in_dst ? position - op.sources : position;
  return std::string(field.in_dst ? "destination " : "source ") + std::to_string(nth);
}

/// Moves an operand one chunk further, or one back at the end of the buffer.
void one_off(const Plan& plan, Sites& out, bool in_dst) {
  each_operand(plan, [&](const OpPlace& at, const Gpu& gpu, const ThreadBlock& block, const Op& op,
                         const Field& field, const Operand& operand, size_t position) {
    if (field.in_dst != in_dst) return;
    const bool forward = operand.index + operand.size < room(plan, where_is(gpu, block, op, field, operand));
    if (!forward && !operand.index) return;
    out.add(
        at,
        [=](Edit& edit) {
          change_operand(edit, at, position, [&](Operand& of) { of.index += forward ? 1 : -1; });
        },
        operand_text(field, op, position));
  });
}

/// Gives a remote operand another rank or another buffer. Over a port channel a check reports at once that
/// the channel leads elsewhere.
template <class Choose>
void elsewhere(const Plan& plan, Sites& out, Choose&& choose) {
  each_operand(plan, [&](const OpPlace& at, const Gpu& gpu, const ThreadBlock& block, const Op& op,
                         const Field& field, const Operand& operand, size_t position) {
    if (!is_remote(field.role)) return;
    const RemoteBuffer& now = *remote_buffer(gpu, block, op.via, operand.ref);
    const auto [rank, buffer] = choose(gpu, field, operand, now);
    if (rank == now.rank && buffer == now.buffer) return;
    const ChannelType via = op.via;
    out.add(
        at,
        [=, rank = rank, buffer = buffer](Edit& edit) {
          const uint32_t ref = edit.remote_buffer(at, via, rank, buffer);
          change_operand(edit, at, position, [&](Operand& of) { of.ref = ref; });
        },
        operand_text(field, op, position));
  });
}

/// Gives every encoded operand another number of a codec.
/// \param next  returns it for the present one; 0: the operand becomes plain
template <class Next>
void change_codecs(const Plan& plan, Sites& out, Next&& next) {
  each_operand(plan, [&](const OpPlace& at, const Gpu&, const ThreadBlock&, const Op& op, const Field& field,
                         const Operand& operand, size_t position) {
    const uint32_t codec = operand.codec ? next(operand.codec) : 0;
    if (codec == operand.codec) return;
    out.add(
        at, [=](Edit& edit) { change_operand(edit, at, position, [&](Operand& of) { of.codec = codec; }); },
        operand_text(field, op, position));
  });
}

using Target = std::pair<uint32_t, BufferKind>;

}  // namespace

void make::wrong_source(const Plan& plan, Sites& out) { one_off(plan, out, false); }
void make::wrong_destination(const Plan& plan, Sites& out) { one_off(plan, out, true); }

void make::wrong_peer(const Plan& plan, Sites& out) {
  elsewhere(plan, out, [&](const Gpu& gpu, const Field&, const Operand&, const RemoteBuffer& now) {
    uint32_t rank = (now.rank + 1) % plan.ranks();
    if (rank == gpu.id) rank = (rank + 1) % plan.ranks();
    return Target{rank, now.buffer};
  });
}

void make::wrong_remote_buffer(const Plan& plan, Sites& out) {
  elsewhere(plan, out, [&](const Gpu&, const Field& field, const Operand& operand, const RemoteBuffer& now) {
    for (size_t step = 1; step < std::size(buffer_names) && !is_packet(field.role); ++step) {
      const BufferKind buffer = BufferKind((size_t(now.buffer) + step) % std::size(buffer_names));
      if (operand.index + operand.size <= plan.gpus[now.rank].chunks[size_t(buffer)]) {
        return Target{now.rank, buffer};
      }
    }
    return Target{now.rank, now.buffer};
  });
}

void make::drop_codec(const Plan& plan, Sites& out) {
  change_codecs(plan, out, [](uint32_t) { return 0u; });
}
void make::other_codec(const Plan& plan, Sites& out) {
  const uint32_t codecs = uint32_t(plan.extension.codecs.size());
  change_codecs(plan, out, [=](uint32_t codec) { return codec % codecs + 1; });
}

void make::halve_size(const Plan& plan, Sites& out) {
  for_each_op(plan, [&](const Gpu&, const ThreadBlock& block, const Op& op, const Op*, OpPlace at) {
    if (!moves_data(op)) return;
    bool even = true;
    for_each_operand(block, op, [&](const Field&, const Operand& operand) { even &= operand.size % 2 == 0; });
    out.add(at, [=](Edit& edit) {
      if (!even && !edit.cut_chunks()) return;
      const ThreadBlock& in = block_of(edit.plan(), at);
      std::vector<Operand> sources = source_list(in, in.ops[at.op]), dests = dest_list(in, in.ops[at.op]);
      for (std::vector<Operand>* list : {&sources, &dests}) {
        for (Operand& operand : *list) operand.size /= 2;
      }
      edit.set_operands(at, std::move(sources), std::move(dests));
    });
  });
}

void make::grow_size(const Plan& plan, Sites& out) {
  for_each_op(plan, [&](const Gpu& gpu, const ThreadBlock& block, const Op& op, const Op*, OpPlace at) {
    if (!moves_data(op)) return;
    bool behind = true, before = true;  // true if all buffers have space there
    for_each_operand(block, op, [&](const Field& field, const Operand& operand) {
      behind &= operand.index + operand.size < room(plan, where_is(gpu, block, op, field, operand));
      before &= operand.index > 0;
    });
    if (!behind && !before) return;
    out.add(at, [=](Edit& edit) {
      const ThreadBlock& in = block_of(edit.plan(), at);
      std::vector<Operand> sources = source_list(in, in.ops[at.op]), dests = dest_list(in, in.ops[at.op]);
      for (std::vector<Operand>* list : {&sources, &dests}) {
        for (Operand& operand : *list) {
          operand.size += 1;
          operand.index -= !behind;
        }
      }
      edit.set_operands(at, std::move(sources), std::move(dests));
    });
  });
}

void make::input_for_scratch(const Plan& plan, Sites& out) {
  each_operand(plan, [&](const OpPlace& at, const Gpu& gpu, const ThreadBlock&, const Op& op,
                         const Field& field, const Operand& operand, size_t position) {
    if (field.role != Role::Read) return;
    const bool from_input = operand.ref == uint32_t(BufferKind::input);
    if (!from_input && operand.ref != uint32_t(BufferKind::scratch)) return;
    const BufferKind to = from_input ? BufferKind::scratch : BufferKind::input;
    const uint64_t chunks = gpu.chunks[size_t(to)];
    if (chunks < operand.size) return;
    const uint64_t index = std::min(operand.index, chunks - operand.size);
    out.add(
        at,
        [=](Edit& edit) {
          change_operand(edit, at, position, [&](Operand& of) { of = {index, of.size, uint32_t(to)}; });
        },
        operand_text(field, op, position));
  });
}

void make::swap_destinations(const Plan& plan, Sites& out) {
  for_each_op(plan, [&](const Gpu&, const ThreadBlock& block, const Op& op, const Op*, OpPlace at) {
    if (!op.destinations) return;
    const auto next = nearest_behind(block, at.op, moves_data);
    if (!next) return;
    const Op& other = block.ops[*next];
    const Operand &one = block.dests(op)[0], &two = other.destinations ? block.dests(other)[0] : one;
    if (other.code != op.code || other.via != op.via || one.size != two.size || one == two) return;
    out.add(at, [=, one = one, two = two](Edit& edit) {
      change_operand(edit, at, op.sources, [&](Operand& of) { of = two; });
      change_operand(edit, {at.rank, at.threadblock, *next}, other.sources, [&](Operand& of) { of = one; });
    });
  });
}

}  // namespace chorale::mutation
