// This file records calls into the plan.

#include "dsl/recording.hpp"

#include <algorithm>
#include <mutex>
#include <stdexcept>

namespace chorale::dsl {
namespace {

/// Returns the position of `value` in `list`, and appends it if it is new. Programs mostly go through their
/// peers in the same order, so the function first tries the `last` position and the one after it. A search
/// would take one step per peer.
uint32_t position(std::vector<uint32_t>& list, uint32_t value, uint32_t& last) {
  if (last + 1 < list.size() && list[last + 1] == value) return ++last;
  if (last < list.size() && list[last] == value) return last;
  const auto found = std::find(list.begin(), list.end(), value);
  last = uint32_t(found - list.begin());
  if (found == list.end()) list.push_back(value);
  return last;
}

/// Returns the entry of a channel type in a block's list, and appends it if it is new.
template <class Refs>
Refs& of_type(std::vector<Refs>& list, ChannelType type) {
  for (Refs& refs : list) {
    if (refs.type == type) return refs;
  }
  return list.emplace_back(Refs{type, {}});
}

/// Lists the existing recordings by number, because a chunk may outlive its recording.
struct Live {
  std::mutex mutex;
  std::unordered_map<uint64_t, Recording*> all;
  uint64_t last = 0;
};

Live& live() {
  static Live recordings;
  return recordings;
}

uint64_t enter(Recording* recording) {
  const std::lock_guard hold(live().mutex);
  live().all.emplace(++live().last, recording);
  return live().last;
}

}  // namespace

std::string unknown_value(const char* what, uint64_t value, std::span<const std::string_view> names) {
  if (value < names.size()) return "";
  std::string text = say(what, " is ", value, ", but must be one of ");
  for (size_t at = 0; at < names.size(); ++at) text += say(at ? ", " : "", names[at], " (", at, ")");
  return text;
}

std::string chunks(int64_t count) { return say(count, count == 1 ? " chunk" : " chunks"); }

std::string base_name(std::string_view path) {
  const size_t slash = path.find_last_of("/\\");
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

SourceLine authors_line(Here at) {
  const std::string_view file = at.file;
  // libstdc++ and libc++ both have a folder include/c++. Other headers of the system make no such objects.
  if (file.starts_with("/usr/include/") || file.find("/include/c++/") != file.npos) return {};
  return {base_name(file), at.line};
}

Note library_note() {
  return {
      {},
      std::nullopt,
      "the line is not known, because the standard library makes this object, as in emplace_back(program, "
      "1, 0); write push_back({program, 1, 0}), and findings name your line"};
}

Recording& Recording::of(const Program& program) {
  if (!program.recording_) throw std::logic_error("this Program was moved from; use the one it was moved to");
  return *program.recording_;
}

Recording::Recording(ProgramOptions options, Here at) : number_(enter(this)) {
  set_options(options, at);
  set_collective(options.collective, at);
  plan_.name = std::move(options.name);
  ranks_.resize(plan_.gpus.size());
}

Recording::Recording(Plan plan, Diagnostics findings)
    : number_(enter(this)), plan_(std::move(plan)), findings_(std::move(findings)) {}

Recording::~Recording() {
  const std::lock_guard hold(live().mutex);
  live().all.erase(number_);
}

Recording* Recording::owner(const Chunk& chunk) {
  const std::lock_guard hold(live().mutex);
  const auto found = live().all.find(chunk.owner_);
  return found == live().all.end() ? nullptr : found->second;
}

void Recording::replace(std::unique_ptr<Recording> old) {
  old->successor_ = this;
  replaced_.push_back(std::move(old));
}

void Recording::find(Here at, std::string text, std::string help, std::vector<Note> notes) {
  if (successor_) return successor_->find(at, std::move(text), std::move(help), std::move(notes));
  const SourceLine where = line(at);
  if (!known_.insert(say(where.file, ":", where.line, ":", text)).second) return;
  if (!where.line && !std::exchange(told_library_, true)) notes.push_back(library_note());
  findings_.push_back({"dsl", where, std::nullopt, std::move(text), std::move(notes), std::move(help)});
}

void Recording::find_past_end(BufferKind buffer, int64_t size, Here at, std::string text) {
  if (successor_) return successor_->find_past_end(buffer, size, at, std::move(text));
  const std::string index = say("correct the index, whose largest value is ", size - 1, " here, or ");
  if (buffer == BufferKind::scratch)  // each Buffer has a size of its own
    return find(at, std::move(text), index + "reserve a larger Buffer");
  auto& [first, more, elsewhere] = past_end_[size_t(buffer)];
  if (first) {
    const SourceLine where = line(at);
    more += known_.insert(say(where.file, ":", where.line, ":", text)).second;
    const auto is_here = [&](const SourceLine& other) {
      return other.file == where.file && other.line == where.line;
    };
    if (!is_here(findings_[*first].line) && std::none_of(elsewhere.begin(), elsewhere.end(), is_here))
      elsewhere.push_back(where);
    return;
  }
  first = findings_.size();
  find(at, std::move(text),
       index + "raise chunk_factor of the collective, which says how many chunks inputs and outputs have");
}

std::string Recording::rank_range() const { return say("0 to ", plan_.gpus.size() - 1); }

Chunk Recording::chunk(int64_t rank, BufferKind buffer, int64_t index, int64_t size) const {
  Chunk chunk(rank, buffer, index, size);
  chunk.owner_ = number_;
  return chunk;
}

Chunk Recording::poison(int64_t rank, BufferKind buffer) {
  Chunk chunk(rank, buffer, 0, 0);
  chunk.poisoned_ = true;
  return chunk;
}

int64_t Recording::add_scratch(int64_t rank, int64_t size) {
  uint64_t& chunks = plan_.gpus[rank].chunks[size_t(BufferKind::scratch)];
  const auto first = int64_t(chunks);
  chunks += uint64_t(size);
  return first;
}

int64_t Recording::add_semaphore(int64_t rank, int64_t initial_value) {
  plan_.gpus[rank].semaphores.push_back(initial_value);
  return int64_t(plan_.gpus[rank].semaphores.size()) - 1;
}

int64_t Recording::add_channel(ChannelType type, int64_t rank, int64_t peer, Here made) {
  std::vector<ChannelRecord>& records = plan_.gpus[rank].channels;
  auto record =
      std::find_if(records.begin(), records.end(), [&](const auto& known) { return known.type == type; });
  if (record == records.end()) {
    // The record goes before the switch channels, as in MSCCL++'s plans.
    record = std::find_if(records.begin(), records.end(),
                          [](const auto& known) { return is_switched(known.type); });
    record = records.emplace(record);
    record->type = type;
  }
  record->connected_to.push_back(uint32_t(peer));
  // Mostly all channels are made at a few lines.
  std::vector<SourceLine>& lines = plan_.channel_source;
  const SourceLine where = line(made);
  const auto known = std::find(lines.rbegin(), lines.rend(), where);
  record->at.push_back(known == lines.rend() ? uint32_t(lines.size() + 1) : uint32_t(lines.rend() - known));
  if (known == lines.rend()) lines.push_back(where);
  return int64_t(record->connected_to.size()) - 1;
}

int64_t Recording::add_switch_channel(int64_t rank, BufferKind buffer, const std::vector<int64_t>& ranks) {
  Gpu& gpu = plan_.gpus[rank];
  const int64_t id = gpu.channel_count(ChannelType::switched);
  ChannelRecord& record = gpu.channels.emplace_back();
  record.type = ChannelType::switched;
  record.buffer = buffer;
  record.rank_groups.emplace_back(ranks.begin(), ranks.end());
  return id;
}

uint32_t Recording::barrier_id(int64_t rank, const std::vector<int64_t>& blocks) {
  // Barriers are identified by their ordered list of blocks, as in MSCCL++. Here the table belongs to the
  // program, while MSCCL++ never resets its table.
  auto& barriers = ranks_[rank].barriers;
  const auto found = std::find(barriers.begin(), barriers.end(), blocks);
  const auto id = uint32_t(found - barriers.begin());
  if (found == barriers.end()) barriers.push_back(blocks);
  return id;
}

uint32_t Recording::place(Here at) {
  // Consecutive calls often come from one line (a group, a loop), so most look-ups end here.
  if (at.file == last_place_.file && at.line == last_place_.line) return last_place_id_;
  last_place_ = at;
  const auto [known, fresh] = known_places_.try_emplace({at.file, at.line}, 0);
  if (SourceLine where = line(at); fresh && where.line) {
    const auto [entry, added] =
        places_.try_emplace(say(where.file, ":", where.line), uint32_t(plan_.source.size() + 1));
    if (added) plan_.source.push_back(std::move(where));
    known->second = entry->second;
  }
  return last_place_id_ = known->second;
}

void Recording::reserve_like_before(uint32_t rank, ThreadBlock& block) const {
  if (rank == 0 || block.id >= ranks_[rank - 1].blocks.size()) return;
  const int32_t position = ranks_[rank - 1].blocks[block.id].position;
  if (position < 0) return;
  const ThreadBlock& before = plan_.gpus[rank - 1].threadblocks[size_t(position)];
  block.ops.reserve(before.ops.size());
  block.operands.reserve(before.operands.size());
  block.ids.reserve(before.ids.size());
}

ThreadBlock& Recording::block(uint32_t rank, uint32_t id) {
  std::vector<ThreadBlock>& blocks = plan_.gpus[rank].threadblocks;
  std::vector<BlockState>& known = ranks_[rank].blocks;
  if (id >= known.size()) known.resize(id + 1);
  if (known[id].position < 0) {
    known[id].position = int32_t(blocks.size());
    blocks.emplace_back().id = id;
    reserve_like_before(rank, blocks.back());
  }
  return blocks[size_t(known[id].position)];
}

/// Returns the number of a codec in operands. There are fewer valid codecs than `most_codecs`.
uint32_t Recording::codec_number(const Codec& codec) {
  std::vector<Codec>& known = plan_.extension.codecs;
  const auto found = std::find(known.begin(), known.end(), codec);
  const auto number = uint32_t(found - known.begin()) + 1;
  if (found == known.end()) known.push_back(codec);
  return number;
}

uint32_t Recording::local_remote_buffer(ThreadBlock& block, uint32_t& last, const RecordedOp& step,
                                        const Region& region) {
  std::vector<RemoteBuffer>& buffers = plan_.gpus[step.rank].remote_buffers;
  std::vector<uint32_t>& local = of_type(block.remote_buffers, step.via).ids;
  const auto fits = [&](uint32_t guess) {
    if (guess >= local.size()) return false;
    const RemoteBuffer& known = buffers[local[guess]];
    return known.rank == region.peer && known.buffer == region.buffer;
  };
  // The last entry and the one after it are tried first, as in position().
  if (fits(last + 1)) return ++last;
  if (fits(last)) return last;
  const uint64_t key = uint64_t{region.peer} * 3 + uint64_t(region.buffer);
  const auto [entry, added] = ranks_[step.rank].remote_buffers.try_emplace(key, uint32_t(buffers.size()));
  if (added) {
    RemoteBuffer& buffer = buffers.emplace_back();
    buffer.rank = region.peer;
    buffer.buffer = region.buffer;
  }
  std::vector<ChannelType>& access = buffers[entry->second].access;
  if (std::find(access.begin(), access.end(), step.via) == access.end()) access.push_back(step.via);
  return position(local, entry->second, last);
}

void Recording::commit(const RecordedOp& step) {
  ThreadBlock& to = block(step.rank, step.block);
  BlockState& state = ranks_[step.rank].blocks[step.block];
  uint32_t local_id = 0;
  if (step.channel >= 0) {
    local_id = position(of_type(to.channels, step.via).ids, uint32_t(step.channel), state.last_channel);
  }
  operands_.clear();
  const auto resolve = [&](const Region& region) {
    uint32_t ref = uint32_t(region.buffer);
    if (region.at == Region::At::peer) ref = local_remote_buffer(to, state.last_buffer, step, region);
    if (region.at == Region::At::members) ref = local_id;
    Operand& operand = operands_.emplace_back(Operand{region.index, region.size, ref});
    if (region.codec) operand.codec = codec_number(*region.codec);
  };
  for (const Region& region : step.sources) resolve(region);
  for (const Region& region : step.dests) resolve(region);
  const std::span<const Operand> all = operands_;
  const std::span<const uint32_t> ids =
      step.names_channel ? std::span<const uint32_t>(&local_id, 1) : step.ids;
  Op& op = append(to, step.code, all.first(step.sources.size()), all.subspan(step.sources.size()), ids);
  op.via = step.via;
  op.reduce_op = step.reduce_op;
  op.sync = step.sync;
  op.group_index = step.group_index;
  op.group_size = step.group_size;
  op.participants = step.participants;
  op.at = step.at;
}

void Recording::record(const RecordedOp& step) {
  if (loop_.depth == 0) {
    commit(step);
  } else if (!loop_.discard && loop_.depth == 1) {
    loop_.steps.emplace_back(step);
  }
}

void Recording::open_loop(int64_t unit_bytes, int64_t chunks, Here at) {
  if (!usable()) return;
  if (++loop_.depth > 1) {
    const SourceLine outer = loop_line();
    find(at, say("this loop is inside ",
                 outer.line ? say("the loop of ", outer.file, ":", outer.line) : "another loop",
                 ", but loops do not nest"));
    return;
  }
  loop_.discard = false;
  const auto check = [&](const char* name, int64_t value) {
    if (value >= 1 && value <= UINT32_MAX) return;
    find(at, say(name, " is ", value, ", but must be 1 to ", UINT32_MAX));
    loop_.discard = true;
  };
  check("unit_bytes", unit_bytes);
  check("num_chunks", chunks);
  loop_.unit_bytes = uint32_t(unit_bytes);
  loop_.chunks = uint32_t(chunks);
  loop_.at = place(at);
}

void Recording::close_loop(bool keep) {
  if (!usable() || --loop_.depth > 0) return;
  const std::vector<KeptOp> steps = std::exchange(loop_.steps, {});
  if (!keep || loop_.discard) return;
  // Steps are committed in the order of the calls, so local numbers follow the order of first use.
  std::unordered_map<uint64_t, size_t> pipelines;  // by rank and block: position of the pipeline
  for (const KeptOp& kept : steps) {
    const RecordedOp step = kept.restored();
    const uint64_t key = uint64_t{step.rank} << 32 | step.block;
    ThreadBlock& to = block(step.rank, step.block);
    const auto [entry, added] = pipelines.try_emplace(key, to.ops.size());
    if (added) {
      Op& pipeline = append(to, Opcode::pipeline, {}, {});
      pipeline.unit_bytes = loop_.unit_bytes;
      pipeline.chunks = loop_.chunks;
      pipeline.at = loop_.at;
    }
    commit(step);
    ++block(step.rank, step.block).ops[entry->second].body;
  }
}

int64_t Recording::empty_blocks(const Gpu& gpu) const {
  uint32_t highest = 0;
  for (const ThreadBlock& block : gpu.threadblocks) highest = std::max(highest, block.id);
  return gpu.threadblocks.empty() ? 0 : int64_t{highest} + 1 - int64_t(gpu.threadblocks.size());
}

Plan Recording::finished() const& {
  Plan plan = plan_;
  order_blocks(plan);
  return plan;
}

Plan Recording::finished() && {
  order_blocks(plan_);
  return std::move(plan_);
}

void Recording::order_blocks(Plan& plan) const {
  for (Gpu& gpu : plan.gpus) {
    std::vector<ThreadBlock>& blocks = gpu.threadblocks;
    const int64_t empty = empty_blocks(gpu);
    if (empty > 0 && empty <= max_empty_blocks) {
      // Empty blocks are added because MSCCL++ launches them, and so that positions equal ids.
      const std::vector<BlockState>& known = ranks_[gpu.id].blocks;
      for (uint32_t id = 0; id < known.size(); ++id) {
        if (known[id].position < 0) blocks.emplace_back().id = id;
      }
    }
    std::sort(blocks.begin(), blocks.end(),
              [](const auto& left, const auto& right) { return left.id < right.id; });
  }
}

Diagnostics Recording::findings() const {
  Diagnostics all = findings_;
  for (size_t buffer = 0; buffer < std::size(past_end_); ++buffer) {
    const auto& [first, more, elsewhere] = past_end_[buffer];
    if (!more) continue;
    std::vector<Note>& notes = all[*first].notes;
    const std::string_view name = buffer_names[buffer];
    notes.push_back({all[*first].line, std::nullopt,
                     say(more, more == 1 ? " more slice ends" : " more slices end", " past an ", name)});
    for (const SourceLine& where : elsewhere)
      notes.push_back({where, std::nullopt, say("past an ", name, " here, too")});
  }
  for (const Gpu& gpu : plan_.gpus) {
    const int64_t empty = empty_blocks(gpu);
    if (empty <= max_empty_blocks) continue;
    const auto highest =
        std::max_element(gpu.threadblocks.begin(), gpu.threadblocks.end(),
                         [](const auto& left, const auto& right) { return left.id < right.id; });
    all.push_back({"dsl",
                   plan_.line_of(highest->ops.front()),
                   std::nullopt,
                   say("rank ", gpu.id, " uses thread block ", highest->id, " and leaves ", empty,
                       " blocks below it empty, but at most ", max_empty_blocks, " may be"),
                   {},
                   "number the thread blocks without gaps"});
  }
  if (loop_.depth > 0) {
    all.push_back({"dsl",
                   loop_line(),
                   std::nullopt,
                   "the plan is asked for inside this loop",
                   {},
                   "end the loop first"});
  }
  return all;
}

}  // namespace chorale::dsl
