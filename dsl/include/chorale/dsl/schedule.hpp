#pragma once
/// \file
/// A host schedule overlaps transfers with compute on the streams of a GPU. This header has the language for
/// host schedules: streams, loops, transfers and calls. One schedule serves all ranks.
///
///   // Sends every rank's slice to every rank, over pool streams.
///   CHORALE_PROGRAM(allgather_p2p, Parameters& with) {
///     Schedule schedule({.name = "allgather_p2p", .ranks = {2, 4, 8}, .pool = 4});
///     const Index rank = schedule.rank(), ranks = schedule.ranks(), n = schedule.param("n", 1024);
///     const Tensor in = schedule.input("t0", DType::f32, {over_ranks(ranks), n});
///     const Tensor out = schedule.output("t1", DType::f32, {over_streams(ranks), n});
///     schedule.loop("i", 0, ranks, [&](Index i) { schedule.pool(i % 4).after({schedule.main()}); });
///     schedule.loop("i", 0, ranks, [&](Index i) {
///       const Stream stream = schedule.pool(i % schedule.streams());
///       schedule.when(i == rank, [&] { stream.copy(out[i], in[0]); },
///                     [&] {
///                       stream.wait(stream.group([&](Group& group) {
///                         group.recv(out[i], i);
///                         group.send(in, i);
///                       }));
///                     });
///       schedule.main().after({stream});
///     });
///     return schedule;
///   }
///
/// Every call records the author's line, and every finding shows it.

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chorale/dsl/common.hpp"
#include "chorale/dsl/program.hpp"
#include "chorale/schedule/lower.hpp"
#include "chorale/schedule/schedule.hpp"

namespace chorale::dsl {

using chorale::DType;
using schedule::Form;
using schedule::Lowering;
using schedule::Mover;
using schedule::Order;
using schedule::Reshard;
using schedule::StreamStyle;

class Schedule;
class ScheduleRecording;

/// Holds a whole number, or an expression of the rank, the number of ranks, parameters and loop variables.
/// `/` rounds down and `%` is never negative. Comparisons give 0 or 1.
class Index {
 public:
  Index(int64_t value) : value_(value) {}
  Index(int value) : value_(value) {}

#define CHORALE_EXPR(name, mnemonic) \
  static Index name(const Index& left, const Index& right) { \
    return apply(schedule::ExprKind::name, left, right); \
  }
#include "chorale/schedule/exprs.def"

 private:
  friend class ScheduleRecording;
  Index(ScheduleRecording* recording, schedule::Expr expr) : recording_(recording), expr_(expr) {}
  static Index apply(schedule::ExprKind, const Index&, const Index&);

  ScheduleRecording* recording_ = nullptr;  // null: a number
  schedule::Expr expr_;
  int64_t value_ = 0;
  bool mixed_ = false;  // made of parts of two schedules
};

inline Index operator+(const Index& left, const Index& right) { return Index::add(left, right); }
inline Index operator-(const Index& left, const Index& right) { return Index::sub(left, right); }
inline Index operator*(const Index& left, const Index& right) { return Index::mul(left, right); }
inline Index operator/(const Index& left, const Index& right) { return Index::div(left, right); }
inline Index operator%(const Index& left, const Index& right) { return Index::mod(left, right); }
inline Index operator==(const Index& left, const Index& right) { return Index::equal(left, right); }
inline Index operator!=(const Index& left, const Index& right) { return Index::unequal(left, right); }
inline Index operator<(const Index& left, const Index& right) { return Index::less(left, right); }
inline Index operator<=(const Index& left, const Index& right) { return Index::at_most(left, right); }
inline Index operator>(const Index& left, const Index& right) { return Index::less(right, left); }
inline Index operator>=(const Index& left, const Index& right) { return Index::at_most(right, left); }
inline Index operator&&(const Index& left, const Index& right) { return Index::both(left, right); }
inline Index operator||(const Index& left, const Index& right) { return Index::either(left, right); }

/// Describes one axis of a tensor: its extent, and how it is spread.
struct Extent {
  Extent(Index extent, schedule::Tag tag = schedule::Tag::whole) : extent(extent), tag(tag) {}
  template <std::integral Number>
  Extent(Number extent) : extent(int64_t(extent)) {}
  Index extent;
  schedule::Tag tag = schedule::Tag::whole;
};
/// Makes an axis with one slice per rank. Each rank holds its own slice, as index 0.
inline Extent over_ranks(Index extent) { return {extent, schedule::Tag::ranks}; }
/// Makes an axis that is whole on every rank. The loop that works on it takes one slice per turn.
inline Extent over_streams(Index extent) { return {extent, schedule::Tag::streams}; }

/// Holds an index and the author's line, because an operator has no argument for the line.
struct Subscript {
  template <std::convertible_to<Index> Number>
  Subscript(const Number& index, Here at = Here::current()) : index(index), at(at) {}
  Index index;
  Here at;
};

/// Names a box of a tensor, which is a range of each of its axes. Axes are numbered from 0, as in the tensor,
/// also after a select has dropped one of them.
class View {
 public:
  /// Selects element `index` of axis 0 and drops the axis.
  View operator[](Subscript subscript) const { return select(0, subscript.index, subscript.at); }
  /// Selects element `index` of an axis and drops the axis.
  View select(uint8_t axis, Index index, Here at = Here::current()) const;
  /// Selects elements [first, first + length) of an axis.
  View slice(uint8_t axis, Index first, Index length, Here at = Here::current()) const;

