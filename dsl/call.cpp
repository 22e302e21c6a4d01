#include "dsl/call.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace chorale::dsl {
namespace {

/// Lists the operands that have another name in Python than in C++.
constexpr std::pair<std::string_view, std::string_view> names_in_python[] = {
    {"dst", "dst_chunk"},
    {"src", "src_chunk"},
    {"others", "other_chunks"},
    {"local_dst", "local_dst_chunk"},
    {"local_src", "local_src_chunk"},
    {"remote_srcs", "remote_src_chunks"},
};

/// Returns chunks in words, such as "output[0:2] of rank 1".
std::string words(const Chunk& chunk) {
  return say(buffer_names[size_t(chunk.buffer)], "[", chunk.index, ":", chunk.index + chunk.size,
             "] of rank ", chunk.rank);
}

}  // namespace

std::string buffer_of(int64_t rank, BufferKind kind) {
  return say("rank ", rank, "'s ", buffer_names[size_t(kind)]);
}

Region here(const Chunk& chunk) {
  return {Region::At::here, chunk.buffer, 0, uint64_t(chunk.index), uint64_t(chunk.size), chunk.codec};
}

Region at_peer(const Chunk& chunk) {
  return {Region::At::peer,      chunk.buffer,         uint32_t(chunk.rank),
          uint64_t(chunk.index), uint64_t(chunk.size), chunk.codec};
}

Call::Call(Recording& recording, Here at, bool silent, const char* callee, std::optional<Here> made)
    : recording_(recording),
      at_(at),
      silent_(silent || !recording.usable() || recording.successor()),
      ok_(!silent_),
      callee_(callee),
      made_(made) {
  if (silent || !recording.successor()) return;
  recording.find(at,
                 say(callee, " is of program '", recording.plan().name, "', which program '",
                     recording.successor()->plan().name, "' has been assigned to"),
                 "make the handles of a program after it has been assigned");
}

std::string Call::name(Name name) const {
  std::string_view text = name.text;
  for (const auto& [cpp, python] : names_in_python) {
    if (!at_.in_python || text != cpp) continue;
    text = python;
    break;
  }
  return name.index < 0 ? std::string(text) : say(text, "[", name.index, "]");
}

/// Both programs get this finding, so it does not matter which one is asked for its findings. If the wrong
/// program was called, the other one lacks an operation.
bool Call::refuse_foreign(Name name, const Chunk& chunk) {
  ok_ = false;
  if (std::exchange(foreign_, true)) return false;  // one mistake, mostly of the callee
  Recording* const owner = Recording::owner(chunk);
  const std::string& own = recording_.plan().name;
  std::string text = say(callee_, " is of program '", own, "', but ", this->name(name), " is of ");
  if (!owner)
    text += "a program that is gone";
  else if (owner->plan().name == own)
    text += "another program of that name";
  else
    text += say("'", owner->plan().name, "'");
  if (owner) owner->find(at_, text);
  fail(std::move(text));
  return false;
}

void Call::fail(std::string text, std::string help) {
  ok_ = false;
  if (!silent_) recording_.find(at_, std::move(text), std::move(help));
}

void Call::fail_by_ranks(std::string text, std::string help) {
  ok_ = false;
  if (silent_) return;
  std::vector<Note> notes;
  const SourceLine call = recording_.line(at_), made = made_ ? recording_.line(*made_) : SourceLine{};
  if (made.line && (made.line != call.line || made.file != call.file))
    notes.push_back({made, std::nullopt, say(callee_, " is made here")});
  recording_.find(at_, std::move(text), std::move(help), std::move(notes));
}

bool Call::rank(const char* what, int64_t rank) {
  if (silent_) return false;
  if (recording_.has_rank(rank)) return true;
  const size_t ranks = recording_.plan().gpus.size();
  fail(
      say(what, " is ", rank, ", but the program's ranks are ", recording_.rank_range()),
      say("ranks count from 0; the collective of this program has ", ranks, ranks == 1 ? " rank" : " ranks"));
  return false;
}

bool Call::within(const char* what, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return true;
  fail(say(what, " is ", value, ", but must be ", least, " to ", most));
  return false;
}

bool Call::sound(const Chunk& chunk) const {
  if (recording_.poisoned(chunk) || recording_.foreign(chunk) || !recording_.has_rank(chunk.rank) ||
      size_t(chunk.buffer) >= std::size(buffer_names))
    return false;
  const auto extent = int64_t(recording_.plan().gpus[chunk.rank].chunks[size_t(chunk.buffer)]);
  return chunk.size > 0 && chunk.index >= 0 && chunk.size <= extent && chunk.index <= extent - chunk.size;
}

