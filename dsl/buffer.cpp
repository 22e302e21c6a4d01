#include "chorale/dsl/buffer.hpp"

#include "dsl/call.hpp"

namespace chorale::dsl {

Chunk Chunk::encoded(const Codec& codec) const {
  Chunk chunk = *this;
  chunk.codec = codec;
  return chunk;
}

Chunk BaseBuffer::operator[](Slice wanted) const { return slice(wanted.start, wanted.stop, wanted.at); }

Chunk BaseBuffer::slice(int64_t start, int64_t stop, Here at) const {
  if (poisoned_) return Recording::poison(rank_, kind_);
  const auto refuse = [&](std::string what) {
    recording_->find(at, say("slice [", start, ", ", stop, ") of ", buffer_of(rank_, kind_), " ", what));
    return Recording::poison(rank_, kind_);
  };
  if (start < 0 || stop < 0) return refuse("has a negative bound");
  if (start > stop) return refuse("ends before it begins");
  if (stop > size_) {
    recording_->find_past_end(kind_, size_, at,
                              say("slice [", start, ", ", stop, ") of ", buffer_of(rank_, kind_),
                                  " ends at chunk ", stop, ", but it has ", chunks(size_)));
    return Recording::poison(rank_, kind_);
  }
  if (start == stop) return refuse("is empty, but an operation needs at least 1 chunk");
  return recording_->chunk(rank_, kind_, offset_ + start, stop - start);
}

Buffer::Buffer(Program& program, int64_t rank, int64_t size, Here at)
    : BaseBuffer(&Recording::of(program), rank, BufferKind::scratch, 0, size, true) {
  Call call(*recording_, at);
  const bool known = call.rank("the rank of the buffer", rank);
  if (!call.within("the size of the buffer", size, 1, max_count) || !known) return;
  const auto taken = int64_t(recording_->plan().gpus[rank].chunks[size_t(BufferKind::scratch)]);
  if (size > max_count - taken) {
    call.fail(
        say("rank ", rank, " has ", chunks(taken), " of scratch, and ", size, " more are above ", max_count));
    return;
  }
  offset_ = recording_->add_scratch(rank, size);
  poisoned_ = false;
}

}  // namespace chorale::dsl
