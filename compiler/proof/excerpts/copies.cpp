// This file removes thread blocks that do the same as others at other chunks. What is proved of the rest is
// then true of all.
//
// A *party* is a smallest set of blocks that shares no channel, semaphore or barrier with a block outside,
// and no chunk that either of the two writes. A party is a *copy* of another one if they correspond in all of
// this: they have the same blocks on each rank, with the same operations in the same order. Their ids
// correspond one to one and have the same peers and initial values. Their operands are moved by the same
// number of chunks in each memory of each rank. In inputs and outputs that number is the same on all ranks,
// and no operand leaves its segment by the move.
//
// One party stands for the other for this reason: put a copy in the place of its party in the excerpt. The
// result is a part of the plan in which everything happens as in the excerpt. The rest of the plan changes
// nothing:
// - Order. Other parties only add knowledge, when launches begin and end, and more knowledge orders no less.
//   If two accesses conflict, both belong to one party, or one belongs to the application, which treats all
//   chunks of a segment alike. So all conflicting accesses are ordered.
// - Deadlock. Parties wait for each other only when launches end. No wait needs the post of a later launch. A
//   channel that is awaited more often in a launch than it is posted would have stopped the execution of the
//   excerpt. A semaphore's posts come from its own rank, whose launches do not overlap. So a cycle would be
//   within one launch, and so within one party, whose execution has ended.
// - Values. What the collective promises of a chunk it also promises of the next one of the segment, with the
//   next chunk of each input. Custom collectives and those with a sender are proved as a whole.
// If blocks compete, or more or fewer blocks arrive at a barrier than it says, the plan is proved as a whole
// (prove.cpp). Any finding is found again there, so all findings are findings of the plan.
//
// This costs O(a) for all accesses, counting each of their chunks, but without the large constants of a
// proof.

#include "copies.hpp"

#include <algorithm>
#include <unordered_map>

#include "chorale/collective.hpp"
#include "compiler/plan/channel_ends.hpp"
#include "compiler/plan/resolve.hpp"

namespace chorale::proof {
namespace {

constexpr uint32_t none = ~uint32_t{0};
/// Limits the chunks that are stored and the accesses to chunks that are looked at. Larger plans are proved
/// as a whole.
constexpr uint64_t max_chunks = uint64_t(1) << 22, max_touched = uint64_t(1) << 24;

/// Names the chunks of an operand.
struct Touched {
  uint32_t space = 0;
  bool write = false;
  uint8_t codec = 0;
  uint64_t begin = 0, end = 0;
};

/// Describes a party in a form that can be compared.
struct Form {
  std::vector<uint64_t> words;
  std::vector<std::pair<uint32_t, uint64_t>> firsts;  ///< its memories, and the first chunk accessed in each

  void clear() {
    words.clear();
    firsts.clear();
  }
};

class Copies {
 public:
  Copies(const Plan& plan, const Storage& storage)
      : plan_(plan), storage_(storage), ends_(list_channel_ends(plan)) {}

  std::optional<Excerpt> leave_out() {
    if (!lay_out() || !list()) return {};
    join_by_memory();
    find_parties();
    return parties_.size() < 2 ? std::nullopt : choose();
  }

 private:
  struct Block {
    const Gpu* gpu;
    const ThreadBlock* block;
    uint32_t rank, position;
    size_t first_op = 0, first_touched = 0;
  };
  /// Describes one end of a channel, a semaphore or a barrier.
  struct Object {
    uint32_t user = none;   ///< some block that uses it
    uint32_t party = none;  ///< the party in which it has `number`
    uint32_t number = 0;
  };
  struct Chunks {
    size_t first = 0;                 ///< in writer_
    uint64_t n = 0, segment = 0;      ///< segment 0: none
    uint32_t party = none, slot = 0;  ///< the current party's first chunk in it: Form::firsts
  };

