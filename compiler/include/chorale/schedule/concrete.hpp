#pragma once
/// \file
/// The concrete form of a host schedule is unrolled for one number of ranks. It has no loops, its expressions
/// are numbers, and every transfer knows its other end. The checks prove this form, and the executor runs it.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chorale/diagnostic.hpp"
#include "chorale/schedule/schedule.hpp"

namespace chorale::schedule {

/// Describes a tensor as each rank holds it. Its shape is the same on all ranks.
struct ConcreteTensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<uint64_t> shape;  ///< an axis that is spread over the ranks has extent 1
  uint64_t bytes = 0;
  Role role = Role::temp;
  Space space = Space::local;
  bool zero = false;  ///< a temporary that is zero when the schedule is bound
};

/// Names a box of a tensor, which is elements [lo, lo + extent) of each of its axes.
struct Box {
  uint32_t tensor = 0;
  std::vector<uint64_t> lo, extent;  ///< by axis of the tensor
  /// Hold the extents and strides of the axes that a function sees, which are those that no select drops.
  /// Strides are in elements.
  std::vector<uint64_t> shape, strides;
  uint64_t offset_bytes = 0;  ///< offset of the first element in the tensor
  uint64_t bytes = 0;         ///< size of all elements
  bool contiguous = true;     ///< the elements are consecutive in memory

  bool overlaps(const Box&) const;
};

/// Says what a step does. The words in backquotes are members of Step.
enum class StepKind : uint8_t {
  copy,     ///< copies reads[0] to writes[0], both here
  fill,     ///< sets all elements of writes[0] to `value`
  call,     ///< calls the function `name` with writes, reads and attributes
  launch,   ///< runs the plan `name` with reads[0] as its input and writes[0] as its output
  after,    ///< makes the stream wait for all work on `streams` so far. With a `token` (only after
            ///< expand_movers()) it waits for the work up to the mark of that token
  barrier,  ///< waits until all ranks have reached it
  mark,  ///< shows the text `name`. With a `token` (only after expand_movers()) it marks the end of a group,
         ///< for which an `after` waits
  post,  ///< sets `flag` at rank `peer`, after all work on the stream so far
  take,  ///< waits until rank `peer` has set `flag` here, and clears it
  // The next two exist only before expand_movers().
  group,  ///< starts `transfers` together. A send or a receive alone is a group of one with a wait after it.
          ///< With a `name` and no transfers it is the end of a collective
  wait,   ///< waits for all transfers of group `token`, a position in the steps of this rank
  // The next three exist only after expand_movers().
  put,       ///< copies reads[0] here to writes[0] at rank `peer`
  get,       ///< copies reads[0] at rank `peer` to writes[0] here
  exchange,  ///< runs `transfers` at once, in both directions. The stream goes on when all have ended. Via
             ///< `plan` all ranks take part, as in a launch. With an open mover, an end knows only that the
             ///< other end has begun
};
/// Holds the words of messages and dumps, by StepKind.
inline constexpr std::string_view step_names[] = {"copy",    "fill", "call", "launch",  "after",
                                                  "barrier", "mark", "post", "take",    "group",
                                                  "wait",    "put",  "get",  "exchange"};

/// Describes one end of a transfer.
struct ConcreteTransfer {
  bool is_send = false;
  Box box;
  uint32_t peer = 0, tag = 0;
  Mover mover = Mover::automatic;
  uint32_t pair = 0;  ///< position in Concrete::pairs: the same at both ends
  uint32_t at = 0;    ///< author's line, as Op::at
};

/// Describes a flag that `poster` sets and `taker` clears. It is one word in the taker's memory.
struct ConcreteFlag {
  enum class Use : uint8_t {
    author,  ///< a flag of post and take in the schedule
    credit,  ///< ce_put: the receiver's memory may be written; ce_get: the sender's memory may be read
    data,    ///< ce_put: the receiver's memory has been written; ce_get: the sender's memory has been read
  };
  Use use = Use::author;
  Flag::Kind kind = Flag::Kind::binary;
  uint32_t poster = 0, taker = 0;  ///< ranks
  std::string name;                ///< for messages: "ready[2]", "credit of G"
  uint32_t at = 0;                 ///< author's line, as Op::at
};

