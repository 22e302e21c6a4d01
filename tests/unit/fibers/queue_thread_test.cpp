// These tests check the thread of a proxy, which works during launches and sleeps between them.

#include "executor/fibers/queue_thread.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <mutex>

#include "chorale/error.hpp"
#include "executor/fibers/sanitizers.hpp"
#include "tests/unit/scarce_memory.hpp"

namespace chorale {
namespace {

/// Holds waiting numbers, and the sum of those that were handled.
class Queue {
 public:
  void push(int number) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(number);
  }
  bool take() {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) return false;
    done_ += waiting_.front();
    waiting_.pop_front();
    return true;
  }
  void drop() {
    const std::lock_guard lock(mutex_);
    waiting_.clear();
  }
  int done() {
    const std::lock_guard lock(mutex_);
    return done_;
  }
  bool empty() {
    const std::lock_guard lock(mutex_);
    return waiting_.empty();
  }

 private:
  std::mutex mutex_;
  std::deque<int> waiting_;
  int done_ = 0;
};

TEST(QueueThread, HasDoneEverythingWhenALaunchEnds) {
  Queue queue;
  fibers::QueueThread thread(
      "a proxy", 10, [&] { return queue.take(); }, [&] { queue.drop(); });
  int sum = 0;
  for (int launch = 0; launch < 50; ++launch) {
    thread.begin();
    for (int number = 0; number < launch; ++number) queue.push(number), sum += number;
    thread.end(false);
    EXPECT_EQ(queue.done(), sum) << launch;
  }
}

TEST(QueueThread, ForgetsTheRestAfterAStop) {
  Queue queue;
  fibers::QueueThread thread(
      "a proxy", 10, [&] { return queue.take(); }, [&] { queue.drop(); });
  thread.begin();
  for (int number = 0; number < 1000; ++number) queue.push(1);
  thread.end(true);
  EXPECT_TRUE(queue.empty());
}

TEST(QueueThread, SaysThatThereIsNoThread) {
#if defined(CHORALE_ASAN) || defined(CHORALE_TSAN)
  GTEST_SKIP() << "shadows of the sanitizers are address space";
#endif
  const test::ScarceMemory scarce(32);
  std::deque<std::unique_ptr<fibers::QueueThread>> threads;
  try {
    // Threads that have ended may have left stacks.
    for (int more = 0; more < 100; ++more)
      threads.push_back(std::make_unique<fibers::QueueThread>(
          "a proxy", 10, [] { return false; }, [] {}));
    FAIL() << "there were threads for all";
  } catch (const RunError& error) {
    EXPECT_EQ(error.reason, RunError::Reason::resources);
    EXPECT_EQ(std::string(error.what()).find("no thread for a proxy: "), 0u) << error.what();
  }
}

}  // namespace
}  // namespace chorale
