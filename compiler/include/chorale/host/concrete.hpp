#pragma once
/// \file
/// A host schedule for a number of ranks: every loop unrolled, every expression a number, every transfer with
/// its other end. What the checks prove and the executor runs.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chorale/diagnostic.hpp"
#include "chorale/host/schedule.hpp"

namespace chorale::host {

/// A tensor as each rank holds it; the same shape on all.
struct ConcreteTensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<uint64_t> shape;  ///< an axis that is spread over the ranks has extent 1
  uint64_t bytes = 0;
  Role role = Role::temp;
  Space space = Space::local;
  bool zero = false;
};

/// Part of a tensor: elements [lo, lo + extent) of each of its axes.
struct Box {
  uint32_t tensor = 0;
  std::vector<uint64_t> lo, extent;  ///< by axis of the tensor
  /// What a function sees: the axes that are not selected away, with strides in elements.
  std::vector<uint64_t> shape, strides;
  uint64_t offset_bytes = 0;  ///< of the first element in the tensor
  uint64_t bytes = 0;         ///< of all elements
  bool contiguous = true;     ///< the elements follow each other

  bool overlaps(const Box&) const;
};

enum class StepKind : uint8_t {
  copy,    ///< reads[0] to writes[0], both here
  fill,    ///< `value` to writes[0]
  call,    ///< `name`, with writes, reads and attributes
  launch,  ///< the plan `name`: reads[0] its input, writes[0] its output
  after,   ///< lane waits for what is on `lanes` so far; behind expand_movers(), with a `token`: up to the
           ///< mark of that token
  barrier,
  mark,  ///< `name`; behind expand_movers(), with a `token`: the end of a group, for which an `after` waits
  post,  ///< sets `flag` at rank `peer`, behind what is on the lane so far
  take,  ///< waits until `flag` is set here by rank `peer`, and clears it
  // before the movers are expanded
  group,  ///< `transfers` go on together; send and recv are groups of one that are waited for at once. Of no
          ///< transfers and with a `name`: the end of a collective
  wait,   ///< for all transfers of group `token`, a position in the steps of this rank
  // after that
  put,    ///< copies reads[0] here to writes[0] at rank `peer`
  get,    ///< copies reads[0] at rank `peer` to writes[0] here
  carry,  ///< `transfers` of one mover that is no copy engine, both ways at once; the lane goes on when all
          ///< are done
};
/// By StepKind, in messages and dumps.
inline constexpr std::string_view step_names[] = {"copy",    "fill", "call", "launch", "after",
                                                  "barrier", "mark", "post", "take",   "group",
                                                  "wait",    "put",  "get",  "carry"};

/// One end of a transfer.
struct ConcreteTransfer {
  bool is_send = false;
  Box box;
  uint32_t peer = 0, tag = 0;
  Mover mover = Mover::automatic;
  uint32_t pair = 0;  ///< position in Concrete::pairs: the same at both ends
  uint32_t at = 0;
};

/// A flag that `poster` sets and `taker` clears; one word of memory at the taker.
struct ConcreteFlag {
  enum class Use : uint8_t {
    author,  ///< of post and take in the schedule
    credit,  ///< ce_put: the receiver's memory may be written. ce_get: the sender's may be read
    data,    ///< ce_put: it is written. ce_get: it is read
  };
  Use use = Use::author;
  Flag::Kind kind = Flag::Kind::binary;
  uint32_t poster = 0, taker = 0;
  std::string name;  ///< for messages: "ready[2]", "credit of G"
  uint32_t at = 0;
};

struct Step {
  StepKind kind = StepKind::mark;
  uint32_t lane = 0;  ///< position in Concrete::lanes
  std::vector<Box> writes, reads;
  std::vector<ConcreteTransfer> transfers;
  std::vector<uint32_t> lanes;
  std::string name;
  /// call: the built-in function, whichever the application has of its name: sums of collectives. So are
  /// fills.
  bool built_in = false;
  std::map<std::string, int64_t> attributes;
  uint32_t token = 0, peer = 0;
  uint32_t made_of = 0;  ///< group that ends a collective: so many steps in front of it are that collective
  uint32_t flag = 0;     ///< position in Concrete::flags
  int64_t value = 0;
  uint32_t at = 0;                                         ///< author's line, as Op::at
  std::vector<std::pair<std::string, int64_t>> turn = {};  ///< the loops that it is in, the outermost first
};

/// Both ends of a transfer: whose step, and which of its transfers. Behind expand_movers() only those of
/// carries are there; those of copy engines have become flags.
struct Pair {
  struct End {
    uint32_t rank = 0, step = 0, transfer = 0;
  };
  End send, recv;
  Mover mover = Mover::automatic;
};

struct Concrete {
  uint32_t ranks = 0;
  std::vector<ConcreteTensor> tensors;   ///< as Schedule::tensors
  std::vector<std::string> lanes;        ///< "main", the named ones, "pool[0]" ...
  std::vector<std::vector<Step>> steps;  ///< by rank, in the order in which the host enqueues
  std::vector<Pair> pairs;
  std::vector<ConcreteFlag> flags;
};

struct Settings {
  uint32_t ranks = 0;
  Values params = {};               ///< over the schedule's own
  Mover automatic = Mover::ce_put;  ///< what `automatic` stands for
};

/// \param findings  what makes it impossible: no value, out of bounds, no such peer, unmatched, tokens. Where
///   there are any the result is not to be used.
Concrete concretise(const Schedule&, const Settings&, Diagnostics& findings);

/// The same with transfers as what moves them: flags, puts, gets and carries. No group or wait is left.
///
/// ce_put: the receiver posts a credit, the sender takes it, puts, posts the data flag, the receiver takes
/// it. ce_get: the sender posts a credit, the receiver takes it, gets, posts the data flag, the sender takes
/// it. All credits of a group come before its first take, or two ranks would wait for each other; what ends a
/// transfer is taken where the group is waited for. Every flag is posted and taken once in a run.
Concrete expand_movers(const Concrete&);

/// Every check, for each of Schedule::ranks; the first number of ranks with findings ends it.
/// \param params     over the schedule's own
/// \param automatic  what `automatic` stands for
Diagnostics check(const Schedule&, const Values& params = {}, Mover automatic = Mover::ce_put);

/// The same before anybody has chosen a mover: where the schedule leaves that open, with ce_put, ce_get and
/// kernel, which order different things. What is accepted here can be bound with any; via `plan` groups also
/// have to exchange with each other alone, which is looked at then.
Diagnostics check_unbound(const Schedule&);

/// What the application declares by the name of a call's function; null: it is a built-in one.
const Function* function_of(const Schedule&, const Step&);

/// "rank 1, i = 2": of a step, for messages.
std::string where(uint32_t rank, const Step&);
/// A box as an author writes it: "G[1:2, 0:4]".
std::string text(const Concrete&, const Box&);

}  // namespace chorale::host