  bool lay_out() {
    uint64_t all = 0;
    spaces_.resize(size_t(plan_.ranks()) * spaces_per_rank);
    for (uint32_t rank = 0; rank < plan_.ranks(); ++rank) {
      const auto add = [&](BufferKind kind, bool packets, uint64_t parts) {
        const uint64_t chunks = storage_.chunks(rank, kind);
        const auto [space, first] = storage_.place(rank, kind, packets);
        if (chunks > max_chunks || chunks % parts) return false;
        Chunks& of = spaces_[space];
        of.n = std::max(of.n, first + chunks);
        const uint64_t segment = kind == BufferKind::scratch ? 0 : chunks / parts;
        if (of.segment && segment && of.segment != segment) return false;
        of.segment = std::max(of.segment, segment);
        return true;
      };
      if (!add(BufferKind::input, false, storage_.segments().input) ||
          !add(BufferKind::output, false, storage_.segments().output) ||
          !add(BufferKind::scratch, false, 1) || !add(BufferKind::scratch, true, 1))
        return false;
    }
    for (Chunks& of : spaces_) {
      of.first = all;
      all += of.n;
      if (all > max_chunks) return false;
    }
    writer_.assign(all, none);
    uint32_t objects = 0;
    for (uint32_t rank = 0; rank < plan_.ranks(); ++rank) {
      for (size_t type = 0; type < std::size(signalled_types); ++type) {
        first_end_[type].push_back(objects);
        objects += uint32_t(ends_[rank].peers[type].size());
      }
      first_semaphore_.push_back(objects);
      objects += uint32_t(plan_.gpus[rank].semaphores.size());
    }
    objects_.resize(objects);
    return true;
  }

  /// Lists all blocks and their accesses. Joins blocks that share a channel, semaphore or barrier.
  bool list() {
    uint64_t budget = max_touched;
    for (uint32_t rank = 0; rank < plan_.ranks(); ++rank) {
      const Gpu& gpu = plan_.gpus[rank];
      for (uint32_t position = 0; position < gpu.threadblocks.size(); ++position) {
        const ThreadBlock& block = gpu.threadblocks[position];
        const uint32_t at = uint32_t(blocks_.size());
        blocks_.push_back({&gpu, &block, rank, position, touches_.size(), touched_.size()});
        parents_.push_back(at);
        for (const Op& op : block.ops) {
          for_each_object(at, op, [&](uint32_t object, uint32_t mate, uint64_t) {
            use(object, at);
            if (mate != none) use(mate, at);
          });
          const size_t before = touched_.size();
          if (op.sources || op.destinations) list_touched(blocks_[at], op);
          touches_.push_back(uint32_t(touched_.size() - before));
          for (size_t k = before; k < touched_.size(); ++k) {
            const Touched& of = touched_[k];
            if (of.end > spaces_[of.space].n || of.end - of.begin > budget) return false;
            budget -= of.end - of.begin;
          }
        }
      }
    }
    return true;
  }

  void list_touched(const Block& of, const Op& op) {
    for_each_place(plan_, *of.gpu, *of.block, op,
                   [&](const Field& field, const Operand& operand, uint32_t rank, BufferKind buffer) {
                     const auto [space, first] = storage_.place(rank, buffer, is_packet(field.role));
                     touched_.push_back({space, is_write(field.role), uint8_t(operand.codec),
                                         first + operand.index, first + operand.index + operand.size});
                   });
  }

