#pragma once
/// \file
/// A host schedule is a program of streams, transfers and calls in which transfers overlap with compute. A
/// stream (`Stream`) is a CUDA stream, or a thread of the CPU backend. One schedule serves all ranks, however
/// many there are.
///
/// A view names storage, and several operations may write it. The checks prove that they are ordered.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chorale/schedule/expr.hpp"
#include "chorale/source_line.hpp"
#include "chorale/types.hpp"

namespace chorale::schedule {

/// Says how one axis of a tensor is spread. With `ranks` there is one slice per rank, and each rank holds its
/// own slice as index 0. With `streams` the axis is whole on every rank, and each turn of the loop that the
/// compiler makes takes one slice.
enum class Tag : uint8_t { whole, ranks, streams };
/// Says where a temporary is stored. Peers can access a `window`.
enum class Space : uint8_t { local, window, host };
enum class Role : uint8_t { in, out, temp };
/// Says how the bytes of a transfer are moved. docs/host-schedules.md compares the movers.
enum class Mover : uint8_t {
  automatic,  ///< the executor chooses when it binds
  ce_put,     ///< a copy engine of the sender writes into the receiver's tensor
  ce_get,     ///< a copy engine of the receiver reads the sender's tensor
  plan        ///< the groups of all ranks are one launch of a plan of thread blocks
};

/// Holds the words of plan files and dumps, by Tag, Space, Role and Mover. Plan files call streams `lanes`.
inline constexpr std::string_view tag_names[] = {"", "ranks", "lanes"};
inline constexpr std::string_view space_names[] = {"local", "window", "host"};
inline constexpr std::string_view role_names[] = {"in", "out", "temp"};
inline constexpr std::string_view mover_names[] = {"automatic", "ce_put", "ce_get", "plan"};

/// Describes one axis of a tensor.
struct Axis {
  Expr extent;  ///< extent of all ranks together
  Tag tag = Tag::whole;
};

/// Describes a row-major tensor, whose last axis is contiguous. On each rank, an axis that is spread over the
/// ranks has extent 1.
struct Tensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<Axis> axes;
  Role role = Role::temp;
  Space space = Space::local;
  bool zero = false;  ///< a temporary is zero when the schedule is bound
  uint32_t at = 0;    ///< author's line: position in Schedule::source plus one; 0 unknown
};

/// Selects part of an axis: elements [lo, lo + len). Without `len` it selects the one element `lo` and drops
/// the axis.
struct Select {
  uint8_t axis = 0;
  Expr lo;
  std::optional<Expr> len;
  bool operator==(const Select&) const = default;
};

/// Names a box of a tensor, which is a range of each of its axes. Axes without a select are whole. The
/// selects are in the order of their axes.
struct View {
  uint32_t tensor = 0;  ///< position in Schedule::tensors
  std::vector<Select> selects;
  bool operator==(const View&) const = default;
};

/// Names a stream of a schedule.
struct Stream {
  enum class Kind : uint8_t { main, pool, named };
  Kind kind = Kind::main;  ///< main: on CUDA the stream that ScheduleRun::run() is given
  Expr index;              ///< pool: which one of the pool streams
  uint32_t name = 0;       ///< named: position in Schedule::streams
  bool operator==(const Stream&) const = default;
};

/// Describes one side of a transfer. The k-th send from one rank to another with a tag matches the k-th such
/// receive, in program order.
struct Transfer {
  bool is_send = false;
  View view;
  Expr peer;
  uint32_t tag = 0;
  Mover mover = Mover::automatic;
  uint32_t at = 0;  ///< author's line, as Op::at
  bool operator==(const Transfer&) const = default;
};

enum class OpKind : uint8_t {
#define CHORALE_HOST_OP(name, word, summary, text, fields) name,
#include "chorale/schedule/ops.def"
};

/// Holds one operation. The fields of its kind in ops.def say which members it uses.
struct Op {
  OpKind kind = OpKind::mark;
  Stream stream;
  std::vector<View> writes, reads;
  std::vector<Transfer> transfers;  ///< send and recv have one
  uint32_t token = 0;               ///< group and collective complete it, wait waits for it
  Expr index;                       ///< index of a token or a flag, so that each turn of a loop can have one
  std::vector<Stream> streams;
  std::string name;
  std::map<std::string, Expr> attributes;
  Expr peer, value, lo, hi;
  ReduceOp reduce = ReduceOp::sum;
  uint32_t flag = 0;  ///< position in Schedule::flags
  std::vector<Op> body, orelse;
  uint32_t at = 0;  ///< author's line: position in Schedule::source plus one; 0 unknown
  bool operator==(const Op&) const = default;
};

/// Describes one row of ops.def.
struct OpInfo {
  std::string_view name, summary;  ///< name: the word of plan files
  std::string_view text;           ///< lines of the text form
};
const OpInfo& info(OpKind);
std::span<const OpInfo> op_table();  ///< by OpKind

/// Describes a flag that ranks post to each other and take. A `binary` flag is 0 or 1, and the taker clears
/// it. A `counter` grows by one with every post, so it does not work in a CUDA graph, which records the
/// awaited value only once.
struct Flag {
  enum class Kind : uint8_t { binary, counter };
  std::string name;
  Kind kind = Kind::binary;
  uint32_t at = 0;  ///< author's line, as Op::at
};
inline constexpr std::string_view flag_kind_names[] = {"binary", "counter"};

/// Describes a function of the application: how many views it writes and reads.
struct Function {
  std::string name;
  uint32_t writes = 1, reads = 1;
};

/// Describes a whole number that gets its value when the schedule is bound.
struct Param {
  std::string name;
  std::optional<int64_t> value;  ///< the default; none: the caller must give one
};

/// Holds a host schedule. It is in the layout form, the explicit form, or both.
struct Schedule {
  Exprs exprs;
  std::vector<Param> params;
  std::vector<uint32_t> ranks;       ///< the numbers of ranks for which it is checked
  std::vector<std::string> streams;  ///< the named streams
  Expr pool;                         ///< number of pool streams: the symbol `lanes`
  /// Holds the settings that the compiler was given (order, style ...), for people who read the plan.
  std::map<std::string, std::string> made_with;
  std::vector<Flag> flags;
  std::vector<Tensor> tensors;
  std::vector<Function> functions;
  std::vector<Op> layout;          ///< the layout form: the computation on whole tensors; may be empty
  std::vector<Op> body;            ///< the explicit form: the operations of streams
  std::vector<SourceLine> source;  ///< authors' lines, to which `at` refers

  SourceLine line_of(uint32_t at) const { return at ? source[at - 1] : SourceLine{}; }
  /// Returns the position of a tensor; tensors.size() if there is none.
  uint32_t find_tensor(std::string_view name) const;
  /// Returns the application's function of that name; null if there is none, so that the name means a
  /// built-in one.
  const Function* find_function(std::string_view name) const;
};

}  // namespace chorale::schedule
