#include "fiber.hpp"

#include <cxxabi.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <boost/context/fiber.hpp>
#include <boost/context/preallocated.hpp>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "chorale/error.hpp"
#include "executor/system/host_pages.hpp"

#if defined(CHORALE_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

// These functions are weak instead of depending on an #if for the sanitizer: an application that uses the
// sanitizer links this library, which is built without it. Compilers without these headers have no sanitizer.
#if __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#pragma weak __sanitizer_start_switch_fiber
#pragma weak __sanitizer_finish_switch_fiber
#pragma weak __asan_unpoison_memory_region
#define CHORALE_ASAN_HEADERS
#endif

namespace chorale::fibers {
namespace {

/// These functions tell the address sanitizer, if there is one, about a switch to another stack (before and
/// after it) and about the end of a stack (before it).
#if defined(CHORALE_ASAN_HEADERS)
inline void asan_start_switch(void** fake, const void* bottom, size_t bytes) {
  if (__sanitizer_start_switch_fiber) __sanitizer_start_switch_fiber(fake, bottom, bytes);
}
inline void asan_finish_switch(void* fake, const void** bottom, size_t* bytes) {
  if (__sanitizer_finish_switch_fiber) __sanitizer_finish_switch_fiber(fake, bottom, bytes);
}
inline void asan_forget(void* memory, size_t bytes) {
  if (__asan_unpoison_memory_region) __asan_unpoison_memory_region(memory, bytes);
}
#else
inline void asan_start_switch(void**, const void*, size_t) {}
inline void asan_finish_switch(void*, const void**, size_t*) {}
inline void asan_forget(void*, size_t) {}
#endif

/// Frees nothing when boost no longer needs a stack, because the Context owns it.
struct KeepStack {
  void deallocate(boost::context::stack_context&) {}
};

/// Limits the unused stacks of each size that are kept for later fibers. A stack has only a few
/// touched pages.
#if defined(CHORALE_TSAN)
// The sanitizer keeps its data for a fiber even after the fiber's end.
constexpr size_t most_unused = SIZE_MAX;
#else
constexpr size_t most_unused = 512;
#endif

}  // namespace

/// Owns a stack, on which one fiber after another runs. Every switch writes to it, so it shares no line with
/// other contexts.
class alignas(128) Fiber::Context {
 public:
  explicit Context(size_t stack_bytes);
  ~Context();

  /// Returns an unused context, or a new one.
  /// \throws RunError resources
  static std::unique_ptr<Context> take(size_t stack_bytes);

  /// Gives a context to later fibers, if nothing is left on its stack.
  static void give(std::unique_ptr<Context> context);

  bool resume(Fiber& fiber);
  void suspend();

 private:
  // The C++ runtime keeps these two words per thread for exceptions in flight. A fiber may suspend in a catch
  // block, so they move with it.
  struct Exceptions {
    void* caught = nullptr;
    unsigned uncaught = 0;
  };
  static Exceptions* exceptions_of_thread();

  // The fiber is never destroyed, because boost resumes a fiber once more to unwind it when it is destroyed.
  union Handle {
    Handle() {}
    ~Handle() {}
    boost::context::fiber fiber;
  };

  struct Unused {
    std::mutex mutex;
    std::map<size_t, std::vector<std::unique_ptr<Context>>> by_bytes;
  };
  static Unused& unused();

  void start();
  void enter(bool first);
  void leave();

  const size_t stack_bytes_;    ///< the size that was asked for
  std::byte* stack_ = nullptr;  // begins with the guard page
  size_t mapped_bytes_ = 0;
  Handle inside_, outside_;
  Fiber* fiber_ = nullptr;  ///< the fiber that runs here, or that ran here last
  bool started_ = false;
  bool ended_ = true;  ///< no run has left anything on the stack
  Exceptions exceptions_;

  // The sanitizers need these members, because they must know about every switch.
  [[maybe_unused]] void* tsan_inside_ = nullptr;
  [[maybe_unused]] void* tsan_outside_ = nullptr;
  void* asan_fake_ = nullptr;
  const void* asan_outside_bottom_ = nullptr;
  size_t asan_outside_bytes_ = 0;
};

Fiber::Context::Context(size_t stack_bytes) : stack_bytes_(stack_bytes) {
  mapped_bytes_ = (stack_bytes + page_bytes() - 1) / page_bytes() * page_bytes() + page_bytes();
  void* memory = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, page_bytes(), PROT_NONE) != 0) {
    const int error = errno;
    if (memory != MAP_FAILED) munmap(memory, mapped_bytes_);
    throw RunError(RunError::Reason::resources,
                   fmt::format("no memory for a stack of {} bytes: {}; use fewer blocks or ranks, or raise "
                               "vm.max_map_count or the limit of address space (ulimit -v)",
                               stack_bytes, std::strerror(error)));
  }
  stack_ = static_cast<std::byte*>(memory);
  // A huge page for the first frame would cost more than all the pages that most fibers touch.
  madvise(stack_, mapped_bytes_, MADV_NOHUGEPAGE);