  /// Calls visit() for every id of an operation. It passes the object, the other end of a channel or none,
  /// and a number that must be equal in copies.
  template <class Visit>
  void for_each_object(uint32_t at, const Op& op, Visit&& visit) {
    if (!op.ids) return;
    const Block& of = blocks_[at];
    const IdKind kind = id_kind(shape(op.code), op.via);
    if (kind == IdKind::channel && is_switched(op.via)) return;  // names memory only
    const size_t type = signalled_position(op.via);
    for (const uint32_t id : of.block->op_ids(op)) {
      if (kind == IdKind::semaphore)
        visit(first_semaphore_[of.rank] + id, none, uint64_t(of.gpu->semaphores[id]));
      if (kind == IdKind::barrier) visit(barrier(of.rank, id), none, 0);
      if (kind != IdKind::channel) continue;
      const uint32_t channel = uint32_t(channel_id(*of.block, op.via, id));
      const uint32_t mate = ends_[of.rank].mates[type][channel];
      const uint32_t peer = ends_[of.rank].peers[type][channel];
      visit(first_end_[type][of.rank] + channel,
            mate == ChannelEnds::none ? none : first_end_[type][peer] + mate, peer);
    }
  }

  uint32_t barrier(uint32_t rank, uint32_t id) {
    const auto [found, added] = barriers_.try_emplace(uint64_t(rank) << 32 | id, uint32_t(objects_.size()));
    if (added) objects_.emplace_back();
    return found->second;
  }

  void use(uint32_t object, uint32_t block) {
    uint32_t& user = objects_[object].user;
    if (user == none)
      user = block;
    else
      join(user, block);
  }

  uint32_t root(uint32_t block) {
    while (parents_[block] != block) block = parents_[block] = parents_[parents_[block]];
    return block;
  }
  /// Joins two parties. The first block of a party is its root.
  void join(uint32_t one, uint32_t other) {
    one = root(one);
    other = root(other);
    if (one != other) parents_[std::max(one, other)] = std::min(one, other);
  }

  template <class Visit>
  void for_each_touched(Visit&& visit) {
    for (uint32_t at = 0; at < blocks_.size(); ++at) {
      const size_t end = at + 1 < blocks_.size() ? blocks_[at + 1].first_touched : touched_.size();
      for (size_t k = blocks_[at].first_touched; k < end; ++k) visit(at, touched_[k]);
    }
  }

  /// Joins the blocks that access a chunk if one of them writes it. Blocks that only read a chunk that nobody
  /// writes are not joined.
  void join_by_memory() {
    const auto chunks = [&](const Touched& of) {
      const auto first = writer_.begin() + ptrdiff_t(spaces_[of.space].first);
      return std::pair(first + ptrdiff_t(of.begin), first + ptrdiff_t(of.end));
    };
    for_each_touched([&](uint32_t block, const Touched& of) {
      if (!of.write) return;
      const auto [first, last] = chunks(of);
      for (auto at = first; at != last; ++at) {
        if (*at == none)
          *at = block;
        else if (*at != block)
          join(*at, block);
      }
    });
    for_each_touched([&](uint32_t block, const Touched& of) {
      if (of.write) return;
      const auto [first, last] = chunks(of);
      for (auto at = first; at != last; ++at) {
        if (*at != none && *at != block) join(*at, block);
      }
    });
  }

  void find_parties() {
    std::vector<uint32_t> number(blocks_.size(), none);
    for (uint32_t at = 0; at < blocks_.size(); ++at) {
      uint32_t& of = number[root(at)];
      if (of == none) {
        of = uint32_t(parties_.size());
        parties_.emplace_back();
      }
      parties_[of].push_back(at);
    }
  }