/// Holds one step of one rank. StepKind says which members a kind uses.
struct Step {
  StepKind kind = StepKind::mark;
  uint32_t stream = 0;  ///< position in Concrete::streams
  std::vector<Box> writes, reads;
  std::vector<ConcreteTransfer> transfers;
  std::vector<uint32_t> streams;
  std::string name;
  /// If true, a call runs the built-in function even if the application has a function of this name. Fills
  /// and the sums of collectives are such calls.
  bool built_in = false;
  std::map<std::string, int64_t> attributes;
  uint32_t token = 0, peer = 0;
  uint32_t made_of = 0;  ///< group that ends a collective: the number of steps before it that belong to it
  uint32_t flag = 0;     ///< position in Concrete::flags
  int64_t value = 0;
  uint32_t at = 0;                                         ///< author's line, as Op::at
  std::vector<std::pair<std::string, int64_t>> turn = {};  ///< the loops around it, the outermost first
};

/// Holds both ends of a transfer. Each end is a rank, a step, and the position among the transfers of the
/// step. After expand_movers() only the transfers of `exchange` steps have pairs. Flags replace the pairs of
/// copy engines.
struct Pair {
  struct End {
    uint32_t rank = 0, step = 0, transfer = 0;
  };
  End send, recv;
  Mover mover = Mover::automatic;
};

/// Holds a schedule in its concrete form, for all ranks.
struct Concrete {
  uint32_t ranks = 0;
  std::vector<ConcreteTensor> tensors;   ///< as Schedule::tensors
  std::vector<std::string> streams;      ///< "main", the named ones, "pool[0]" ...
  std::vector<std::vector<Step>> steps;  ///< by rank, in the order in which the host enqueues
  std::vector<Pair> pairs;
  std::vector<ConcreteFlag> flags;
};

/// Says what a schedule is made concrete for.
struct Settings {
  uint32_t ranks = 0;               ///< number of ranks
  Values params = {};               ///< values that override the schedule's own
  Mover automatic = Mover::ce_put;  ///< the mover that `automatic` stands for; `automatic`: it stays open
};

/// Makes a host schedule concrete for one number of ranks.
/// \param findings  gets the reasons why this is impossible: missing values, bounds, peers, unmatched
///   transfers, tokens. If there are any, do not use the result
Concrete concretise(const Schedule&, const Settings&, Diagnostics& findings);

/// Replaces each transfer by the steps that move its bytes: flags, puts, gets and exchanges. No group or wait
/// is left.
///
/// With ce_put, the receiver posts a credit. The sender takes it, puts, and posts the data flag, which the
/// receiver takes. With ce_get, the sender posts a credit. The receiver takes it, gets, and posts the data
/// flag, which the sender takes. All credits of a group come before its first take, because otherwise two
/// ranks would wait for each other. The wait for a group takes the flags that end its transfers. Every flag
/// is posted and taken once per run.
Concrete expand_movers(const Concrete&);

/// Runs every check for each of Schedule::ranks. Stops after the first number of ranks with findings.
/// \param params  values that override the schedule's own
/// \param automatic  the mover that `automatic` stands for. With `automatic` it stays open: an end of a
///   transfer waits until the other end has begun, and learns nothing else
Diagnostics check(const Schedule&, const Values& params = {}, Mover automatic = Mover::ce_put);

/// Runs every check when the movers are not chosen yet. For transfers that leave the mover open, it checks
/// ce_put and ce_get, and it leaves the mover open, because these order different things. A schedule that
/// passes can be bound with any mover. There is one more rule for groups with mover `plan`: their ranks may
/// exchange only with each other. Binding checks it.
Diagnostics check_unbound(const Schedule&);

/// Returns the application's declaration of a call's function; null if the function is built in.
const Function* function_of(const Schedule&, const Step&);

/// Returns the place of a step for messages, such as "rank 1, i = 2".
std::string where(uint32_t rank, const Step&);
/// Returns a box as an author writes it, such as "G[1:2, 0:4]".
std::string text(const Concrete&, const Box&);

}  // namespace chorale::schedule
