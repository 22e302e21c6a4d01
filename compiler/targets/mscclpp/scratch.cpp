// This file checks scratch, and what MSCCL++ keeps from one call to the next.

#include <algorithm>

#include "checks.hpp"
#include "chorale/divided_up.hpp"
#include "chorale/proof.hpp"

namespace chorale::mscclpp {
namespace {

bool has_packets(const Plan& plan) {
  bool packets = false;
  for_each_op(plan, [&](const Gpu&, const ThreadBlock&, const Op& op, const Op*, OpPlace) {
    packets |= shape(op.code).has_any(packet_roles);
  });
  return packets;
}

/// Names chunks [begin, end) of a rank's scratch.
struct Piece {
  uint64_t begin = 0, end = 0;
  OpPlace at;
};

/// Returns the piece of a list, sorted by beginning, that overlaps [begin, end); null if none does.
const Piece* find_overlap(const std::vector<Piece>& pieces, const std::vector<uint64_t>& furthest,
                          uint64_t begin, uint64_t end) {
  auto next = std::lower_bound(pieces.begin(), pieces.end(), end,
                               [](const Piece& piece, uint64_t at) { return piece.begin < at; });
  // No piece up to here ends after the furthest end.
  while (next != pieces.begin()) {
    --next;
    if (furthest[size_t(next - pieces.begin())] <= begin) return nullptr;
    if (next->end > begin) return &*next;
  }
  return nullptr;
}

}  // namespace

// Our executor always keeps two banks of packets, and the proofs rely on that.
void packet_banks(const Plan& plan, Finder& find) {
  if (plan.use_double_scratch_buffer || !has_packets(plan)) return;
  for (const Finding& finding : prove_one_bank(plan)) {
    find.add(finding.diagnostic.at,
             "a launch may come here before the packets of the previous launch are read, but MSCCL++ keeps "
             "only one bank of packets",
             "set use_double_scratch_buffer", finding.diagnostic.path);
  }
}

void packet_places(const Plan& plan, Finder& find) {
  if (!has_packets(plan)) return;
  struct Pieces {
    std::vector<Piece> plain;
    std::vector<uint64_t> furthest;  // by position: the furthest end up to there
  };
  std::vector<Pieces> ranks(plan.ranks());
  const auto for_each_piece = [&](bool packets, auto&& visit) {
    for_each_op(plan, [&](const Gpu& gpu, const ThreadBlock& block, const Op& op, const Op*, OpPlace at) {
      for_each_place(plan, gpu, block, op,
                     [&](const Field& field, const Operand& operand, uint32_t rank, BufferKind buffer) {
                       if (buffer != BufferKind::scratch || is_packet(field.role) != packets) return;
                       visit(rank, field, op, Piece{operand.index, operand.index + operand.size, at});
                     });
    });
  };
  for_each_piece(false, [&](uint32_t rank, const Field&, const Op&, const Piece& piece) {
    ranks[rank].plain.push_back(piece);
  });
  for (Pieces& of : ranks) {
    std::stable_sort(of.plain.begin(), of.plain.end(),
                     [](const Piece& left, const Piece& right) { return left.begin < right.begin; });
    uint64_t end = 0;
    for (const Piece& piece : of.plain) of.furthest.push_back(end = std::max(end, piece.end));
  }
  for_each_piece(true, [&](uint32_t rank, const Field& field, const Op& op, const Piece& piece) {
    const Pieces& of = ranks[rank];
    const Piece* const plain = find_overlap(of.plain, of.furthest, 2 * piece.begin, 2 * piece.end);
    if (!plain) return;
    const auto chunks = [](uint64_t begin, uint64_t end) {
      return "scratch[" + number(begin) + ":" + number(end) + "]";
    };
    const OpPlace& by = plain->at;
    const Op& other = plan.gpus[by.rank].threadblocks[by.threadblock].ops[by.op];
    find.add(piece.at,
             std::string(field.name) + " of " + name_of(op) + " is packets of " +
                 chunks(piece.begin, piece.end) + " of " + rank_name(rank) + ", but MSCCL++ keeps them at " +
                 chunks(2 * piece.begin, 2 * piece.end) + ", and " + name_of(other) + " has plain data at " +
                 chunks(plain->begin, plain->end),
             "use other chunks for one of the two: packets of chunks [a, b) take the memory of chunks "
             "[2 a, 2 b)");
  });
}

void packet_protocol(const Plan& plan, Finder& find) {
  if (plan.protocol == Protocol::LL) return;
  for_each_op(plan, [&](const Gpu& gpu, const ThreadBlock& block, const Op& op, const Op*, OpPlace at) {
    bool packets = false;
    for_each_operand(block, op,
                     [&](const Field& field, const Operand&) { packets |= is_packet(field.role); });
    if (!packets) return;
    find.add(at,
             name_of(op) +
                 " moves packets in the protocol Simple, but MSCCL++ then has room for half of the " +
                 count(gpu.chunks[size_t(BufferKind::scratch)], "chunk") + " of scratch",
             "set the protocol of the program to LL");
  });
}

void double_scratch(const Plan& plan, Finder& find) {
  if (!plan.use_double_scratch_buffer) return;
  for_each_op(plan, [&](const Gpu& gpu, const ThreadBlock& block, const Op& op, const Op*, OpPlace at) {
    for_each_operand(block, op, [&](const Field& field, const Operand& operand) {
      if (is_packet(field.role)) return;
      bool wrong = false;
      if (is_remote(field.role)) {
        const RemoteBuffer* buffer = remote_buffer(gpu, block, op.via, operand.ref);
        wrong = buffer && buffer->buffer == BufferKind::scratch;
      } else if (is_switched(field.role)) {
        const SwitchGroup group = switch_group(gpu, block, operand.ref);
        wrong = group.ranks && group.buffer == BufferKind::scratch;
      } else {
        // The proxy reads for the thread block.
        wrong = has_proxy(op.via) && BufferKind(operand.ref) == BufferKind::scratch;
      }
      if (!wrong) return;
      find.add(at,
               std::string(field.name) + " of " + name_of(op) + " is chunk " + number(operand.index) +
                   " of a double scratch buffer, but MSCCL++ takes the first half of it in every call",
               "send packets, or use a single scratch buffer", operand_path(block, op, operand));
    });
  });
}

// MSCCL++ then has scratch of one size, whatever the size of the message. If a chunk is larger than its
// share, it wraps around in a pipeline, which was not proved, and otherwise runs into the next chunk.
void reused_scratch(const Plan& plan, Finder& find) {
  if (!plan.reuse_resources) return;
  const uint64_t banks = plan.use_double_scratch_buffer ? 2 : 1;
  for_each_op(plan, [&](const Gpu& gpu, const ThreadBlock& block, const Op& op, const Op* loop, OpPlace at) {
    const uint64_t chunks = gpu.chunks[size_t(BufferKind::scratch)];
    if (!chunks) return;
    const uint64_t room = reused_scratch_bytes / banks;
    const uint64_t aligned =
        divided_up(divided_up(room, chunks), plan.buffer_alignment) * plan.buffer_alignment;
    const uint64_t largest = largest_chunk(plan, gpu);
    bool touches = false;
    for_each_place(plan, gpu, block, op, [&](const Field&, const Operand&, uint32_t, BufferKind buffer) {
      touches |= buffer == BufferKind::scratch;
    });
    if (!touches) return;
    // If alignment makes the shares larger, the last chunk gets what the others leave.
    const uint64_t fits = std::min(aligned, room - std::min(room, aligned * (chunks - 1)));
    const uint64_t message = fits / plan.buffer_alignment * plan.buffer_alignment * message_chunks(plan, gpu);
    const std::string help = "set the plan's largest message to " + count(message, "byte") + " or less";
    const std::string shares = "MSCCL++ keeps " + count(room, "byte") + " of reused scratch, " +
                               count(aligned, "byte") + " for each of " + count(chunks, "chunk");
    if (largest > aligned) {
      find.add(at,
               name_of(op) + " is at scratch with chunks of up to " + count(largest, "byte") + ", but " +
                   shares +
                   (loop ? ", and wraps around in them: nothing says that they have been read"
                         : ", and goes on in the next"),
               help);
    } else if (aligned * chunks > room && largest > room - aligned * (chunks - 1)) {
      find.add(at,
               name_of(op) + " is at scratch with chunks of up to " + count(largest, "byte") + ", but " +
                   shares + ", which are aligned beyond its end",
               help);
    }
  });
}

void reused_addresses(const Plan& plan, Finder& find) {
  if (!plan.reuse_resources) return;
  for_each_op(plan, [&](const Gpu& gpu, const ThreadBlock& block, const Op& op, const Op*, OpPlace at) {
    for_each_operand(block, op, [&](const Field& field, const Operand& operand) {
      BufferKind kind = BufferKind::scratch;
      if (is_remote(field.role)) {
        if (const RemoteBuffer* buffer = remote_buffer(gpu, block, op.via, operand.ref))
          kind = buffer->buffer;
      } else if (is_switched(field.role)) {
        kind = switch_group(gpu, block, operand.ref).buffer;
      }
      if (kind == BufferKind::scratch) return;
      find.add(at,
               std::string(field.name) + " of " + name_of(op) + " is chunk " + number(operand.index) +
                   " of a peer's " + std::string(buffer_names[size_t(kind)]) +
                   " with resources reused, but MSCCL++ then keeps the address of the first call",
               "exchange through scratch, or do not reuse resources", operand_path(block, op, operand));
    });
  });
}

}  // namespace chorale::mscclpp