  /// Fills in form_ for a party.
  void describe(uint32_t party) {
    std::vector<uint64_t>& words = form_.words;
    form_.clear();
    uint32_t numbers = 0;
    const auto number_of = [&](uint32_t object) -> uint64_t {
      if (object == none) return none;
      Object& of = objects_[object];
      if (of.party != party) {
        of.party = party;
        of.number = numbers++;
      }
      return of.number;
    };
    for (const uint32_t at : parties_[party]) {
      const Block& of = blocks_[at];
      words.push_back(uint64_t(of.rank) << 32 | of.block->ops.size());
      const uint32_t* touches = &touches_[of.first_op];
      const Touched* touched = touched_.data() + of.first_touched;
      for (const Op& op : of.block->ops) {
        words.push_back(uint64_t(op.code) | uint64_t(op.via) << 8 | uint64_t(op.reduce_op) << 16 |
                        uint64_t(op.sync) << 24 | uint64_t(op.ids) << 32 | uint64_t(op.participants) << 48);
        words.push_back(uint64_t(op.sources) | uint64_t(op.destinations) << 16 |
                        uint64_t(op.group_index) << 32 | uint64_t(op.group_size) << 48);
        if (op.code == Opcode::pipeline) {
          words.push_back(uint64_t(op.body) << 32 | op.unit_bytes);
          words.push_back(op.chunks);
        }
        for_each_object(at, op, [&](uint32_t object, uint32_t mate, uint64_t nature) {
          const uint64_t own = number_of(object);
          words.push_back(own << 32 | number_of(mate));
          words.push_back(nature);
        });
        words.push_back(*touches);
        for (uint32_t k = *touches++; k > 0; --k, ++touched) {
          Chunks& space = spaces_[touched->space];
          if (space.party != party) {
            space.party = party;
            space.slot = uint32_t(form_.firsts.size());
            form_.firsts.emplace_back(touched->space, touched->begin);
          }
          words.push_back(uint64_t(touched->space) << 32 | uint64_t(touched->codec) << 1 |
                          uint64_t(touched->write));
          words.push_back(touched->end - touched->begin);
          words.push_back(touched->begin - form_.firsts[space.slot].second);
        }
      }
    }
  }

  bool is_copy(uint32_t party, const Form& original) const {
    if (form_.words != original.words) return false;
    // A move is a number of chunks modulo 2^64, backwards or forwards.
    std::optional<uint64_t> moved;
    for (size_t k = 0; k < form_.firsts.size(); ++k) {
      const auto [space, first] = form_.firsts[k];
      if (!spaces_[space].segment) continue;
      const uint64_t by = first - original.firsts[k].second;
      if (moved && *moved != by) return false;
      moved = by;
    }
    if (!moved || !*moved) return true;
    return std::all_of(parties_[party].begin(), parties_[party].end(),
                       [&](uint32_t block) { return stays(block, *moved); });
  }

  /// Returns whether each operand of a copy is in the same segment as the operand that it corresponds to.
  bool stays(uint32_t block, uint64_t moved) const {
    const size_t end = block + 1 < blocks_.size() ? blocks_[block + 1].first_touched : touched_.size();
    for (size_t k = blocks_[block].first_touched; k < end; ++k) {
      const Touched& of = touched_[k];
      const uint64_t segment = spaces_[of.space].segment, n = spaces_[of.space].n;
      if (!segment || segment == n || of.begin == of.end) continue;
      if (of.begin / segment != (of.begin - moved) / segment ||
          (of.end - 1) / segment != (of.end - 1 - moved) / segment)
        return false;
    }
    return true;
  }

  std::optional<Excerpt> choose() {
    std::vector<Form> originals;
    std::vector<bool> kept(blocks_.size());
    std::vector<uint32_t> copies;
    size_t left_out = 0, seen = 0;
    for (uint32_t party = 0; party < parties_.size(); ++party) {
      describe(party);
      seen += parties_[party].size();
      const bool copy = std::any_of(originals.begin(), originals.end(),
                                    [&](const Form& original) { return is_copy(party, original); });
      if (copy) {
        copies.push_back(party);
        left_out += parties_[party].size();
        continue;
      }
      for (const uint32_t block : parties_[party]) kept[block] = true;
      originals.push_back(form_);
      // This gives up early on plans with few copies, and on plans with many kinds of parties.
      if (2 * (seen - left_out) > blocks_.size() || originals.size() > max_originals) return {};
    }
    return make_excerpt(kept, copies);
  }

