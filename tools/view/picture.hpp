/// \file
/// A picture is what the page of `chorale view` shows of one plan, schedule or trace.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chorale/source_line.hpp"

namespace chorale::tools {

/// Says what an operation spends its time on. The page draws each kind in its own way.
enum class PictureKind : uint8_t { moves, waits, signals, other, computes };

/// Names a piece of memory that an operation reads or writes.
struct PictureAccess {
  bool writes = false;
  uint32_t rank = 0, buffer = 0;  ///< buffer: a BufferKind
  uint64_t index = 0, size = 0;   ///< chunks
};

struct PictureOp {
  std::string name;  ///< the word of the op table; for a call of a schedule, the function
  PictureKind kind = PictureKind::other;
  bool combines = false;  ///< what it writes is combined from all that it reads
  std::string text;       ///< the operation in words
  std::string channel;    ///< the channels that it uses, in words; empty: none
  SourceLine line;        ///< line 0: unknown
  uint32_t parts = 1;     ///< number of thread blocks that share the accesses
  std::vector<PictureAccess> accesses;
  std::vector<uint32_t> awaits;  ///< numbers of the operations that must come before it goes on
};

/// Names a row of the timeline, which is a thread block or a stream of a rank.
struct PictureRow {
  uint32_t rank = 0;
  std::string name;
  std::vector<PictureOp> ops;
};

/// Says when an operation runs.
struct PictureSpan {
  int64_t begin = -1, end = -1;  ///< begin -1: unknown
};

/// Holds the times of all operations from one source.
struct PictureTimes {
  std::string title;               ///< "predicted for 1M of f32 on NVIDIA H200"
  bool steps = false;              ///< the numbers are positions in an order, not nanoseconds
  std::vector<PictureSpan> spans;  ///< by number of the operation
};

struct Picture {
  std::string kind;  ///< "plan", "schedule" or "trace"
  std::string name, file, headline;
  std::vector<std::string> facts, notes;
  uint32_t ranks = 0;
  uint64_t chunk_bytes = 0;  ///< 0: unknown
  std::vector<PictureRow> rows;
  /// Holds the chunks of input, output and scratch of each rank; empty if chunks are not known.
  std::vector<std::vector<uint64_t>> chunks;
  bool one_storage = false;         ///< input and output are one memory
  std::vector<PictureTimes> times;  ///< "predicted" and "measured", by the keys of `tracks`
  std::vector<std::string> tracks;
  nlohmann::ordered_json findings = nlohmann::ordered_json::array();
  nlohmann::ordered_json profiles = nlohmann::ordered_json::object();
  nlohmann::ordered_json comparison;

  uint64_t op_count() const;
};

/// Gives every operation a position in an order in which they may run: after the one before it in its row
/// and after those that it awaits. Operations that wait for each other come last.
PictureTimes order_of(const Picture&);

/// Returns the JSON that the page reads.
/// \param source_text  returns the text of an author's line; "" if the file is not at hand
nlohmann::ordered_json json_of(const Picture&);

/// Returns the text of an author's line, if its file is at hand.
class SourceTexts {
 public:
  /// \param beside  a file; sources are looked for in its folder too
  explicit SourceTexts(std::string beside) : beside_(std::move(beside)) {}
  std::string operator()(const SourceLine&);

 private:
  std::string beside_;
  std::map<std::string, std::vector<std::string>> files_;
};

}  // namespace chorale::tools
