#pragma once
/// \file
/// A Call checks the preconditions of one call of the language. Each check reports its findings. Checks go on
/// after a finding, so one call can have several, but they skip what a finding makes meaningless.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "dsl/recording.hpp"

namespace chorale::dsl {

/// Names an operand as in C++, such as "src" or "others[2]".
struct Name {
  Name(const char* text, int64_t index = -1) : text(text), index(index) {}
  const char* text;
  int64_t index;
};

/// Names the rank on which a chunk has to be, and says what to change if it is on another one.
struct Place {
  int64_t rank;
  const char* who;    ///< the rank in messages, such as "the source of this channel"
  const char* other;  ///< what would fit a chunk of another rank, such as "a channel whose source is"
};

class Call {
 public:
  /// \param silent  true if the object that is called is poisoned; then nothing is reported or recorded
  /// \param callee  the name of that object in messages, such as "the channel"
  /// \param made    where that object is made, which findings about its ranks name
  Call(Recording& recording, Here at, bool silent = false, const char* callee = "the call",
       std::optional<Here> made = std::nullopt);

  bool ok() const { return ok_; }
  /// Returns the name of an operand for messages, as the caller writes it.
  std::string name(Name) const;

  /// Checks that the program has the rank. `what` names it, as in "destination rank".
  bool rank(const char* what, int64_t rank);
  bool within(const char* what, int64_t value, int64_t least, int64_t most);
  /// Checks that the chunk is inside its buffer, belongs to this program, and is on the rank of the place.
  bool chunk(Name, const Chunk&, const Place&);
  /// Reports a finding and returns true if each of two chunks is on the rank on which the other one has to
  /// be.
  bool swapped(const Chunk& dst, int64_t dst_rank, const Chunk& src, int64_t src_rank);
  /// Checks that two chunks have one size. Reports nothing if one of them was wrong already.
  void same_size(Name left_name, const Chunk& left, Name right_name, const Chunk& right);
  void in_scratch(Name, const Chunk&, const char* help);
  void reduce_op(ReduceOp);
  void data_sync(SyncType);
  void buffer_type(BufferKind);
  void block(Block);
  void fail(std::string text, std::string help = {});
  /// Does what fail() does, with a note of the line where the object that is called is made.
  void fail_by_ranks(std::string text, std::string help);

  /// Records `step` for the block, or for every block of the group. Call it only if ok().
  void record(RecordedOp step, int64_t rank, Block);

 private:
  bool sound(const Chunk&) const;
  bool refuse_foreign(Name, const Chunk&);
  bool known(const char* what, uint64_t value, std::span<const std::string_view> names);

  Recording& recording_;
  Here at_;
  bool silent_, ok_;
  const char* callee_;
  std::optional<Here> made_;
  bool foreign_ = false;  // a chunk of another program has been reported
};

/// Returns the name of a buffer in messages, such as "rank 0's input".
std::string buffer_of(int64_t rank, BufferKind);

Region here(const Chunk&);
Region at_peer(const Chunk&);

}  // namespace chorale::dsl
