/// \file
/// Fiber: a function with a stack of its own, that a thread runs until it suspends itself.
#pragma once

#include <boost/context/fiber.hpp>
#include <cstddef>

namespace chorale::cpu {

/// Base of what runs on a fiber. The stack is kept between runs: resume() after an end calls run() anew.
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
  void start();
  void enter(bool first);
  void leave();

  // The two words that the C++ runtime keeps per thread about exceptions in flight. A fiber may suspend in a
  // catch block, so they go with it.
  struct Exceptions {
    void* caught = nullptr;
    unsigned uncaught = 0;
  };
  static Exceptions* exceptions_of_thread();

  // Never destroyed: destroying a boost fiber resumes it once more, to unwind it.
  union Context {
    Context() {}
    ~Context() {}
    boost::context::fiber fiber;
  };

  std::byte* stack_ = nullptr;  // the guard page
  size_t mapped_bytes_ = 0;
  Context inside_, outside_;
  bool started_ = false;
  bool ended_ = false;
  Exceptions exceptions_;

  // For the sanitizers, which must be told of every switch.
  [[maybe_unused]] void* tsan_inside_ = nullptr;
  [[maybe_unused]] void* tsan_outside_ = nullptr;
  [[maybe_unused]] void* asan_fake_ = nullptr;
  [[maybe_unused]] const void* asan_outside_bottom_ = nullptr;
  [[maybe_unused]] size_t asan_outside_bytes_ = 0;
};

}  // namespace chorale::cpu