bool Call::chunk(Name name, const Chunk& chunk, const Place& place) {
  if (silent_) return false;
  if (recording_.poisoned(chunk)) return ok_ = false;
  if (recording_.foreign(chunk)) return refuse_foreign(name, chunk);
  if (!recording_.has_rank(chunk.rank))
    return this->rank(say("the rank of ", this->name(name)).c_str(), chunk.rank);
  if (!known(say("the buffer of ", this->name(name)).c_str(), uint64_t(chunk.buffer), buffer_names))
    return false;
  if (!sound(chunk)) {
    const std::string buffer = buffer_of(chunk.rank, chunk.buffer);
    const uint64_t extent = recording_.plan().gpus[chunk.rank].chunks[size_t(chunk.buffer)];
    if (chunk.size <= 0) {
      fail(say(this->name(name), " has ", chunks(chunk.size), ", but needs at least 1"));
    } else if (chunk.index < 0) {
      fail(say(this->name(name), " begins at chunk ", chunk.index, ", but ", buffer, " begins at 0"));
    } else {
      fail(say(this->name(name), " is ", chunks(chunk.size), " from chunk ", chunk.index, ", but ", buffer,
               " has ", extent));
    }
    return false;
  }
  if (chunk.codec && !chunk.codec->is_valid()) {
    fail(say(this->name(name), " is encoded in blocks of ", chunk.codec->block,
             " elements, but a block has a power of two from ", Codec::least_block, " to ",
             Codec::most_block));
    return false;
  }
  if (chunk.rank != place.rank) {
    fail_by_ranks(
        say(this->name(name), " is on rank ", chunk.rank, ", but ", place.who, " is rank ", place.rank),
        say("take ", this->name(name), " from a buffer of rank ", place.rank, ", or ", place.other, " rank ",
            chunk.rank));
    return false;
  }
  return true;
}

bool Call::swapped(const Chunk& dst, int64_t dst_rank, const Chunk& src, int64_t src_rank) {
  if (silent_ || !sound(dst) || !sound(src) || dst_rank == src_rank) return false;
  if (dst.rank != src_rank || src.rank != dst_rank) return false;
  fail_by_ranks(
      say(name("dst"), " is on rank ", dst.rank, " and ", name("src"), " is on rank ", src.rank, ", but ",
          callee_, " transfers from rank ", src_rank, " to rank ", dst_rank, " here"),
      say("the destination comes first: swap the two, or those of the channel if it is to transfer from "
          "rank ",
          src.rank, " to rank ", dst.rank));
  return true;
}

void Call::same_size(Name left_name, const Chunk& left, Name right_name, const Chunk& right) {
  if (silent_ || !sound(left) || !sound(right) || left.size == right.size) return;
  fail(say(name(left_name), " is ", words(left), ", which is ", chunks(left.size), ", but ", name(right_name),
           " is ", words(right), ", which is ", right.size));
}

void Call::in_scratch(Name name, const Chunk& chunk, const char* help) {
  if (silent_ || !sound(chunk) || chunk.buffer == BufferKind::scratch) return;
  fail(say(this->name(name), " is in the ", buffer_names[size_t(chunk.buffer)],
           " buffer, but packets are kept in scratch"),
       help);
}

void Call::reduce_op(ReduceOp op) {
  if (op == ReduceOp::avg) {
    fail("reduce_op is avg, but an operation combines by sum, min, max or prod",
         "use sum; whether the result is divided is chosen when the plan is executed");
    return;
  }
  known("reduce_op", uint64_t(op), reduce_op_names);
}

void Call::data_sync(SyncType sync) { known("data_sync", uint64_t(sync), sync_names); }

void Call::buffer_type(BufferKind buffer) { known("buffer_type", uint64_t(buffer), buffer_names); }

bool Call::known(const char* what, uint64_t value, std::span<const std::string_view> names) {
  std::string wrong = unknown_value(what, value, names);
  if (wrong.empty()) return true;
  fail(std::move(wrong));
  return false;
}

void Call::block(Block block) {
  const ThreadBlockGroup* group = block.group();
  if (!group) {
    within("thread block", block.tb(), 0, max_block);
    return;
  }
  // The author wrote the group on another line. The finding is reported there, once, however often the group
  // is used.
  const auto group_is_wrong = [&](std::string text) {
    ok_ = false;
    if (!silent_) {
      recording_.find(group->at(), std::move(text), {},
                      {Note{recording_.line(at_), std::nullopt, "used here"}});
    }
  };
  if (group->numtb() > max_list)
    group_is_wrong(
        say("the thread block group has ", group->numtb(), " blocks, but at most ", max_list, " fit"));
  if (group->numtb() == 0)
    group_is_wrong("the thread block group is empty, but at least 1 block has to run its operations");
  std::unordered_map<int64_t, size_t> seen;
  for (size_t at = 0; at < group->numtb(); ++at) {
    const int64_t tb = group->tb_list()[at];
    if (tb < 0 || tb > max_block) {
      group_is_wrong(say("thread block is ", tb, ", but must be 0 to ", max_block));
    } else if (const auto [first, added] = seen.try_emplace(tb, at); !added) {
      group_is_wrong(
          say("thread block ", tb, " is in the group twice, at positions ", first->second, " and ", at));
    }
  }
}

void Call::record(RecordedOp step, int64_t rank, Block block) {
  if (std::max(step.sources.size(), step.dests.size()) > max_list)
    return fail(say("the operation has ", step.sources.size(), " sources, but at most ", max_list, " fit"));
  step.rank = uint32_t(rank);
  step.at = recording_.place(at_);
  if (!block.group()) {
    step.block = uint32_t(block.tb());
    recording_.record(step);
    return;
  }
  const std::vector<int64_t>& blocks = block.group()->tb_list();
  step.group_size = uint16_t(blocks.size());
  for (const int64_t tb : blocks) {
    step.block = uint32_t(tb);
    recording_.record(step);
    ++step.group_index;
  }
}

}  // namespace chorale::dsl
