#pragma once
/// \file
/// A Recording holds the plan and the findings of a Program so far. No other code writes this Plan.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "chorale/dsl.hpp"
#include "chorale/limits.hpp"

namespace chorale::dsl {

/// This is the maximum of chunk counts, unit sizes and similar numbers.
inline constexpr int64_t max_count = int64_t(max_chunks);
inline constexpr int64_t max_rank_count = max_ranks;
inline constexpr int64_t max_block = int64_t(max_blocks) - 1;
/// A rank may have at most this many empty blocks below its highest one, because they are launched, too.
inline constexpr int64_t max_empty_blocks = 1024;

/// Concatenates texts and numbers.
template <class... Parts>
std::string say(const Parts&... parts) {
  std::string text;
  const auto add = [&text](const auto& part) {
    if constexpr (std::is_integral_v<std::decay_t<decltype(part)>>) {
      text += std::to_string(part);
    } else {
      text += part;
    }
  };
  (add(parts), ...);
  return text;
}

/// Returns what is wrong with the value of an enumeration whose enumerators are `names`, in order. Returns ""
/// if nothing is wrong.
std::string unknown_value(const char* what, uint64_t value, std::span<const std::string_view> names);
inline constexpr std::string_view protocol_names[] = {"Simple", "LL"};
inline constexpr std::string_view replication_names[] = {"interleaved", "none"};
inline constexpr std::string_view sync_names[] = {"none", "before", "after", "both"};

/// Returns "1 chunk", "2 chunks" and so on.
std::string chunks(int64_t count);

/// Returns `path` without its folders, because plans must not contain paths of the author's machine.
std::string base_name(std::string_view path);

/// Returns the line for findings. Its number is 0 if the line is in a header of the standard library. That
/// happens when the library makes an object of the language, because the library then also evaluates the
/// default argument `Here::current()`.
SourceLine authors_line(Here);

/// Tells an author why a finding has no line.
Note library_note();

/// Describes an operand before its block has a local number for it.
struct Region {
  enum class At : uint8_t { here, peer, members };
  At at = At::here;
  BufferKind buffer = BufferKind::input;
  uint32_t peer = 0;
  uint64_t index = 0, size = 0;
  std::optional<Codec> codec = {};
};

/// Describes one operation of one block by rank-level numbers. The caller owns its lists.
struct RecordedOp {
  uint32_t rank = 0, block = 0;
  Opcode code = Opcode::nop;
  ChannelType via = ChannelType::none;
  ReduceOp reduce_op = ReduceOp::sum;
  SyncType sync = SyncType::none;
  uint16_t group_index = 0, group_size = 0, participants = 0;
  std::span<const Region> sources, dests;
  int64_t channel = -1;           ///< rank-level number of the channel that it uses; -1: none
  bool names_channel = false;     ///< the operation itself lists the channel
  std::span<const uint32_t> ids;  ///< semaphore or barrier ids, if it uses no channel
  uint32_t at = 0;                ///< as Op::at
};

/// Holds a step that outlives its call.
struct KeptOp {
  explicit KeptOp(const RecordedOp& step)
      : step(step),
        sources(step.sources.begin(), step.sources.end()),
        dests(step.dests.begin(), step.dests.end()),
        ids(step.ids.begin(), step.ids.end()) {}
  RecordedOp restored() const {
    RecordedOp again = step;
    again.sources = sources;
    again.dests = dests;
    again.ids = ids;
    return again;
  }

  RecordedOp step;
  std::vector<Region> sources, dests;
  std::vector<uint32_t> ids;
};

class Recording {
 public:
  Recording(ProgramOptions, Here);
  /// Holds the plan of a host schedule, which a ScheduleRecording records.
  Recording(Plan plan, Diagnostics findings);
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording();
  /// Returns the recording of a program.
  /// \throws std::logic_error if the program was moved from
  static Recording& of(const Program&);

  /// Returns false if wrong options leave nothing to record into. All calls are then silent.
  bool usable() const { return !plan_.gpus.empty(); }
  const Plan& plan() const { return plan_; }
  const CompileOptions& compile_options() const { return compile_options_; }

  void find(Here, std::string text, std::string help = {}, std::vector<Note> notes = {});
  /// Reports a slice that ends past its buffer. As the ranks mostly do the same, and a wrong chunk factor is
  /// wrong for all slices, it reports the first one of all inputs, and of all outputs, and counts the others.
  /// \param size  the chunks of the buffer
  void find_past_end(BufferKind, int64_t size, Here, std::string text);
  SourceLine line(Here at) const { return authors_line(at); }
  /// Returns the range of ranks for messages, such as "0 to 7".
  std::string rank_range() const;
  bool has_rank(int64_t rank) const { return rank >= 0 && rank < int64_t(plan_.gpus.size()); }

