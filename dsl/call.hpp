#pragma once
/// \file
/// The preconditions of one call. Each check reports what is wrong; checks go on after a
/// finding, so that one call can have several, but what a finding makes meaningless is silent.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "dsl/recording.hpp"

namespace chorale::dsl {

/// What texts call an operand: "src", or "others[2]".
struct Name {
  Name(const char* text, int64_t index = -1) : text(text), index(index) {}
  std::string str() const { return index < 0 ? std::string(text) : say(text, "[", index, "]"); }
  const char* text;
  int64_t index;
};

class Call {
 public:
  /// \param silent  the object that is called is poisoned: nothing is reported or recorded
  /// \param callee  that object in texts, e.g. "the channel"
  Call(Recording& recording, Here at, bool silent = false, const char* callee = "the call");

  bool ok() const { return ok_; }

  /// `what` is e.g. "destination rank".
  bool rank(const char* what, int64_t rank);
  bool within(const char* what, int64_t value, int64_t least, int64_t most);
  /// Inside its buffer, of this program, on `rank`, which is `who`, e.g. "the peer of this channel".
  bool chunk(Name, const Chunk&, int64_t rank, const char* who);
  /// Silent if one of them has been found wrong.
  void same_size(Name left_name, const Chunk& left, Name right_name, const Chunk& right);
  void in_scratch(Name, const Chunk&);
  void reduce_op(ReduceOp);
  void data_sync(SyncType);
  void buffer_type(BufferKind);
  void block(Block);
  void fail(std::string text, std::string help = {});

  /// The block, or every block of the group, records `step`. Only if ok().
  void record(Step step, int64_t rank, Block);

 private:
  bool sound(const Chunk&) const;
  bool refuse_foreign(Name, const Chunk&);
  bool known(const char* what, uint64_t value, std::span<const std::string_view> names);

  Recording& recording_;
  Here at_;
  bool silent_, ok_;
  const char* callee_;
  bool foreign_ = false;  // a chunk of another program has been reported
};

/// How texts name a buffer: "rank 0's input".
std::string buffer_of(int64_t rank, BufferKind);

Region here(const Chunk&);
Region at_peer(const Chunk&);

}  // namespace chorale::dsl