 protected:
  friend class ScheduleRecording;
  View(ScheduleRecording* recording, schedule::View view) : recording_(recording), view_(std::move(view)) {}
  ScheduleRecording* recording_;
  schedule::View view_;
};

/// Names a tensor. It is a view of all elements.
class Tensor : public View {
 private:
  friend class ScheduleRecording;
  using View::View;
};

/// Says which receive matches a send, and what moves the bytes.
struct TransferOptions {
  uint32_t tag = 0;  ///< the k-th send to a peer with this tag matches the k-th receive with it there
  schedule::Mover via =
      schedule::Mover::automatic;  ///< the same at both ends; automatic: the executor chooses
};

/// Stands for a group or a collective that a stream can wait for.
class Token {
 public:
  /// Returns one token of an array, such as the token of turn `index`. With it, one loop can start groups and
  /// another loop can wait for them.
  Token operator[](Index index) const {
    Token one = *this;
    one.index_ = index;
    return one;
  }

 private:
  friend class ScheduleRecording;
  Token(ScheduleRecording* recording, uint32_t id) : recording_(recording), id_(id) {}
  ScheduleRecording* recording_;
  uint32_t id_;
  Index index_ = 0;
};

/// Holds sends and receives that run together. Put loops and conditions around a group, not into it.
class Group {
 public:
  /// Adds a send of `src` to rank `peer`. That rank must have a matching receive of the same size.
  void send(const View& src, Index peer, TransferOptions options = {}, Here at = Here::current());
  /// Adds a receive into `dst` from rank `peer`.
  void recv(const View& dst, Index peer, TransferOptions options = {}, Here at = Here::current());

