#include "program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>

#include "chorale/collective.hpp"
#include "chorale/divided_up.hpp"
#include "executor/lowering/placement.hpp"
#include "recorder.hpp"

namespace chorale::adversary {
namespace {

using lowering::BoundPlan;
using lowering::packet_kind;

/// Limits the threads that move data. With this many, no thread gets two units of a short operation. More
/// would only make schedules longer.
constexpr uint32_t most_data_threads = 8;

/// Returns the size of cells, chosen so that segments and units begin and end at cells.
uint32_t cell_bytes(const Layout& layout) { return uint32_t(std::gcd<uint64_t>(16, layout.segment_bytes)); }

/// Counts the threads of a block: those that move data, and those for instructions that may run at the same
/// time.
struct ThreadCounts {
  uint32_t data = 1, control = 1;

  void count(const std::vector<BlockInstruction>& steps) {
    uint32_t run = 0;
    for (size_t at = 0; at < steps.size(); ++at) {
      const BlockInstruction& step = steps[at];
      if (step.data) data = std::max(data, uint32_t(std::min<uint64_t>(step.unit + 1, most_data_threads)));
      run = !step.data && step.what.code != Code::sync ? run + 1 : 0;
      control = std::max(control, std::min(run, 4u));
    }
  }
};

}  // namespace

Ref Recorder::outside() const {
  // Binding has checked each operand against its buffer, so this is a bug in this code.
  throw std::logic_error(fmt::format("rank {}, thread block {}, op {} reaches past the end of a buffer",
                                     rank_, block_, record()));
}

Program::Program(const Plan& plan, const AdversaryOptions& options) : arena(16) {
  std::vector<BoundPlan> bound;
  const std::vector<ScratchUse> use = scratch_use(plan);
  for (uint32_t rank = 0; rank < plan.ranks(); ++rank) {
    bound.push_back(
        lowering::bind_plan(plan, use, rank, options.bytes, options.dtype, options.packet, /*op=*/-1));
    first_signal.push_back(signals);
    first_barrier.push_back(barriers);
    first_semaphore.push_back(uint32_t(semaphores.size()));
    first_block.push_back(rank == 0 ? 0 : first_block.back() + uint32_t(bound[rank - 1].image.blocks.size()));
    const lowering::BoundImage& image = bound[rank].image;
    signals += uint32_t(image.channels.size());
    barriers += image.barriers;
    semaphores.insert(semaphores.end(), image.semaphores.begin(), image.semaphores.end());
  }
  first_block.push_back(first_block.back() + uint32_t(bound.back().image.blocks.size()));
  layout = bound[0].layout;
  arena = Arena(cell_bytes(layout));
  add_memory(plan, bound, options.in_place.value_or(plan.inplace));
  for (uint32_t rank = 0; rank < plan.ranks(); ++rank) add_rank(rank, bound[rank], options.packet);
}

void Program::add_memory(const Plan& plan, const std::vector<BoundPlan>& bound, bool in_place) {
  memory.resize(plan.ranks());
  std::vector<char*> placed_in, placed_out;
  for (uint32_t rank = 0; rank < plan.ranks(); ++rank) {
    const uint64_t in_bytes = layout.sizes.input, out_bytes = layout.sizes.output;
    const lowering::ScratchBytes scratch = lowering::scratch_bytes(bound[rank].scratch[rank], layout);
    const auto plain = [&](Area::Kind kind, uint64_t bytes) -> Area {
      return arena.add(kind, rank, bytes, bytes);
    };
    // In place, the smaller buffer is part of the larger one.
    const CollectiveInfo& collective = collective_info(plan.collective);
    const uint64_t in_at = collective.input_is_part() ? rank * in_bytes : 0;
    const uint64_t out_at = collective.output_is_part() ? rank * out_bytes : 0;
    in_place = in_place && in_bytes && out_bytes;
    const Area whole = plain(Area::Kind::output, in_place ? std::max(in_bytes, out_bytes) : out_bytes);
    const Area apart = plain(Area::Kind::input, in_place ? 0 : in_bytes);
    char* const in = in_place ? whole.address() + in_at : apart.address();
    char* const out = in_place ? whole.address() + out_at : whole.address();

    const lowering::Placement placement(plan, rank, layout);
    const lowering::Placed placed = placement.place(
        in, out, {[&] { return plain(Area::Kind::room, in_bytes).address(); }, nullptr, nullptr});
    placed_in.push_back(placed.in);
    placed_out.push_back(placed.out);

    RankMemory& mine = memory[rank];
    const auto cell = [&](const void* at, uint64_t bytes) {
      const uint64_t address = reinterpret_cast<uint64_t>(at);
      const Area* const area = bytes ? arena.find(address, bytes) : nullptr;
      return area ? area->first + uint32_t((address - area->base) / arena.cell_bytes()) : 0;
    };
    const auto copy = [&](const lowering::Move& move) {
      return Copy{cell(move.from, move.bytes), cell(move.to, move.bytes),
                  uint32_t(move.bytes / arena.cell_bytes())};
    };
    mine.input = cell(in, in_bytes);
    mine.output = cell(out, out_bytes);
    mine.input_cells = uint32_t(in_bytes / arena.cell_bytes());
    mine.output_cells = uint32_t(out_bytes / arena.cell_bytes());
    mine.one_storage = in_place;
    for (const int which : {1, 0}) {
      if (placed.before[which].needed()) mine.before.push_back(copy(placed.before[which]));
    }
    if (placed.after.needed()) mine.after.push_back(copy(placed.after));

    plain(Area::Kind::scratch, scratch.plain_banks * scratch.plain_bank);
    arena.add(Area::Kind::packets, rank, 2 * scratch.packet_bank, 2 * scratch.packet_bank);
  }
  is_packet.resize(arena.cells());
  rank_of.resize(arena.cells());
  for (const Area& area : arena.areas()) {
    for (uint32_t cell = 0; cell < area.cells; ++cell) {
      is_packet[area.first + cell] = area.kind == Area::Kind::packets;
      rank_of[area.first + cell] = area.rank;
    }
  }
  for (const BoundPlan& of : bound) {
    for (const image::Buffer& buffer : of.image.buffers) {
      char* base = buffer.kind == 0 ? placed_in[buffer.rank] : placed_out[buffer.rank];
      for (const Area& area : arena.areas()) {
        if (area.rank != buffer.rank) continue;
        if (buffer.kind == uint32_t(BufferKind::scratch) && area.kind == Area::Kind::scratch)
          base = area.address();
        if (buffer.kind == packet_kind && area.kind == Area::Kind::packets) base = area.address();
      }
      const_cast<image::Buffer&>(buffer).base = base;
    }
  }
}

void Program::add_rank(uint32_t rank, BoundPlan& bound, PacketForm packet) {
  const image::Image image = bound.image.view();
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> queue_of;
  for (uint32_t position = 0; position < image.n_blocks; ++position) {
    std::vector<BlockInstruction> steps[2];
    ThreadCounts counts;
    for (const bool odd : {false, true}) {
      Recorder recorder(*this, image, rank, position, !odd, packet, queue_of);
      run_block(recorder, position);
      steps[odd] = std::move(recorder.steps());
      counts.count(steps[odd]);
    }
    const uint32_t count = counts.data + counts.control;
    Block block{rank, position, uint32_t(threads.size()), count};
    for (uint32_t thread = 0; thread < count; ++thread) {
      Thread& of = threads.emplace_back();
      of.block = uint32_t(blocks.size());
      for (const bool odd : {false, true}) {
        of.of[odd].first = uint32_t(instructions.size());
        uint32_t item = 0;  // the index in the current run of instructions that may run at the same time
        for (const BlockInstruction& step : steps[odd]) {
          if (step.data) {
            item = 0;
            if (thread < counts.data && step.unit % counts.data == thread) instructions.push_back(step.what);
          } else if (step.what.code == Code::sync) {
            item = 0;
            instructions.push_back(step.what);
          } else if (counts.data + item++ % counts.control == thread) {
            instructions.push_back(step.what);
          }
        }
        of.of[odd].end = uint32_t(instructions.size());
      }
    }
    blocks.push_back(block);
  }
}

bool takes_long_turns(const Plan& plan, DType dtype, PacketForm packet, bool all_chunks) {
  const Layout layout = layout_of(plan, 0, dtype, packet);
  uint64_t turn = UINT64_MAX, chunks = 1;
  for (const Gpu& gpu : plan.gpus) {
    for (const ThreadBlock& block : gpu.threadblocks) {
      for (const Op& op : block.ops) {
        if (!op.body) continue;
        const uint64_t unit = std::max(op.unit_bytes, 1u);
        turn = std::min(turn, layout.packet > 16 ? divided_up(unit, layout.packet) * layout.packet : unit);
        chunks = std::max<uint64_t>(chunks, op.chunks);
      }
    }
  }
  const uint64_t segment = divided_up(plan.min_message_size, message_segments(plan));
  const uint64_t units = std::max<uint64_t>(1, divided_up(segment, layout.alignment));
  const uint64_t units_of_chunk = divided_up(units, layout.chunks_per_segment);
  const uint64_t longest = all_chunks ? turn / chunks : turn - 1;
  return units_of_chunk <= longest / layout.alignment;
}

uint64_t choose_size(Plan& plan, DType dtype, PacketForm packet) {
  plan.min_message_size = 0;
  plan.max_message_size = UINT64_MAX;
  uint64_t unit = 0, group = 1, turns = 1;
  for (const Gpu& gpu : plan.gpus) {
    for (const ThreadBlock& block : gpu.threadblocks) {
      for (const Op& op : block.ops) {
        if (op.body) unit = std::gcd<uint64_t>(unit, op.unit_bytes);
        group = std::max<uint64_t>(group, op.group_size);
      }
    }
  }
  const uint64_t alignment = layout_of(plan, 0, dtype, packet).alignment;
  for (Gpu& gpu : plan.gpus) {
    for (ThreadBlock& block : gpu.threadblocks) {
      for (Op& op : block.ops) {
        if (!op.body) continue;
        op.unit_bytes = uint32_t(op.unit_bytes / unit * alignment);
        // The pipeline with the fewest turns gets three.
        const uint64_t chunks = std::max<uint64_t>(op.chunks, 1);
        turns = std::max(turns, (3 * op.unit_bytes / alignment + chunks - 1) / chunks);
      }
    }
  }
  const uint64_t units = std::max({uint64_t(2), group, turns});
  const Layout empty = layout_of(plan, 0, dtype, packet);
  uint64_t segment = units * empty.chunks_per_segment * empty.alignment;
  if (empty.chunks_per_segment > 1) segment -= 16;  // so that the last chunk is shorter than the others
  return segment * message_segments(plan);
}

void lengthen_turns(Plan& plan, uint64_t bytes, DType dtype, PacketForm packet, bool all_chunks) {
  const Layout layout = layout_of(plan, bytes, dtype, packet);
  std::vector<Op*> pipelines;
  uint64_t least = UINT32_MAX, chunks = 1;
  for (Gpu& gpu : plan.gpus) {
    for (ThreadBlock& block : gpu.threadblocks) {
      for (Op& op : block.ops) {
        if (!op.body) continue;
        pipelines.push_back(&op);
        least = std::min<uint64_t>(least, std::max(op.unit_bytes, 1u));
        chunks = std::max<uint64_t>(chunks, op.chunks);
      }
    }
  }
  const uint64_t turn = all_chunks ? chunks * layout.chunk_bytes : layout.chunk_bytes + layout.alignment;
  const uint64_t times = (turn + least - 1) / least;
  for (Op* const op : pipelines)
    op->unit_bytes = uint32_t(std::min<uint64_t>(op->unit_bytes * times, UINT32_MAX / 16 * 16));
}

}  // namespace chorale::adversary
