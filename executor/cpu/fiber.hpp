/// \file
/// Fiber: a function with a stack of its own, that a thread runs until it suspends itself.
#pragma once

#include <cstddef>
#include <memory>

#include "sanitizers.hpp"

namespace chorale::cpu {

/// Of a fiber on which a thread block runs.
#if defined(CHORALE_ASAN) || defined(CHORALE_TSAN)
inline constexpr size_t block_stack_bytes = 256 << 10;  // redzones make frames several times larger
#else
inline constexpr size_t block_stack_bytes = 96 << 10;
#endif

/// Base of what runs on a fiber. The stack is kept between runs: resume() after an end calls run() anew. That
/// of a fiber which has ended goes to the next one that is made, of whatever world: making a stack costs more
/// than a small launch, and the thread sanitizer gives back only part of what it keeps for each.
///
/// May be resumed by another thread than before; never by two at a time.
class Fiber {
 public:
  /// \param stack_bytes  rounded up to pages; a guard page below turns an overflow into a fault
  /// \throws RunError resources
  explicit Fiber(size_t stack_bytes);

  /// Drops whatever is on the stack without unwinding it: destroy ended fibers only.
  virtual ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Runs until the next suspend() or the end of run(); true at the end.
  bool resume();

 protected:
  /// On this fiber: back to the thread that called resume().
  void suspend();

  /// Does not throw.
  virtual void run() = 0;

 private:
  class Context;

  std::unique_ptr<Context> context_;
};

}  // namespace chorale::cpu
