// The seeded scheduler has one thread and draws every choice from a seed.

#include <sched.h>

#include <atomic>
#include <thread>
#include <utility>

#include "chorale/splitmix64.hpp"
#include "scheduler_impl.hpp"

namespace chorale::fibers {
namespace {

/// Sets the stack size of a rank. The application's code runs on it, as on the stack of a thread of glibc.
/// Untouched pages cost nothing.
constexpr size_t rank_stack_bytes = 8 << 20;

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

  /// Does what RankTask::park() does, for a block that launches. A stop does not end the wait.
  void park_through_stops(Ready until, const void* of) {
    obey_stop = false;
    park_until(until, of);
    obey_stop = true;
  }

  SeededScheduler& scheduler;

 private:
  Draw& draw_;
};

/// Runs a rank's body.
class RankTask : public Task {
 public:
  explicit RankTask(std::function<void()> body) : Task(rank_stack_bytes), body_(std::move(body)) {}
  void park(SeededScheduler& in, Ready until, const void* of, bool obey) {
    scheduler = &in;
    obey_stop = obey;
    park_until(until, of);
  }

  SeededScheduler* scheduler = nullptr;  ///< the scheduler of the world in which it is parked

 private:
  void run() override { body_(); }
  std::function<void()> body_;
};

/// Holds all fibers of a thread: those of a world and of the worlds made by its survivors(). A draw picks the
/// next fiber to run.
class Fibers {
 public:
  explicit Fibers(uint64_t seed) : draw(seed) {}

  void run(std::vector<std::function<void()>> bodies);

  /// \throws UsageError unless one of the fibers calls
  void check_caller() const;

  /// Makes room for the blocks of a launch, so that add() does not fail.
  void reserve(size_t blocks) { tasks_.reserve(tasks_.size() + blocks); }
  void add(std::unique_ptr<SeededBlock> block) {
    SeededBlock* const task = block.get();
    tasks_.push_back({task, nullptr, std::move(block)});
  }

  /// Returns the unfinished blocks of a world, after each has done its look().
  std::vector<Stuck> look(const SeededScheduler& of) const;

  Draw draw;
  std::vector<SeededScheduler*> schedulers;  ///< one per world
  RankTask* running = nullptr;               ///< the rank whose body runs; null while a block runs
  SeededBlock* block = nullptr;              ///< the block that runs; null while a rank's body runs

 private:
  struct Entry {
    Task* task;
    RankTask* rank;                      // set if the task is a rank
    std::unique_ptr<SeededBlock> block;  // set if the task is a block

    /// Returns the scheduler of the world that the fiber belongs to.
    SeededScheduler& scheduler() const { return block ? block->scheduler : *rank->scheduler; }
    bool runnable() const;
  };

  void run_one();
  size_t pick();
  void end(size_t at);
  void starve(bool busy);
  void check_deadlines();

  std::vector<Entry> tasks_;
  uint64_t picks_ = 0;
  std::atomic<std::thread::id> thread_{};  ///< set during run()
};

class SeededScheduler : public SchedulerImpl {
 public:
  SeededScheduler(Scheduler::Options options, std::shared_ptr<Fibers> fibers)
      : SchedulerImpl(std::move(options)), fibers_(std::move(fibers)) {
    fibers_->schedulers.push_back(this);
  }
  ~SeededScheduler() override { std::erase(fibers_->schedulers, this); }

  const std::shared_ptr<Fibers>& fibers() const { return fibers_; }

  void run_seeded(std::vector<std::function<void()>> bodies) override { fibers_->run(std::move(bodies)); }

  void check_caller() const override { fibers_->check_caller(); }