 private:
  friend class ScheduleRecording;
  explicit Group(ScheduleRecording* recording) : recording_(recording) {}
  ScheduleRecording* recording_;
  std::vector<schedule::Transfer> transfers_;
};

/// Names a flag that ranks post to each other and take.
class Flag {
 private:
  friend class ScheduleRecording;
  Flag(ScheduleRecording* recording, uint32_t id) : recording_(recording), id_(id) {}
  ScheduleRecording* recording_;
  uint32_t id_;
};

/// Holds options that only some collectives use.
struct CollectiveOptions {
  Index root = 0;                   ///< the rank that sends, or receives
  ReduceOp reduce = ReduceOp::sum;  ///< operator of the collectives that combine
  std::optional<Token> token = {};  ///< the token that it completes; none: a new one
};

/// Stands for a CUDA stream, or for a thread of the CPU backend. Its work runs in order.
/// docs/host-schedules.md describes the operation of each method.
class Stream {
 public:
  /// Copies `src` to `dst`. Both are on this rank and have the same shape and type.
  void copy(const View& dst, const View& src, Here at = Here::current()) const;
  /// Sets every element of `dst` to a whole number.
  void fill(const View& dst, Index value, Here at = Here::current()) const;
  /// Sends a view without a group. The stream goes on only when the peer has reached its receive, too.
  void send(const View& src, Index peer, TransferOptions options = {}, Here at = Here::current()) const;
  /// Receives a view without a group. The stream goes on when the data has arrived.
  void recv(const View& dst, Index peer, TransferOptions options = {}, Here at = Here::current()) const;
  /// Runs together the sends and receives that `body` adds to the group. With some movers the stream goes on
  /// before they end, so wait() for the token before you use received data or overwrite sent data.
  Token group(const std::function<void(Group&)>& body, Here at = Here::current()) const;
  /// Records a group that completes the given token, which comes from Schedule::token().
  Token group(Token, const std::function<void(Group&)>& body, Here at = Here::current()) const;
  /// Waits for a group or a collective. Each token is waited for exactly once.
  void wait(Token, Here at = Here::current()) const;
  /// Runs a collective of all ranks. Wait for the returned token.
  /// \param kind  one of schedule::collective_names, such as "allgather"
  Token collective(std::string_view kind, const View& dst, const View& src, CollectiveOptions options = {},
                   Here at = Here::current()) const;
  /// Runs a plan of thread blocks with `src` as its input and `dst` as its output.
  /// \param plan  the name of the plan in ScheduleArguments::plans
  void launch(std::string_view plan, const View& dst, const View& src, Here at = Here::current()) const;
  /// Calls a built-in function, or one that Schedule::function() declares. It gets the views in this order.
  void call(std::string_view function, std::vector<View> writes, std::vector<View> reads,
            std::map<std::string, Index> attributes = {}, Here at = Here::current()) const;
  /// Lets later work of this stream wait for everything on `streams` so far.
  void after(const std::vector<Stream>& streams, Here at = Here::current()) const;
  /// Lets later work of `streams` wait for everything on this stream so far.
  void fork(const std::vector<Stream>& streams, Here at = Here::current()) const;
  /// Does the same as after().
  void join(const std::vector<Stream>& streams, Here at = Here::current()) const;
  /// Waits until all ranks have reached the barrier.
  void barrier(Here at = Here::current()) const;
  /// Sets a flag at rank `peer`, after everything on this stream so far.
  /// \param index  chooses one flag of an array, such as the flag of one turn
  void post(Flag, Index peer, Index index = 0, Here at = Here::current()) const;
  /// Waits until rank `peer` has set the flag here, and clears it.
  void take(Flag, Index peer, Index index = 0, Here at = Here::current()) const;
  /// Shows a text at this place in dumps. It does nothing else.
  void mark(std::string_view text, Here at = Here::current()) const;

 private:
  friend class ScheduleRecording;
  Stream(ScheduleRecording* recording, schedule::Stream stream) : recording_(recording), stream_(stream) {}
  ScheduleRecording* recording_;
  schedule::Stream stream_;
};

/// Holds the name of a schedule and its numbers of ranks.
struct ScheduleOptions {
  std::string name = {};             ///< not empty
  std::vector<uint32_t> ranks = {};  ///< numbers of ranks that it is checked for
  int64_t pool = 0;                  ///< number of streams in the pool
  schedule::Lowering lowering = {};  ///< how the compiler lowers the layout form
};

class Parameters;

/// Declares parameters of the program that say how the compiler lowers a layout: order, form, style, reshard,
/// via.
/// \throws std::invalid_argument if the value of one is an unknown word
Lowering lowering(Parameters&, Lowering defaults = {});

/// Records a host schedule, which is one program for all ranks. It becomes a Program, whose plan holds the
/// schedule in Extension::schedule. Mistakes become findings at the author's line.
///
///   Schedule s({.name = "mine", .ranks = {2, 4}});
///   const Tensor a = s.input("A", DType::f32, {...});
///   s.main().copy(...);
///   return s;
class Schedule {
 public:
  explicit Schedule(ScheduleOptions, Here at = Here::current());
  Schedule(Schedule&&) noexcept;
  ~Schedule();

