/// \file
/// A Fiber is a function with its own stack. A thread runs it until it suspends itself.
#pragma once

#include <cstddef>
#include <memory>

#include "sanitizers.hpp"

namespace chorale::fibers {

/// Sets the stack size of a fiber that runs a thread block.
#if defined(CHORALE_ASAN) || defined(CHORALE_TSAN)
inline constexpr size_t block_stack_bytes = 256 << 10;  // redzones make frames several times larger
#else
inline constexpr size_t block_stack_bytes = 96 << 10;
#endif

/// Runs run() of the derived class on a fiber. The stack stays between runs: after an end, resume() calls
/// run() again. The stack of a destroyed fiber goes to the next new fiber of any world. Making a stack costs
/// more than a small launch, and the thread sanitizer releases only part of its data for each stack.
///
/// Any thread may resume a fiber, but never two at the same time.
class Fiber {
 public:
  /// \param stack_bytes rounded up to pages; a guard page below turns an overflow into a fault
  /// \throws RunError resources
  explicit Fiber(size_t stack_bytes);

  /// Drops the contents of the stack without unwinding it, so destroy only fibers that have ended.
  virtual ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Runs until the next suspend() or the end of run(). Returns true at the end.
  bool resume();

 protected:
  /// Returns to the thread that called resume(). Called on this fiber.
  void suspend();

  /// Contains the body of the fiber. It must not throw.
  virtual void run() = 0;

 private:
  class Context;

  std::unique_ptr<Context> context_;
};

}  // namespace chorale::fibers
