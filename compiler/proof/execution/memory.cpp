#include "memory.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "chorale/divided_up.hpp"
#include "chorale/layout.hpp"
#include "chorale/packet_form.hpp"
#include "compiler/plan/resolve.hpp"
#include "loop_skew.hpp"

namespace chorale::proof {
namespace {

/// Limits positions to values below 2^62.
constexpr uint64_t max_atoms = uint64_t(1) << 62;
constexpr uint64_t max_cells = uint64_t(1) << 27;

template <class Visit>
void for_each_pipeline(const Plan& plan, Visit&& visit) {
  for (const Gpu& gpu : plan.gpus) {
    for (const ThreadBlock& block : gpu.threadblocks) {
      for (const Op& op : block.ops) {
        if (op.body) visit(op);
      }
    }
  }
}

/// Holds what the message sizes depend on. One pass finds all of it.
struct Units {
  uint64_t even = 1;  ///< the least common multiple of all group sizes, or 0 if it is very large
  /// These are of the units of pipelines, in bytes: the greatest common divisor and the longest. 0: there are
  /// no pipelines.
  uint64_t common = 0, longest = 0;
  uint64_t chunks = 1;  ///< the most that a pipeline covers

  explicit Units(const Plan& plan) {
    for_each_op(plan, [&](const Gpu&, const ThreadBlock&, const Op& op, const Op*, OpPlace) {
      if (op.body) {
        common = std::gcd(common, uint64_t(op.unit_bytes));
        longest = std::max(longest, uint64_t(op.unit_bytes));
        chunks = std::max(chunks, uint64_t(op.chunks));
      }
      if (op.group_size < 2 || !even) return;
      even = std::lcm(even, uint64_t(op.group_size));
      if (even > uint64_t(1) << 20) even = 0;
    });
  }
};

/// Returns the shortest chunk for which every member of a group that shares packets has a slice that is not
/// empty. The unit is the smallest share of a group.
uint64_t full_chunk(const Plan& plan) {
  uint64_t units = 1;
  SymbolicSteps steps;
  for_each_op(plan, [&](const Gpu& gpu, const ThreadBlock& block, const Op& op, const Op*, OpPlace) {
    if (op.group_size < 2) return;
    list_steps(plan, gpu, block, op, steps);
    for (const Access& access : steps.accesses) {
      if (access.packets) units = std::max(units, op.group_index / (access.end - access.begin) + 1);
    }
  });
  return units;
}

/// Computes the same as layout_of().
uint64_t chunks_per_segment(const Plan& plan) {
  const Segmentation segments = segmentation(plan);
  uint64_t inputs = 0, outputs = 0;
  for (const Gpu& gpu : plan.gpus) {
    inputs = std::max(inputs, gpu.chunks[size_t(BufferKind::input)]);
    outputs = std::max(outputs, gpu.chunks[size_t(BufferKind::output)]);
  }
  return std::max({uint64_t(1), inputs / segments.input, outputs / segments.output});
}

/// Holds the payload of the largest form of packets. In that form, chunks, turns and slices of plans that
/// send packets are multiples of it.
constexpr uint64_t longest_packet = payload_of(PacketForm::ll128).bytes;

/// Returns the number of bytes of which slices of groups are multiples in that form.
uint64_t longest_unit(const Plan& plan) {
  return std::lcm(std::clamp<uint64_t>(plan.buffer_alignment, 1, most_alignment), longest_packet);
}

/// Returns the smallest number of units in a chunk, over all messages that the plan takes and all forms of
/// packets.
uint64_t least_units(const Plan& plan) {
  const uint64_t segment = divided_up(plan.min_message_size, message_segments(plan));
  return std::max(divided_up(divided_up(segment, longest_unit(plan)), chunks_per_segment(plan)), uint64_t(1));
}

/// Returns the smallest number of bytes in a chunk, over all messages that the plan takes. If the plan sends
/// packets, a turn may be longer than its unit, even longer than a chunk. The chunk then counts as shorter by
/// the same factor.
uint64_t least_chunk(const Plan& plan) {
  using Wide = unsigned __int128;
  const uint64_t step = std::max<uint64_t>(plan.buffer_alignment, 1);
  uint64_t least = plan.min_message_size / message_segments(plan) / chunks_per_segment(plan);
  if (sends_packets(plan)) {
    const Wide chunk = Wide(least_units(plan)) * longest_unit(plan);
    for_each_pipeline(plan, [&](const Op& op) {
      const uint64_t turn = std::max(divided_up(op.unit_bytes, longest_packet), uint64_t(1)) * longest_packet;
      least = uint64_t(std::min<Wide>(least, chunk * op.unit_bytes / turn));
    });
  }
  return std::max(least / step, uint64_t(1)) * step;
}

/// Returns the largest number of bytes in a chunk, over all messages that the plan takes and all forms of
/// packets.
uint64_t largest_chunk(const Plan& plan) {
  using Wide = unsigned __int128;
  const Wide segment = divided_up(plan.max_message_size, message_segments(plan));
  Wide largest = 0;
  for (const uint64_t step : {std::max<uint64_t>(plan.buffer_alignment, 1),
                              sends_packets(plan) ? longest_unit(plan) : uint64_t(1)}) {
    const Wide units = (segment + step - 1) / step, chunks = chunks_per_segment(plan);
    largest = std::max(largest, (units + chunks - 1) / chunks * step);
  }
  return uint64_t(std::min<Wide>(largest, ~uint64_t{0}));
}

/// Returns the numbers of turns of the longest unit for which a plan is proved.
/// \param ahead  the number of turns that a block can run ahead
std::vector<uint64_t> list_turns(const Plan& plan, uint64_t longest, uint64_t ahead) {
  // A message of this many turns stands for all that are longer.
  const uint64_t enough = ahead + 2, most = std::max<uint64_t>(divided_up(largest_chunk(plan), longest), 1);
  constexpr uint64_t few = 16;
  if (most >= enough || most > few) return {1, 2, enough};
  std::vector<uint64_t> turns(most);
  std::iota(turns.begin(), turns.end(), 1);
  return turns;
}

/// Adds the messages up to twice the longest unit. The numbers of turns of the pipelines change where a chunk
/// is a multiple of a unit divided by the chunks of its pipeline. It lists these sizes, and between every two
/// of them one size at which turns and chunks end at different places. If there are many, it lists only the
/// shortest.
/// \return false if positions would be too large
bool add_short(const Plan& plan, uint64_t even, uint64_t common, uint64_t longest,
               std::vector<Message>& messages) {
  constexpr size_t most = 16;
  constexpr uint64_t finest = uint64_t(1) << 16;
  uint64_t parts = 1;  // of a common unit
  for_each_pipeline(plan, [&](const Op& op) {
    if (op.chunks && parts <= finest) parts = std::lcm(parts, uint64_t(op.chunks));
  });
  if (parts > finest || 2 * longest / common * parts > max_atoms / even) return false;
  std::set<uint64_t> ends;  // in parts
  for_each_pipeline(plan, [&](const Op& op) {
    const uint64_t turn =
        std::max<uint64_t>(1, op.unit_bytes / common * parts / std::max<uint64_t>(op.chunks, 1));
    for (uint64_t turns = 1; turns <= most && turns * turn <= 2 * longest / common * parts; ++turns)
      ends.insert(turns * turn);
  });
  const uint64_t least = least_chunk(plan), step = std::max<uint64_t>(plan.buffer_alignment, 1);
  const unsigned __int128 largest = largest_chunk(plan);
  const auto add = [&](uint64_t chunk, uint64_t of) {
    if (chunk * common > largest * of) return;
    const uint64_t divisor = std::gcd(chunk, of);
    messages.push_back({even * (chunk / divisor), even * (of / divisor), common});
  };
  uint64_t before = 0;
  size_t listed = 0;
  for (const uint64_t end : ends) {
    // Chunks are multiples of the alignment.
    const uint64_t first = std::max(before * common / parts / step * step + step, least);
    if (first * parts < end * common) add(before + end, 2 * parts);
    if (end * common % (parts * step) == 0 && end * common >= least * parts) add(end, parts);
    before = end;
    if (++listed == most) break;
  }
  return true;
}

}  // namespace

std::vector<Message> list_messages(const Plan& plan) {
  const Units units(plan);
  const uint64_t even = units.even, chunks = units.chunks;
  uint64_t common = units.common, longest = units.longest;
  if (!even) return {};
  std::vector<Message> messages;
  if (!longest) {
    messages.push_back({even, 1, 1});
    longest = common = 1;
  } else {
    for (const uint64_t turns : list_turns(plan, longest, skew_of(plan).ahead)) {
      if (longest / common > max_atoms / even / turns) return {};
      const Message message{longest / common * turns * even, even, common};
      if (messages.empty() || messages.back().chunk != message.chunk) messages.push_back(message);
    }
    std::vector<Message> shorter;
    if (!add_short(plan, even, common, longest, shorter)) return {};
    for (const Message& message : shorter) {
      const bool known = std::any_of(messages.begin(), messages.end(), [&](const Message& other) {
        return other.chunk == message.chunk && other.unit == message.unit;
      });
      if (!known) messages.push_back(message);
    }
  }
  const uint64_t full = even > 1 ? full_chunk(plan) : 1;
  if (longest / common > max_atoms / full / chunks) return {};
  for (uint64_t least = least_units(plan); least < full; ++least)
    messages.push_back({least, least * chunks, common, true});
  return messages;
}

std::optional<Message> message_of(const Plan& plan, uint64_t chunk_bytes) {
  const std::vector<Message> messages = list_messages(plan);
  if (messages.empty()) return std::nullopt;
  uint64_t longest = 0;
  for_each_pipeline(plan, [&](const Op& op) { longest = std::max(longest, uint64_t(op.unit_bytes)); });
  if (!longest) return messages[0];
  return message_of_all_turns(plan, std::min(chunk_bytes, longest * (skew_of(plan).ahead + 2)));
}

std::optional<Message> message_of_all_turns(const Plan& plan, uint64_t chunk_bytes) {
  const Units units(plan);
  const uint64_t even = units.even, common = units.common, chunks = units.chunks;
  if (!even) return std::nullopt;
  if (!common) return Message{even, 1, 1};
  const uint64_t chunk = std::max<uint64_t>(chunk_bytes, 1);
  const uint64_t divisor = std::gcd(chunk, common);
  if (chunk / divisor > max_atoms / even / chunks) return std::nullopt;
  return Message{even * (chunk / divisor), even * (common / divisor), common};
}

void Memory::Space::add(uint64_t at) {
  if (pending.size() == limit) compact();
  pending.push_back(at);
}

void Memory::Space::compact() {
  std::sort(pending.begin(), pending.end());
  pending.erase(std::unique(pending.begin(), pending.end()), pending.end());
  limit = std::max(limit, 2 * pending.size());
}

bool Memory::Space::merge() {
  compact();
  const size_t before = bounds.size();
  std::vector<uint64_t> all;
  all.reserve(before + pending.size());
  std::set_union(bounds.begin(), bounds.end(), pending.begin(), pending.end(), std::back_inserter(all));
  bounds = std::move(all);
  std::vector<uint64_t>().swap(pending);
  return bounds.size() != before;
}

size_t Memory::Space::find(uint64_t at) const {
  if (step) return size_t(step == 1 ? at - start : (at - start) / step);
  return size_t(std::lower_bound(bounds.begin(), bounds.end(), at) - bounds.begin());
}

Memory::Memory(const Plan& plan, const Message& message, bool one_storage, Banks wanted)
    : plan_(plan),
      message_(message),
      storage_(plan, one_storage),
      wanted_(wanted),
      spaces_(plan.gpus.size() * spaces_per_rank) {
  for (const Gpu& gpu : plan.gpus) {
    for (const uint64_t chunks : gpu.chunks)
      fits_ &= chunks <= max_atoms / message.chunk / (plan.ranks() + 1);
  }
  if (!fits_) return;
  for (uint32_t rank = 0; rank < plan.ranks(); ++rank) {
    cut(buffer(rank, BufferKind::input));
    cut(buffer(rank, BufferKind::output));
  }
  // Operands that are moved into each other get the same cuts, until no cut is missing.
  SymbolicSteps steps;
  std::vector<Range> ranges;
  for (bool first = true, again = true; again && fits_; first = false) {
    uint64_t limit = max_executed;
    for (const Gpu& gpu : plan.gpus) {
      for (const ThreadBlock& block : gpu.threadblocks) {
        fits_ &= for_each_turn(message_, block, limit, [&](const Op& op, const Turn& turn) {
          if (!op.sources && !op.destinations) return;
          any_groups_ |= op.group_size > 1;
          list_steps(plan_, gpu, block, op, steps);
          for (const SymbolicStep& step : steps.steps) {
            ranges.clear();
            for (uint32_t at = 0; at < step.sources + step.dests; ++at) {
              ranges.push_back(range(steps.accesses[step.first + at], op, turn));
              if (first) cut(ranges.back());
            }
            if (!first) cut_alike(ranges);
          }
        });
        if (!fits_) return;
      }
    }
    cut_segments();
    again = merge() || first;
    if (first && regular()) break;
  }
  for (Space& space : spaces_) {
    if (space.step) std::vector<uint64_t>().swap(space.bounds);
  }
  for (uint32_t at = packet_space; at < spaces_.size(); at += spaces_per_rank)
    any_packets_ |= spaces_[at].cells != 0;
  if (wanted_ != Banks::one && (any_packets_ || plan.use_double_scratch_buffer || wanted_ == Banks::two))
    banks_ = 2;
}

/// Returns whether all cells are equally large. Then operands of one size have the same number of cells, and
/// so have parts of equal length.
bool Memory::regular() const {
  uint64_t size = 0;
  return std::all_of(spaces_.begin(), spaces_.end(), [&](const Space& space) {
    if (space.bounds.empty()) return true;
    if (!size) size = space.step;
    return space.step != 0 && space.step == size;
  });
}

bool Memory::merge() {
  bool changed = false;
  uint64_t cells = 0;
  for (uint32_t at = 0; at < spaces_.size(); ++at) {
    Space& space = spaces_[at];
    changed |= space.merge();
    const size_t n = space.bounds.empty() ? 0 : space.bounds.size() - 1;
    space.cells = uint32_t(n);
    space.start = n ? space.bounds[0] : 0;
    space.step = n ? space.bounds[1] - space.bounds[0] : 0;
    for (size_t k = 1; k < n && space.step; ++k) {
      if (space.bounds[k + 1] - space.bounds[k] != space.step) space.step = 0;
    }
    space.first = uint32_t(cells);
    cells += n * (banked(at) ? 2 : 1);
    if (cells > max_cells) fits_ = false;
  }
  cells_ = uint32_t(cells);
  return changed;
}

void Memory::cut(const Range& range) {
  if (range.begin == range.end) return;
  spaces_[range.space].add(range.begin);
  spaces_[range.space].add(range.end);
}

void Memory::cut_alike(std::span<const Range> ranges) {
  if (ranges.size() < 2 || ranges[0].begin == ranges[0].end) return;
  const auto bounds = [&](const Range& range) {
    const Space& space = spaces_[range.space];
    const size_t first = space.find(range.begin), last = space.find(range.end);
    return std::span(space.bounds).subspan(first + 1, last - first - 1);
  };
  size_t most = 0;
  for (const Range& range : ranges) most = std::max(most, bounds(range).size());
  if (!most) return;
  // Usually all have the same cuts already.
  const auto alike = [&](const Range& range) {
    const auto one = bounds(ranges[0]), other = bounds(range);
    const uint64_t shift = range.begin - ranges[0].begin;
    return one.size() == other.size() && std::equal(one.begin(), one.end(), other.begin(),
                                                    [&](uint64_t a, uint64_t b) { return a + shift == b; });
  };
  if (std::all_of(ranges.begin() + 1, ranges.end(), alike)) return;
  for (const Range& from : ranges) {
    for (const uint64_t at : bounds(from)) {
      for (const Range& to : ranges) {
        if (&to != &from) spaces_[to.space].add(at - from.begin + to.begin);
      }
    }
  }
}

// A collective's promise relates every part of its inputs to every part of its outputs, so all parts get the
// same cuts.
void Memory::cut_segments() {
  const Segmentation& segments = storage_.segments();
  std::vector<uint64_t> within;
  const auto each = [&](auto&& visit) {
    for (uint32_t rank = 0; rank < plan_.ranks(); ++rank) {
      for (const BufferKind kind : {BufferKind::input, BufferKind::output}) {
        const uint64_t parts = kind == BufferKind::input ? segments.input : segments.output;
        const Range all = buffer(rank, kind);
        const uint64_t length = (all.end - all.begin) / parts;
        if (!length || length * parts != all.end - all.begin) continue;
        visit(spaces_[all.space], all, length, parts);
      }
    }
  };
  each([&](Space& space, const Range& all, uint64_t length, uint64_t) {
    space.compact();
    for (const std::vector<uint64_t>* list : {&space.bounds, &space.pending}) {
      for (const uint64_t at : *list) {
        if (at >= all.begin && at < all.end) within.push_back((at - all.begin) % length);
      }
    }
    std::sort(within.begin(), within.end());
    within.erase(std::unique(within.begin(), within.end()), within.end());
  });
  each([&](Space& space, const Range& all, uint64_t length, uint64_t parts) {
    if (within.size() * parts > max_cells) {
      fits_ = false;
      return;
    }
    for (uint64_t part = 0; part < parts; ++part) {
      for (const uint64_t at : within) {
        if (at < length) space.add(all.begin + part * length + at);
      }
    }
  });
}

Range Memory::buffer(uint32_t rank, BufferKind kind) const {
  const auto [space, first] = storage_.place(rank, kind, false);
  return {space, first * message_.chunk, (first + storage_.chunks(rank, kind)) * message_.chunk};
}

Range Memory::whole(const Access& access, const Turn& turn) const {
  const auto [space, shift] = storage_.place(access.rank, access.buffer, access.packets);
  const uint64_t start = (access.begin + shift) * message_.chunk;
  uint64_t first = 0, end = (access.end - access.begin) * message_.chunk;
  if (turn.atoms) {
    first = std::min(turn.first, end);
    end = std::min(end, first + turn.atoms);
  }
  return {space, start + first, start + end};
}

Range Memory::range(const Access& access, const Op& op, const Turn& turn) const {
  Range range = whole(access, turn);
  if (op.group_size > 1) {
    // The executor divides a range in the same way. Except in exact messages, the units divide evenly.
    const uint64_t length = range.end - range.begin, index = op.group_index;
    const uint64_t share = length / op.group_size, more = message_.exact ? length % op.group_size : 0;
    range.begin += share * index + std::min(index, more);
    range.end = range.begin + share + (index < more ? 1 : 0);
  }
  return range;
}

bool Memory::banked(uint32_t space) const {
  const uint32_t kind = space % spaces_per_rank;
  if (wanted_ == Banks::one) return false;
  return kind == packet_space || (kind == uint32_t(BufferKind::scratch) &&
                                  (plan_.use_double_scratch_buffer || wanted_ == Banks::two));
}

uint32_t Memory::cell(const Range& range, uint32_t launch) const {
  const Space& space = spaces_[range.space];
  const uint32_t bank = banked(range.space) ? launch % 2 : 0;
  return space.first + uint32_t(space.find(range.begin) + bank * space.cells);
}

std::pair<uint32_t, uint32_t> Memory::cells_of(uint32_t space, uint32_t launch) const {
  const uint32_t n = spaces_[space].cells;
  return {spaces_[space].first + (banked(space) ? launch % 2 * n : 0), n};
}

uint32_t Memory::count(const Range& range) const {
  const Space& space = spaces_[range.space];
  return range.begin == range.end ? 0 : uint32_t(space.find(range.end) - space.find(range.begin));
}

Range Memory::range_of(uint32_t cell) const {
  // This finds the last space that begins at or before the cell, because earlier ones may be empty.
  const auto after = std::upper_bound(spaces_.begin(), spaces_.end(), cell,
                                      [](uint32_t at, const Space& space) { return at < space.first; });
  const uint32_t at = uint32_t(after - spaces_.begin() - 1);
  const Space& space = spaces_[at];
  const uint32_t k = (cell - space.first) % space.cells;
  if (space.step) return {at, space.start + k * space.step, space.start + (k + 1) * space.step};
  return {at, space.bounds[k], space.bounds[k + 1]};
}

std::optional<uint64_t> Memory::place_in_output(uint32_t cell) const {
  const Range range = range_of(cell), output = buffer(range.space / spaces_per_rank, BufferKind::output);
  if (range.space != output.space || range.begin < output.begin || range.end > output.end) return {};
  return range.begin - output.begin;
}

}  // namespace chorale::proof
