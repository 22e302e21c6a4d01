#include "queue_thread.hpp"

#include <sched.h>

#include <chrono>
#include <memory>
#include <utility>

#include "executor/system/thread.hpp"

namespace chorale::fibers {

QueueThread::QueueThread(const char* what, unsigned looks, std::function<bool()> take,
                         std::function<void()> drop, Elsewhere elsewhere)
    : looks_(looks), take_(std::move(take)), drop_(std::move(drop)), elsewhere_(std::move(elsewhere)) {
  thread_ = system::start_thread(what, [this] { serve(); });
}

QueueThread::~QueueThread() {
  if (origin_.forked()) {
    system::keep_for_ever(std::make_shared<std::thread>(std::move(thread_)));
    return;
  }
  ask(quitting);
  thread_.join();
}

void QueueThread::ask(State state) {
  state_.store(state, std::memory_order_release);
  state_.notify_all();
  if (elsewhere_.wake) elsewhere_.wake();
}

void QueueThread::begin() { ask(running); }

void QueueThread::end(bool stopped) {
  const State wanted = stopped ? dropping : draining;
  ask(wanted);
  state_.wait(wanted, std::memory_order_acquire);
}

/// Yields the core, because the blocks may need it.
void QueueThread::pause(unsigned& looks) const {
  if (++looks < looks_) {
    sched_yield();
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void QueueThread::serve() {
  unsigned looks = 0;
  for (;;) {
    const uint32_t state = state_.load(std::memory_order_acquire);
    if (state == quitting) return;
    if (state == idle) {
      if (elsewhere_.rest) {
        elsewhere_.rest();
      } else {
        state_.wait(idle, std::memory_order_acquire);
      }
      looks = 0;
      continue;
    }
    if (state != dropping && take_()) {
      looks = 0;
      continue;
    }
    if (state == running || (state == draining && elsewhere_.settled && !elsewhere_.settled())) {
      pause(looks);
      continue;
    }
    if (state == dropping) drop_();
    ask(idle);
  }
}

}  // namespace chorale::fibers