  LaunchResult run_blocks(int rank, int blocks, const Body& body, const Describe& describe) override {
    check_caller();
    if (stopped() != Stop::none) return {stopped(), {}};
    Launch launch;
    launch.rank = rank;
    launch.body = &body;
    launch.describe = &describe;
    if (fibers_->block) launch.outer = &fibers_->block->launch();
    launch.remaining = blocks;
    start_clock(launch);
    try {
      make_room(size_t(blocks));
    } catch (const std::exception& error) {
      cannot_launch(rank, blocks, error);
      throw;
    }
    for (int block = 0; block < blocks; ++block) {
      std::unique_ptr<SeededBlock> task = pool_.take();
      task->begin(launch, block);
      fibers_->add(std::move(task));
    }
    launches_.push_back(&launch);
    const Ready ended = [](const void* of) { return static_cast<const Launch*>(of)->remaining.load() == 0; };
    if (fibers_->block) {
      fibers_->block->park_through_stops(ended, &launch);
    } else {
      fibers_->running->park(*this, ended, &launch, false);
    }
    launches_.erase(std::find(launches_.begin(), launches_.end(), &launch));
    if (launch.error) std::rethrow_exception(launch.error);
    LaunchResult result{stopped(), {}};
    if (result.stop != Stop::none) result.stuck = stuck_;
    return result;
  }

  bool wait(Ready ready, const void* state, bool obey_stop) override {
    check_caller();
    if (!fibers_->running) {
      throw UsageError(
          "a thread block made a collective call of the world: a block may launch, but only ranks wait for "
          "ranks");
    }
    fibers_->running->park(*this, ready, state, obey_stop);
    return ready(state);
  }

  void end_rank(int) override {}

  void rearm() override {
    recorded_ = false;
    stuck_.clear();
  }

  // --- for Fibers ---

  bool busy() const { return busy_.load(std::memory_order_acquire) != 0; }

  void give_back(std::unique_ptr<SeededBlock> block) {
    --block->launch().remaining;
    pool_.give(std::move(block));
  }

  void check_deadlines() {
    bool any = false;
    for (Launch* const launch : launches_) any |= overdue(*launch);
    if (!any || stopped() != Stop::none) return;
    std::vector<Stuck> seen = fibers_->look(*this);
    const auto found =
        std::find_if(launches_.begin(), launches_.end(), [this](Launch* launch) { return late(*launch); });
    if (found != launches_.end()) time_out((*found)->rank, std::move(seen));
  }

  /// Records the unfinished blocks once per stop, before a block sees it.
  void record() {
    if (recorded_ || stopped() == Stop::none) return;
    recorded_ = true;
    stuck_ = fibers_->look(*this);
    sort_by_rank(stuck_);
  }

  void starve() { deadlock(0, "every rank and every block waits for another", fibers_->look(*this)); }

 private:
  /// Does every step of a launch that may fail, before any of its blocks is among the tasks.
  void make_room(size_t blocks) {
    pool_.reserve(blocks, *this);
    fibers_->reserve(blocks);
    launches_.reserve(launches_.size() + 1);
  }