#if defined(CHORALE_TSAN)
  tsan_inside_ = __tsan_create_fiber(0);
#endif
}

Fiber::Context::~Context() {
#if defined(CHORALE_TSAN)
  __tsan_destroy_fiber(tsan_inside_);
#endif
  // Frames that never returned have left their redzones marked, and the addresses will be used again.
  asan_forget(stack_ + page_bytes(), mapped_bytes_ - page_bytes());
  munmap(stack_, mapped_bytes_);
}

Fiber::Context::Unused& Fiber::Context::unused() {
  static Unused& all = *new Unused;  // outlives every static fiber
  return all;
}

std::unique_ptr<Fiber::Context> Fiber::Context::take(size_t stack_bytes) {
  {
    const std::lock_guard lock(unused().mutex);
    auto& list = unused().by_bytes[stack_bytes];
    if (!list.empty()) {
      std::unique_ptr<Context> context = std::move(list.back());
      list.pop_back();
      return context;
    }
  }
  return std::make_unique<Context>(stack_bytes);
}

void Fiber::Context::give(std::unique_ptr<Context> context) {
  if (!context->ended_) return;
  const std::lock_guard lock(unused().mutex);
  auto& list = unused().by_bytes[context->stack_bytes_];
  if (list.size() < most_unused) list.push_back(std::move(context));
}

// This function is not inlined, so that no caller keeps the address of one thread's words while it moves to
// another thread.
[[gnu::noinline]] Fiber::Context::Exceptions* Fiber::Context::exceptions_of_thread() {
  return reinterpret_cast<Exceptions*>(abi::__cxa_get_globals());
}

/// Runs first on the fiber after a switch to it.
inline void Fiber::Context::enter(bool first) {
  asan_finish_switch(first ? nullptr : asan_fake_, &asan_outside_bottom_, &asan_outside_bytes_);
}

/// Runs last on the fiber before a switch away from it.
inline void Fiber::Context::leave() {
  asan_start_switch(&asan_fake_, asan_outside_bottom_, asan_outside_bytes_);
#if defined(CHORALE_TSAN)
  __tsan_switch_to_fiber(tsan_outside_, 0);
#endif
}

void Fiber::Context::start() {
  boost::context::stack_context stack;
  stack.size = mapped_bytes_ - page_bytes();
  stack.sp = stack_ + mapped_bytes_;
  auto loop = [this](boost::context::fiber&& from) -> boost::context::fiber {
    new (&outside_.fiber) boost::context::fiber(std::move(from));
    enter(true);
    for (;;) {
      fiber_->run();
      ended_ = true;
      suspend();
    }
  };
  new (&inside_.fiber) boost::context::fiber(
      std::allocator_arg, boost::context::preallocated(stack.sp, stack.size, stack), KeepStack{}, loop);
  started_ = true;
}

bool Fiber::Context::resume(Fiber& fiber) {
  fiber_ = &fiber;
  if (!started_) start();
  ended_ = false;
  Exceptions* const of_thread = exceptions_of_thread();
  const Exceptions saved = std::exchange(*of_thread, exceptions_);
  void* fake = nullptr;
  asan_start_switch(&fake, stack_ + page_bytes(), mapped_bytes_ - page_bytes());
#if defined(CHORALE_TSAN)
  tsan_outside_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(tsan_inside_, 0);
#endif
  // The moved-from handle is empty, so assigning to it unwinds nothing.
  inside_.fiber = std::move(inside_.fiber).resume();
  asan_finish_switch(fake, nullptr, nullptr);
  exceptions_ = std::exchange(*of_thread, saved);
  return ended_;
}

void Fiber::Context::suspend() {
  leave();
  outside_.fiber = std::move(outside_.fiber).resume();
  enter(false);
}

Fiber::Fiber(size_t stack_bytes) : context_(Context::take(stack_bytes)) {}
Fiber::~Fiber() { Context::give(std::move(context_)); }
bool Fiber::resume() { return context_->resume(*this); }
void Fiber::suspend() { context_->suspend(); }

}  // namespace chorale::fibers