  Index rank() const;     ///< number of the rank that runs the schedule
  Index ranks() const;    ///< number of ranks
  Index streams() const;  ///< number of streams in the pool
  /// Declares a number that gets its value when the schedule is bound. The value is `value` unless the caller
  /// gives another.
  Index param(std::string_view name, int64_t value, Here at = Here::current());

  /// Declare a tensor of the application. It is row-major, and the last axis is contiguous.
  Tensor input(std::string_view name, DType, std::vector<Extent>, Here at = Here::current());
  Tensor output(std::string_view name, DType, std::vector<Extent>, Here at = Here::current());
  /// Declares storage that is allocated once, when the schedule is bound.
  /// \param zero  if true, it is filled with zeros then
  Tensor temporary(std::string_view name, DType, std::vector<Extent>, bool zero = false,
                   Here at = Here::current());

  /// Returns the main stream. On CUDA it is the stream that ScheduleRun::run() is given.
  Stream main() const;
  /// Returns the stream of that name, and declares it at its first use.
  Stream stream(std::string_view name, Here at = Here::current());
  /// Returns pool stream `index`, 0 to streams() - 1.
  Stream pool(Index index, Here at = Here::current()) const;
  /// Returns a token that groups and collectives complete. For example, one loop has `stream.group(token[i],
  /// ..)` and another `wait(token[i])`.
  Token token();
  /// Declares a flag. schedule::Flag describes the kinds.
  Flag flag(std::string_view name, schedule::Flag::Kind = schedule::Flag::Kind::binary,
            Here at = Here::current());
  /// Declares a function that the application provides in ScheduleArguments::functions.
  /// \param writes, reads  number of views that it writes and reads
  void function(std::string_view name, uint32_t writes, uint32_t reads, Here at = Here::current());

  /// Runs the body once per value of the variable, from lo to hi - 1.
  void loop(std::string_view variable, Index lo, Index hi, const std::function<void(Index)>& body,
            Here at = Here::current());
  /// Runs `then` if the condition is not 0, else `otherwise`. Ranks may take different branches.
  void when(Index condition, const std::function<void()>& then, const std::function<void()>& otherwise = {},
            Here at = Here::current());

  // The layout form says what is computed, with whole tensors. The compiler cuts the tensors into slices
  // along the axes over streams, fetches the slices of axes over ranks from other ranks, and creates the
  // streams.

  /// Sets `out` to the elements of `in`, which may be spread in another way.
  void set(const Tensor& out, const Tensor& in, Here at = Here::current());
  /// Computes [.., m, n] from [.., m, k] and [.., k, n] or [k, n]. The leading axes are those of `out`.
  void matmul(const Tensor& out, const Tensor& a, const Tensor& b, Here at = Here::current());
  /// Computes [.., m, n] from [.., m, k], the weight [n, k], and a bias [n].
  void linear(const Tensor& out, const Tensor& in, const Tensor& weight, Here at = Here::current());
  void linear(const Tensor& out, const Tensor& in, const Tensor& weight, const Tensor& bias,
              Here at = Here::current());
  /// Adds `a` and `b` element by element. All three have one shape.
  void add(const Tensor& out, const Tensor& a, const Tensor& b, Here at = Here::current());
  /// Sums over an axis of `in`. `out` lacks that axis.
  void sum(const Tensor& out, const Tensor& in, uint8_t axis, Here at = Here::current());

  /// Returns the program of a schedule. Compiling it runs the checks.
  operator Program() const;

  // Streams were called lanes. The old names stay for one version, here and below.

  [[deprecated("use streams()")]] Index lanes() const { return streams(); }
  [[deprecated("use stream()")]] Stream lane(std::string_view name, Here at = Here::current()) {
    return stream(name, at);
  }

 private:
  std::unique_ptr<ScheduleRecording> recording_;  // on the heap: handles point to it
};

using Lane [[deprecated("use Stream")]] = Stream;
using LaneStyle [[deprecated("use StreamStyle")]] = StreamStyle;
[[deprecated("use over_streams()")]] inline Extent over_lanes(Index extent) { return over_streams(extent); }

}  // namespace chorale::dsl
