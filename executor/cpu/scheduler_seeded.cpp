// One thread, and every choice drawn from a seed.

#include <sched.h>

#include "chorale/splitmix64.hpp"
#include "scheduler_impl.hpp"

namespace chorale::cpu {
namespace {

/// The application's code runs on it; pages that it does not touch cost nothing.
constexpr size_t rank_stack_bytes = 1 << 20;

class Draw : public SplitMix64 {
 public:
  using SplitMix64::SplitMix64;
  size_t below(size_t limit) { return size_t((*this)() % limit); }
};

class SeededScheduler;

class SeededBlock : public BlockTask {
 public:
  explicit SeededBlock(SeededScheduler& scheduler);
  void step() override;

  /// As RankTask::park(), for a block that launches; a stop does not end it.
  void park_through_stops(Ready until, const void* of) {
    obey_stop = false;
    park_until(until, of);
    obey_stop = true;
  }

 private:
  Draw& draw_;
};

/// A rank's body.
class RankTask : public Task {
 public:
  explicit RankTask(std::function<void()> body) : Task(rank_stack_bytes), body_(std::move(body)) {}
  void park(Ready until, const void* of, bool obey) {
    obey_stop = obey;
    park_until(until, of);
  }

 private:
  void run() override { body_(); }
  std::function<void()> body_;
};

class SeededScheduler : public SchedulerImpl {
 public:
  explicit SeededScheduler(Scheduler::Options options)
      : SchedulerImpl(std::move(options)), draw(*options_.seed) {}

  void run_seeded(std::vector<std::function<void()>> bodies) override {
    std::vector<std::unique_ptr<RankTask>> ranks;
    for (auto& body : bodies) ranks.push_back(std::make_unique<RankTask>(std::move(body)));
    tasks_.reserve(ranks.size());
    for (auto& rank : ranks) tasks_.push_back({rank.get(), rank.get(), nullptr});
    while (!tasks_.empty()) run_one();
  }

  LaunchResult launch(int rank, int blocks, const Body& body, const Describe& describe) override {
    if (stopped() != Stop::none) return {stopped(), {}};
    Launch launch;
    launch.rank = rank;
    launch.body = &body;
    launch.describe = &describe;
    launch.remaining = blocks;
    launch.deadline = deadline();
    try {
      make_room(size_t(blocks));
    } catch (const std::exception& error) {
      cannot_launch(rank, blocks, error);
      throw;
    }
    for (int block = 0; block < blocks; ++block) {
      std::unique_ptr<SeededBlock> task = pool_.take();
      task->begin(launch, block);
      tasks_.push_back({task.get(), nullptr, std::move(task)});
    }
    launches_.push_back(&launch);
    const Ready ended = [](const void* of) { return static_cast<const Launch*>(of)->remaining.load() == 0; };
    if (block_) {
      block_->park_through_stops(ended, &launch);
    } else {
      running_->park(ended, &launch, false);
    }
    launches_.erase(std::find(launches_.begin(), launches_.end(), &launch));
    if (launch.error) std::rethrow_exception(launch.error);
    LaunchResult result{stopped(), {}};
    if (result.stop != Stop::none) result.stuck = stuck_;
    return result;
  }

  bool wait(Ready ready, const void* state, bool obey_stop) override {
    running_->park(ready, state, obey_stop);
    return ready(state);
  }

  void end_rank(int) override {}

  void rearm() override {
    recorded_ = false;
    stuck_.clear();
  }

  Draw draw;

 private:
  struct Entry {
    Task* task;
    RankTask* rank;                      // if it is one
    std::unique_ptr<SeededBlock> block;  // if it is one
  };

  /// All of a launch that may fail, before anything of it is among the tasks.
  void make_room(size_t blocks) {
    pool_.reserve(blocks, *this);
    tasks_.reserve(tasks_.size() + blocks);
    launches_.reserve(launches_.size() + 1);
  }

  void run_one() {
    if (++picks_ % 4096 == 0) check_deadlines();
    const bool stopping = stopped() != Stop::none;
    if (stopping && !recorded_) record();
    // Read before looking: an agent writes what a block waits for, and then is no longer busy.
    const bool busy = busy_.load(std::memory_order_acquire) != 0;
    const size_t picked = pick(stopping);
    if (picked == tasks_.size()) return starve(stopping, busy);
    Task* const task = tasks_[picked].task;
    running_ = tasks_[picked].rank;
    block_ = tasks_[picked].block.get();
    if (task->resume()) end(picked);  // launch() may have moved the entries, not their order
  }

  size_t pick(bool stopping) {
    // A few free draws first: a scan alone would favour whoever sits behind a row of parked ones.
    for (int tries = 0; tries < 4; ++tries) {
      const size_t at = draw.below(tasks_.size());
      if (tasks_[at].task->runnable(stopping)) return at;
    }
    const size_t start = draw.below(tasks_.size());
    for (size_t step = 0; step < tasks_.size(); ++step) {
      const size_t at = (start + step) % tasks_.size();
      if (tasks_[at].task->runnable(stopping)) return at;
    }
    return tasks_.size();
  }

  void end(size_t at) {
    Entry ended = std::move(tasks_[at]);
    tasks_[at] = std::move(tasks_.back());
    tasks_.pop_back();
    if (ended.block) {
      --ended.block->launch().remaining;
      pool_.give(std::move(ended.block));
    }
  }

  /// Nothing can run.
  void starve(bool stopping, bool busy) {
    if (busy) {
      check_deadlines();
      sched_yield();
    } else if (!stopping) {
      deadlock(0, "every rank and every block waits for another", look());
    } else {
      // Waits that a stop does not end, and that nobody is left to end.
      for (Entry& entry : tasks_) entry.task->obey_stop = true;
    }
  }

  void check_deadlines() {
    const Clock::time_point now = Clock::now();
    for (const Launch* launch : launches_) {
      if (now > launch->deadline) return time_out(launch->rank, look());
    }
  }

  void record() {
    recorded_ = true;
    stuck_ = look();
    sort_by_rank(stuck_);
  }

  std::vector<Stuck> look() const {
    std::vector<Stuck> seen;
    for (const Entry& entry : tasks_) {
      if (entry.block) seen.push_back(entry.block->report());
    }
    return seen;
  }

  TaskPool<SeededBlock> pool_;
  std::vector<Entry> tasks_;
  std::vector<Launch*> launches_;
  RankTask* running_ = nullptr;   // the rank whose body runs, null while a block runs
  SeededBlock* block_ = nullptr;  // the block that runs, null while a rank's body runs
  std::vector<Stuck> stuck_;
  bool recorded_ = false;
  uint64_t picks_ = 0;
};

SeededBlock::SeededBlock(SeededScheduler& scheduler) : BlockTask(scheduler), draw_(scheduler.draw) {}

void SeededBlock::step() {
  if (draw_() % 4 == 0) park_until(nullptr, nullptr);
}

}  // namespace

std::unique_ptr<SchedulerImpl> make_seeded(Scheduler::Options options) {
  return std::make_unique<SeededScheduler>(std::move(options));
}

}  // namespace chorale::cpu
