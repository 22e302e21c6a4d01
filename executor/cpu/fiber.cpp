#include "fiber.hpp"

#include <cxxabi.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <boost/context/preallocated.hpp>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "chorale/error.hpp"
#include "sanitizers.hpp"

#if defined(CHORALE_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(CHORALE_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace chorale::cpu {
namespace {

/// The stack is ours: nothing to free when boost thinks that it is done with it.
struct KeepStack {
  void deallocate(boost::context::stack_context&) {}
};

const size_t page_bytes = size_t(sysconf(_SC_PAGESIZE));

}  // namespace

Fiber::Fiber(size_t stack_bytes) {
  mapped_bytes_ = (stack_bytes + page_bytes - 1) / page_bytes * page_bytes + page_bytes;
  void* memory = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, page_bytes, PROT_NONE) != 0) {
    const int error = errno;
    if (memory != MAP_FAILED) munmap(memory, mapped_bytes_);
    throw RunError(RunError::Reason::resources,
                   fmt::format("no memory for a block's stack of {} bytes: {}; use fewer blocks, or raise "
                               "vm.max_map_count or the limit of address space (ulimit -v)",
                               stack_bytes, std::strerror(error)));
  }
  stack_ = static_cast<std::byte*>(memory);
#if defined(CHORALE_TSAN)
  tsan_inside_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#if defined(CHORALE_TSAN)
  __tsan_destroy_fiber(tsan_inside_);
#endif
#if defined(CHORALE_ASAN)
  // Frames that never returned left their redzones marked, and the addresses will be used again.
  __asan_unpoison_memory_region(stack_ + page_bytes, mapped_bytes_ - page_bytes);
#endif
  munmap(stack_, mapped_bytes_);
}

// Not inlined, so that no caller keeps the address of one thread's words while it moves to another thread.
[[gnu::noinline]] Fiber::Exceptions* Fiber::exceptions_of_thread() {
  return reinterpret_cast<Exceptions*>(abi::__cxa_get_globals());
}

/// First thing on the fiber after a switch to it.
inline void Fiber::enter([[maybe_unused]] bool first) {
#if defined(CHORALE_ASAN)
  __sanitizer_finish_switch_fiber(first ? nullptr : asan_fake_, &asan_outside_bottom_, &asan_outside_bytes_);
#endif
}

/// Last thing on the fiber before a switch away from it.
inline void Fiber::leave() {
#if defined(CHORALE_ASAN)
  __sanitizer_start_switch_fiber(&asan_fake_, asan_outside_bottom_, asan_outside_bytes_);
#endif
#if defined(CHORALE_TSAN)
  __tsan_switch_to_fiber(tsan_outside_, 0);
#endif
}

void Fiber::start() {
  boost::context::stack_context stack;
  stack.size = mapped_bytes_ - page_bytes;
  stack.sp = stack_ + mapped_bytes_;
  auto loop = [this](boost::context::fiber&& from) -> boost::context::fiber {
    new (&outside_.fiber) boost::context::fiber(std::move(from));
    enter(true);
    for (;;) {
      run();
      ended_ = true;
      suspend();
    }
  };
  new (&inside_.fiber) boost::context::fiber(
      std::allocator_arg, boost::context::preallocated(stack.sp, stack.size, stack), KeepStack{}, loop);
  started_ = true;
}

bool Fiber::resume() {
  if (!started_) start();
  ended_ = false;
  Exceptions* const of_thread = exceptions_of_thread();
  const Exceptions saved = std::exchange(*of_thread, exceptions_);
#if defined(CHORALE_ASAN)
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, stack_ + page_bytes, mapped_bytes_ - page_bytes);
#endif
#if defined(CHORALE_TSAN)
  tsan_outside_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(tsan_inside_, 0);
#endif
  // The moved-from handle is empty, so assigning to it unwinds nothing.
  inside_.fiber = std::move(inside_.fiber).resume();
#if defined(CHORALE_ASAN)
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
  exceptions_ = std::exchange(*of_thread, saved);
  return ended_;
}

void Fiber::suspend() {
  leave();
  outside_.fiber = std::move(outside_.fiber).resume();
  enter(false);
}

}  // namespace chorale::cpu
