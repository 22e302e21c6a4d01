#pragma once
/// \file
/// A ScheduleRecording holds the host schedule that a Schedule has recorded so far, and the findings about
/// its calls.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "chorale/dsl/schedule.hpp"
#include "dsl/recording.hpp"

namespace chorale::dsl {

class ScheduleRecording {
 public:
  explicit ScheduleRecording(ScheduleOptions options);

  std::string name;
  schedule::Lowering lowering;
  schedule::Schedule s;
  std::vector<std::vector<schedule::Op>*> open = {&s.body};  ///< bodies around the call, the innermost last
  Diagnostics findings;
  uint32_t tokens = 0;
  bool has_foreign = false;  ///< some call got handles of another schedule

  /// Returns the position of an author's line, as in schedule::Op::at.
  uint32_t place(Here at);
  /// Adds a finding. Equal findings at one line count once.
  void find(Here at, std::string text);

  /// Checks that plan files and expressions accept this name.
  void name_of(std::string_view what, std::string_view name, Here at);
  /// Checks that no element of `known` already has this name.
  template <class List>
  void unique(const List& known, std::string_view what, std::string_view name, Here at) {
    for (const auto& one : known)
      if (one.name == name) find(at, say("there is a ", what, " '", name, "' already"));
  }

  Index index(schedule::Expr expr) { return {this, expr}; }
  /// Returns the expression of an index, if it belongs to this schedule.
  schedule::Expr expr(const Index& index, Here at);
  /// Applies an operator to two indices. One of them may be a number.
  static Index apply(schedule::ExprKind kind, const Index& left, const Index& right);

  /// Returns a view of a part of one axis.
  /// \param length  null: one element, and the axis is dropped
  View part(const View& of, uint8_t axis, Index first, const Index* length, Here at);
  Tensor tensor(std::string_view name, DType dtype, const std::vector<Extent>& axes, schedule::Role role,
                bool zero, Here at);

  /// Adds an operation to the innermost body.
  schedule::Op& op(schedule::OpKind kind, const schedule::Stream& stream, Here at);
  schedule::Op& op(schedule::OpKind kind, const Stream& stream, Here at) {
    return op(kind, raw(stream, at), at);
  }
  /// Adds an operation of the layout form.
  schedule::Op& compute(std::string_view function, const Tensor& out, const std::vector<Tensor>& in, Here at);
  /// Reports a finding if the function that records a body is missing.
  bool has_body(bool given, std::string_view what, Here at);
  /// Records the body of a loop or a condition.
  void within(std::vector<schedule::Op>& body, const std::function<void()>& record, Here at);
  /// Records the body of a group. Only transfers may be in it. Other operations would end up in front of the
  /// group.
  void transfers_alone(Group& group, const std::function<void(Group&)>& record);

  schedule::Transfer transfer(bool is_send, const View& view, const Index& peer,
                              const TransferOptions& options, Here at);
  Group group() { return Group(this); }
  static std::vector<schedule::Transfer>& transfers(Group& group) { return group.transfers_; }
  Token token() { return Token(this, ++tokens); }
  void token(schedule::Op& op, const Token& token, Here at);

  // Each raw() returns what a handle stands for. A handle of another schedule is a finding, and the first
  // object of its kind is returned.
  uint32_t raw(Flag flag, Here at) { return is_own(flag, "a flag", at) ? flag.id_ : 0; }
  const schedule::Stream& raw(const Stream& stream, Here at);
  const schedule::View& raw(const View& view, Here at);
  template <class Handle>
  auto raw(const std::vector<Handle>& handles, Here at) {
    std::vector<std::decay_t<decltype(raw(handles[0], at))>> list;
    for (const Handle& one : handles) list.push_back(raw(one, at));
    return list;
  }
  Stream stream(schedule::Stream stream) { return {this, stream}; }
  Flag flag(uint32_t id) { return Flag(this, id); }

 private:
  /// Keeps a body open while this object lives. The author may catch an exception of his function and go on.
  class Inside {
   public:
    Inside(ScheduleRecording& recording, std::vector<schedule::Op>& body);
    ~Inside();
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    std::vector<std::vector<schedule::Op>*>& open_;
  };

  /// Holds the size that an expression would have if it shared no parts.
  struct Size {
    unsigned nested = 0, operators = 0;
  };
  Size size_of(schedule::Expr expr) const;
  schedule::Expr binary(schedule::ExprKind kind, const Index& left, const Index& right);
  template <class Handle>
  bool is_own(const Handle& handle, std::string_view what, Here at) {
    if (handle.recording_ == this) return true;
    has_foreign = true;
    find(at, say(what, " of another schedule, '", handle.recording_->name, "'"));
    return false;
  }

  std::map<uint32_t, Size> sizes_;  // by id of an expression; only expressions with operators
};

}  // namespace chorale::dsl