  const std::shared_ptr<Fibers> fibers_;
  TaskPool<SeededBlock> pool_;
  std::vector<Launch*> launches_;
  std::vector<Stuck> stuck_;
  bool recorded_ = false;
};

SeededBlock::SeededBlock(SeededScheduler& of) : BlockTask(of), scheduler(of), draw_(of.fibers()->draw) {}

void SeededBlock::step() {
  moved();
  if (draw_() % 4 == 0) park_until(nullptr, nullptr);
}

bool Fibers::Entry::runnable() const {
  return !task->ready || task->runnable(scheduler().stopped() != Stop::none);
}

void Fibers::run(std::vector<std::function<void()>> bodies) {
  std::vector<std::unique_ptr<RankTask>> ranks;
  for (auto& body : bodies) ranks.push_back(std::make_unique<RankTask>(std::move(body)));
  tasks_.reserve(ranks.size());
  for (auto& rank : ranks) tasks_.push_back({rank.get(), rank.get(), nullptr});
  struct Running {
    Fibers& fibers;
    explicit Running(Fibers& of) : fibers(of) { fibers.thread_ = std::this_thread::get_id(); }
    ~Running() { fibers.thread_ = std::thread::id(); }
  } const until_the_end(*this);
  while (!tasks_.empty()) run_one();
}

void Fibers::check_caller() const {
  const std::thread::id runs = thread_, calls = std::this_thread::get_id();
  if (runs == calls) return;
  if (runs == std::thread::id()) {
    throw UsageError(
        "a world with a seed was used when run_local() had returned: its ranks wait and launch only while "
        "run_local() runs them; use the world within the body, or set no seed (CHORALE_SEED, "
        "LocalOptions::seed)");
  }
  throw UsageError(
      "a world with a seed was used by a thread other than that of run_local(): its ranks are fibers of that "
      "thread alone; make the call in the rank's body itself, or set no seed (CHORALE_SEED, "
      "LocalOptions::seed)");
}

void Fibers::run_one() {
  if (++picks_ % 4096 == 0) check_deadlines();
  for (SeededScheduler* const one : schedulers) one->record();
  // Read this before looking at the blocks: an agent writes what a block waits for before it stops being
  // busy.
  const bool busy = std::any_of(schedulers.begin(), schedulers.end(),
                                [](const SeededScheduler* one) { return one->busy(); });
  const size_t picked = pick();
  if (picked == tasks_.size()) return starve(busy);
  Task* const task = tasks_[picked].task;
  running = tasks_[picked].rank;
  block = tasks_[picked].block.get();
  if (task->resume()) end(picked);  // launch() may have moved the entries, but not their order
}

size_t Fibers::pick() {
  // Try a few free draws first: a scan alone would favour the fiber after a row of parked ones.
  for (int tries = 0; tries < 4; ++tries) {
    const size_t at = draw.below(tasks_.size());
    if (tasks_[at].runnable()) return at;
  }
  const size_t start = draw.below(tasks_.size());
  for (size_t step = 0; step < tasks_.size(); ++step) {
    const size_t at = (start + step) % tasks_.size();
    if (tasks_[at].runnable()) return at;
  }
  return tasks_.size();
}

void Fibers::end(size_t at) {
  Entry ended = std::move(tasks_[at]);
  tasks_[at] = std::move(tasks_.back());
  tasks_.pop_back();
  if (!ended.block) return;
  SeededScheduler& scheduler = ended.block->scheduler;
  scheduler.give_back(std::move(ended.block));
}

/// Handles the state in which nothing can run.
void Fibers::starve(bool busy) {
  if (busy) {
    check_deadlines();
    sched_yield();
    return;
  }
  bool stops = false;
  for (const Entry& entry : tasks_) {
    if (entry.scheduler().stopped() != Stop::none) continue;
    entry.scheduler().starve();
    stops = true;
  }
  if (stops) return;
  // End the waits that a stop does not end, because no fiber is left to end them.
  for (Entry& entry : tasks_) entry.task->obey_stop = true;
}

void Fibers::check_deadlines() {
  for (SeededScheduler* const one : schedulers) one->check_deadlines();
}

std::vector<Stuck> Fibers::look(const SeededScheduler& of) const {
  std::vector<Stuck> seen;
  for (const Entry& entry : tasks_) {
    if (!entry.block || &entry.block->scheduler != &of) continue;
    entry.block->look();
    seen.push_back(entry.block->report());
  }
  return seen;
}

}  // namespace

std::unique_ptr<Scheduler> make_seeded(Scheduler::Options options, const Scheduler* fibers_of) {
  std::shared_ptr<Fibers> fibers = fibers_of ? static_cast<const SeededScheduler*>(fibers_of)->fibers()
                                             : std::make_shared<Fibers>(*options.seed);
  return std::make_unique<SeededScheduler>(std::move(options), std::move(fibers));
}

}  // namespace chorale::fibers