  Excerpt make_excerpt(const std::vector<bool>& kept, const std::vector<uint32_t>& copies) const {
    Excerpt excerpt;
    Plan& plan = excerpt.plan;
    plan.name = plan_.name;
    plan.collective = plan_.collective;
    plan.protocol = plan_.protocol;
    plan.inplace = plan_.inplace;
    plan.reuse_resources = plan_.reuse_resources;
    plan.use_double_scratch_buffer = plan_.use_double_scratch_buffer;
    plan.extension.root = plan_.extension.root;
    plan.extension.codecs = plan_.extension.codecs;
    plan.extension.input_segments = storage_.segments().input;
    plan.extension.output_segments = storage_.segments().output;
    plan.source = plan_.source;
    plan.joined = plan_.joined;
    plan.extras = plan_.extras;
    for (const Gpu& gpu : plan_.gpus) {
      Gpu& of = plan.gpus.emplace_back();
      of.id = gpu.id;
      std::copy(std::begin(gpu.chunks), std::end(gpu.chunks), std::begin(of.chunks));
      of.channels = gpu.channels;
      of.remote_buffers = gpu.remote_buffers;
      of.semaphores = gpu.semaphores;
    }
    for (uint32_t at = 0; at < blocks_.size(); ++at) {
      if (kept[at]) plan.gpus[blocks_[at].rank].threadblocks.push_back(*blocks_[at].block);
    }
    excerpt.left_out.resize(plan_.ranks());
    for (uint32_t rank = 0; rank < plan_.ranks(); ++rank)
      excerpt.left_out[rank].resize(spaces_[storage_.place(rank, BufferKind::output, false).space].n);
    for (const uint32_t party : copies) {
      for (const uint32_t block : parties_[party]) mark_written(block, excerpt);
    }
    return excerpt;
  }

  void mark_written(uint32_t block, Excerpt& excerpt) const {
    const size_t end = block + 1 < blocks_.size() ? blocks_[block + 1].first_touched : touched_.size();
    for (size_t k = blocks_[block].first_touched; k < end; ++k) {
      const Touched& of = touched_[k];
      if (!of.write || of.space % spaces_per_rank != uint32_t(BufferKind::output)) continue;
      std::vector<bool>& chunks = excerpt.left_out[of.space / spaces_per_rank];
      std::fill(chunks.begin() + ptrdiff_t(of.begin), chunks.begin() + ptrdiff_t(of.end), true);
    }
  }

  static constexpr size_t max_originals = 16;

  const Plan& plan_;
  const Storage& storage_;
  const std::vector<ChannelEnds> ends_;
  std::vector<Block> blocks_;
  std::vector<uint32_t> parents_;  // by block: towards the first of its party
  std::vector<uint32_t> touches_;  // by operation: how many of touched_
  std::vector<Touched> touched_;
  std::vector<Chunks> spaces_;
  std::vector<uint32_t> writer_;  // by chunk: some block that writes it
  std::vector<uint32_t> first_end_[std::size(signalled_types)], first_semaphore_;  // by rank: objects
  std::vector<Object> objects_;
  std::unordered_map<uint64_t, uint32_t> barriers_;  // by rank and id: objects
  std::vector<std::vector<uint32_t>> parties_;       // their blocks
  Form form_;                                        // of the party being compared
};

}  // namespace

bool Excerpt::leaves_out(uint32_t rank, const Message& message, const Range& range) const {
  const auto first = left_out[rank].begin();
  return std::all_of(first + ptrdiff_t(range.begin / message.chunk),
                     first + ptrdiff_t((range.end + message.chunk - 1) / message.chunk),
                     [](bool chunk) { return chunk; });
}

std::optional<Excerpt> leave_out_copies(const Plan& plan, const Storage& storage) {
  size_t most = 0;
  for (const Gpu& gpu : plan.gpus) most = std::max(most, gpu.threadblocks.size());
  const CollectiveInfo& collective = collective_info(plan.collective);
  const bool uniform = collective.is_standard() && !collective.leaves_sender_open();
  if (most < 2 || !uniform || !plan.extension.post.empty()) return {};
  return Copies(plan, storage).leave_out();
}

}  // namespace chorale::proof