  Chunk chunk(int64_t rank, BufferKind, int64_t index, int64_t size) const;
  static Chunk poison(int64_t rank, BufferKind);
  bool poisoned(const Chunk& chunk) const { return chunk.poisoned_; }
  bool foreign(const Chunk& chunk) const { return chunk.owner_ && chunk.owner_ != number_; }
  /// Returns the recording that a chunk belongs to; null if it was made by hand, or if its program is gone.
  static Recording* owner(const Chunk&);

  /// Replaces `old` when this program is assigned to the program of `old`. The handles of `old` still exist.
  /// Calls on them record nothing and become findings here.
  void replace(std::unique_ptr<Recording> old);
  /// Returns the recording that replaced this one; null if none did.
  const Recording* successor() const { return successor_; }

  /// These functions return the first number or chunk of what they add.
  int64_t add_scratch(int64_t rank, int64_t size);
  int64_t add_semaphore(int64_t rank, int64_t initial_value);
  int64_t add_channel(ChannelType, int64_t rank, int64_t peer, Here made);
  int64_t add_switch_channel(int64_t rank, BufferKind, const std::vector<int64_t>& ranks);
  uint32_t barrier_id(int64_t rank, const std::vector<int64_t>& blocks);

  /// Returns an empty list for the sources of one step. It is reused, because most steps need such a list.
  std::vector<Region>& sources() {
    sources_.clear();
    return sources_;
  }

  /// Returns the position of the author's line in the plan, plus one; 0 if the line is not known.
  uint32_t place(Here);
  /// Appends a step to its block, or keeps it until the end of the open loop.
  void record(const RecordedOp&);

  void open_loop(int64_t unit_bytes, int64_t chunks, Here);
  void close_loop(bool keep);

  Plan finished() const&;
  Plan finished() &&;
  Diagnostics findings() const;

 private:
  struct BlockState {
    int32_t position = -1;                       // in threadblocks; -1: none
    uint32_t last_channel = 0, last_buffer = 0;  // local numbers, see position()
  };
  struct RankState {
    std::vector<BlockState> blocks;                         // by id
    std::unordered_map<uint64_t, uint32_t> remote_buffers;  // by peer and kind: position
    std::vector<std::vector<int64_t>> barriers;             // by id
  };
  struct Loop {
    uint32_t unit_bytes = 0, chunks = 0;
    uint32_t at = 0;
    int depth = 0;         // 0: none is open
    bool discard = false;  // the loop was refused
    std::vector<KeptOp> steps;
  };

  void set_options(const ProgramOptions&, Here);
  void set_collective(const Collective&, Here);
  void set_post(const Collective&, Here);
  /// Returns the line of the open loop.
  SourceLine loop_line() const { return loop_.at ? plan_.source[loop_.at - 1] : SourceLine{}; }
  ThreadBlock& block(uint32_t rank, uint32_t id);
  /// Reserves as much as the previous rank uses in this block. Ranks mostly do the same, and growing step by
  /// step costs a copy each time.
  void reserve_like_before(uint32_t rank, ThreadBlock&) const;
  uint32_t codec_number(const Codec&);
  uint32_t local_remote_buffer(ThreadBlock&, uint32_t& last, const RecordedOp&, const Region&);
  void commit(const RecordedOp&);
  int64_t empty_blocks(const Gpu&) const;
  void order_blocks(Plan&) const;

  const uint64_t number_;  // a number, because a later recording may get the same address
  Plan plan_;              // threadblocks are in order of first use, without empty ones
  CompileOptions compile_options_;
  std::vector<RankState> ranks_;
  Diagnostics findings_;
  struct PastEnd {
    std::optional<size_t> first;  // in findings_
    uint64_t more = 0;
    std::vector<SourceLine> elsewhere;  // lines of the others, without that of the first one
  };
  PastEnd past_end_[std::size(buffer_names)];
  std::unordered_set<std::string> known_;  // findings, to drop equal ones
  // Both maps hold positions in Plan::source plus one: by "file:line", and by the whole path as __FILE__
  // gives it.
  std::unordered_map<std::string, uint32_t> places_;
  std::map<std::pair<const char*, uint32_t>, uint32_t> known_places_;
  Here last_place_{nullptr, 0};
  uint32_t last_place_id_ = 0;
  std::vector<Region> sources_;    // of the step that is being made
  std::vector<Operand> operands_;  // of the step that is being committed
  Loop loop_;
  bool told_library_ = false;  // a finding has the library_note()
  std::vector<std::unique_ptr<Recording>> replaced_;
  Recording* successor_ = nullptr;
};

}  // namespace chorale::dsl
