/// \file
/// A Fiber is a function with a stack of its own, which a thread runs until it suspends itself.
#pragma once

#include <cstddef>
#include <memory>

#include "sanitizers.hpp"

namespace chorale::cpu {

/// The stack size of a fiber on which a thread block runs.
#if defined(CHORALE_ASAN) || defined(CHORALE_TSAN)
inline constexpr size_t block_stack_bytes = 256 << 10;  // redzones make frames several times larger
#else
inline constexpr size_t block_stack_bytes = 96 << 10;
#endif

/// The base class of what runs on a fiber. The stack is kept between runs: resume() after an end calls run()
/// anew. A destroyed fiber's stack goes to the next fiber that is made, of whatever world, because making a
/// stack costs more than a small launch and the thread sanitizer gives back only part of what it keeps for
/// each.
///
/// Another thread than before may resume a fiber, but never two at a time.
class Fiber {
 public:
  /// \param stack_bytes  rounded up to pages; a guard page below turns an overflow into a fault
  /// \throws RunError resources
  explicit Fiber(size_t stack_bytes);

  /// Drops whatever is on the stack without unwinding it, so destroy ended fibers only.
  virtual ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Runs until the next suspend() or the end of run(). Returns true at the end.
  bool resume();

 protected:
  /// Returns to the thread that called resume(). Called on this fiber.
  void suspend();

  /// The body of the fiber. It must not throw.
  virtual void run() = 0;

 private:
  class Context;

  std::unique_ptr<Context> context_;
};

}  // namespace chorale::cpu
