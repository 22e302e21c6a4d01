#include "sm_copy_fibers.hpp"

#include <algorithm>
#include <exception>

#include "executor/fibers/fiber.hpp"
#include "executor/system/thrown.hpp"

namespace chorale::schedule_run {

class SmCopyFibers::Block final : public fibers::Fiber, public HostBlock {
 public:
  Block() : Fiber(fibers::block_stack_bytes) {}

  void begin(const std::function<Stop(const Group&)>& body, uint32_t id, uint32_t blocks, AbortWord* abort) {
    body_ = &body;
    group_ = block_group(id, blocks, this);
    abort_ = abort;
    ended_ = false;
    stop_ = Stop::none;
    failure_ = nullptr;
  }
  bool ended() const { return ended_; }
  /// Returns true if the fiber waits for nothing.
  bool ready() const { return !ready_ || ready_(state_); }
  void go_on() { ended_ = resume(); }
  Stop stop() const { return stop_; }
  const std::exception_ptr& failure() const { return failure_; }

  void park(bool (*ready)(const void*), const void* state) override {
    ready_ = ready;
    state_ = state;
    suspend();
    ready_ = nullptr;
  }
  void step() override { suspend(); }
  void sync() override {}  // it has one thread
  Stop stopped() override { return Stop(load_acquire(&abort_->stop)); }

 private:
  void run() override {
    try {
      stop_ = (*body_)(group_);
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  const std::function<Stop(const Group&)>* body_ = nullptr;
  Group group_;
  AbortWord* abort_ = nullptr;
  bool (*ready_)(const void*) = nullptr;
  const void* state_ = nullptr;
  bool ended_ = true;
  Stop stop_ = Stop::none;
  std::exception_ptr failure_;
};

SmCopyFibers::SmCopyFibers() = default;
SmCopyFibers::~SmCopyFibers() = default;
SmCopyFibers::SmCopyFibers(SmCopyFibers&&) noexcept = default;

Stop SmCopyFibers::run(uint32_t blocks, const std::function<Stop(const Group&)>& body, AbortWord* abort,
                       SmCopyHost& host, const std::function<void(const std::string& why)>& failed) {
  while (blocks_.size() < blocks) blocks_.push_back(std::make_unique<Block>());
  std::vector<Block*> mine;
  for (uint32_t id = 0; id < blocks; ++id) {
    mine.push_back(blocks_[id].get());
    mine.back()->begin(body, id, blocks, abort);
  }
  const auto any_ready = [](const void* state) {
    const auto& all = *static_cast<const std::vector<Block*>*>(state);
    return std::any_of(all.begin(), all.end(),
                       [](const Block* one) { return !one->ended() && one->ready(); });
  };
  for (;;) {
    bool left = false, moved = false;
    for (Block* const one : mine) {
      if (one->ended()) continue;
      left = true;
      if (!one->ready() && load_acquire(&abort->stop) == 0) continue;
      moved = true;
      host.step();
      one->go_on();
      if (!one->failure()) continue;
      try {
        std::rethrow_exception(one->failure());
      } catch (...) {
        failed(system::thrown_text());
      }
    }
    if (!left) break;
    if (!moved) host.wait(any_ready, &mine);
  }
  Stop stop = Stop::none;
  for (const Block* const one : mine) {
    if (one->failure()) return Stop::aborted;
    stop = std::max(stop, one->stop());
  }
  return stop;
}

}  // namespace chorale::schedule_run
