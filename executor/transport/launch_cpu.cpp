#include "chorale/launch_cpu.hpp"

#include <fmt/format.h>

#include <atomic>
#include <memory>
#include <new>
#include <vector>

#include "executor/fibers/scheduler.hpp"
#include "executor/system/thrown.hpp"
#include "executor/world/group.hpp"
#include "proxied.hpp"

namespace chorale {
namespace {

/// Represents a barrier of the threads of a block, or of a part of a block.
struct BlockBarrier {
  uint64_t arrived = 0;  // threads at the current barrier; 0 between barriers, so their sizes may differ
  uint64_t held = 0;     // the number of completed barriers
  uint64_t cell[2] = {0, 0};
};

/// Holds the state that the threads of a block share.
struct Block {
  explicit Block(uint32_t threads) : threads(threads), parts(threads) {}

  const uint32_t threads;
  std::atomic<uint32_t> ended{0};
  BlockBarrier whole;
  std::vector<BlockBarrier> parts;  // parts of one size at a time
};

std::vector<std::unique_ptr<Block>> make_blocks(uint32_t blocks, uint32_t threads) {
  try {
    std::vector<std::unique_ptr<Block>> made;  // freed before the error's text needs memory
    for (uint32_t block = 0; block < blocks; ++block) made.push_back(std::make_unique<Block>(threads));
    return made;
  } catch (const std::bad_alloc&) {
    throw RunError(RunError::Reason::resources,
                   fmt::format("a launch of {} blocks of {} threads failed: no memory for the state that the "
                               "threads of a block share; use fewer",
                               blocks, threads));
  }
}

/// Represents one thread of a block with several threads. Each thread has a separate fiber.
class Thread final : public HostBlock {
 public:
  Thread(fibers::BlockHost& fiber, Block& block, BlockBarrier& barrier, uint32_t rank, uint32_t threads)
      : fiber_(fiber), block_(block), barrier_(barrier), rank_(rank), threads_(threads) {
    cell = barrier.cell;
  }

  void park(bool (*ready)(const void*), const void* state) override { fiber_.park(ready, state); }
  void step() override { fiber_.step(); }
  Stop stopped() override { return fiber_.stopped(); }

  /// In a stopped world, threads still complete the barrier, so that all of them leave a wait with the same
  /// verdict. They give up only if a thread of the block has already ended, which should not happen.
  void sync() override {
    const struct {
      const uint64_t* held;
      uint64_t before;
    } all{&barrier_.held, load_relaxed(&barrier_.held)};
    if (add_acq_rel(&barrier_.arrived, uint64_t{1}) + 1 == threads_) {
      store_relaxed(&barrier_.arrived, uint64_t{0});  // before any thread can reach the next barrier
      store_release(&barrier_.held, all.before + 1);
      return;
    }
    const auto here = [](const void* state) -> bool {
      const auto& of = *static_cast<const decltype(all)*>(state);
      return load_acquire(of.held) != of.before;
    };
    while (!here(&all)) {
      if (fiber_.stopped() != Stop::none && block_.ended.load(std::memory_order_acquire) != 0) return;
      fiber_.park_at_barrier(here, &all);
    }
  }

  /// Parts are kept until the thread ends, because a kernel may use a group while a collective makes other
  /// groups.
  HostBlock* part(uint32_t threads) override {
    for (const std::unique_ptr<Thread>& part : parts_) {
      if (part->threads_ == threads) return part.get();
    }
    parts_.push_back(
        std::make_unique<Thread>(fiber_, block_, block_.parts[rank_ / threads], rank_ % threads, threads));
    return parts_.back().get();
  }

 private:
  fibers::BlockHost& fiber_;
  Block& block_;
  BlockBarrier& barrier_;
  const uint32_t rank_, threads_;
  std::vector<std::unique_ptr<Thread>> parts_;  // one per size
};

/// Describes the state of the links of a block that hangs.
std::string describe(const Transport& transport, const LaunchName& name, const fibers::Stuck& stuck,
                     uint32_t threads, uint32_t blocks) {
  const uint32_t block = uint32_t(stuck.block) / threads;
  std::string text = fmt::format("  rank {} ", stuck.rank);
  if (block >= blocks) return text + "proxy";
  text += fmt::format("block {}", block);
  if (threads > 1) text += fmt::format(" thread {}", uint32_t(stuck.block) % threads);
  text += fmt::format(" of {}", name.what);
  if (name.of_block) return text + " " + name.of_block(block);
  if (block >= transport.max_channels()) return text;
  const auto positions = [&](const char* word, int peer, bool sends) {
    if (peer < 0) return;
    const LinkState& link = *transport.endpoint(peer, block).local;
    text += fmt::format(" {} rank {}, channel {}: ", word, peer, block);
    text += sends ? fmt::format("the peer has read up to byte {}", load_relaxed(&link.slot_free.value))
                  : fmt::format("the peer's data has arrived up to byte {}",
                                load_relaxed(&link.data_ready.value));
  };
  positions("to", name.to, true);
  positions("from", name.from, false);
  return text;
}

const char* name_of(Stop stop) {
  switch (stop) {
    case Stop::none:
      return "none";
    case Stop::timed_out:
      return "timed_out";
    case Stop::aborted:
      return "aborted";
    case Stop::deadlock:
      return "deadlock";
    case Stop::peer_lost:
      return "peer_lost";
  }
  return "unknown";
}

/// Stops the world because a block returned `stop`, as on CUDA. Otherwise peers would wait for this block,
/// and its leftovers in the links would be taken for data. If the world has already stopped, this has no
/// effect.
void raise_stop_of(World& world, const LaunchName& name, uint32_t block, Stop stop) {
  world.group().raise(
      stop, world.rank(),
      fmt::format(
          "block {} of {} at rank {} has returned Stop::{} while the world ran{}; call World::reset() and "
          "Transport::reset() on all ranks to clear the links",
          block, name.what, world.rank(), name_of(stop),
          stop == Stop::timed_out ? ": a wait reached a deadline that the kernel set" : ""));
}

}  // namespace

void detail::run_kernel(Transport& transport, const LaunchConfig& config, const LaunchName& name,
                        const std::function<Stop(const Group&, const Deadline&)>& kernel) {
  if (transport.space() == Space::device) {
    throw UsageError(
        "this transport is in device memory: launch from a CUDA source, with chorale/launch.cuh");
  }
  const uint32_t threads = config.threads == 0 ? 1 : config.threads;
  if (config.blocks == 0) throw UsageError("the launch has 0 blocks, expected at least 1");
  if (threads > 1024)
    throw UsageError(fmt::format("the launch has blocks of {} threads, expected at most 1024", threads));
  constexpr uint64_t most_fibers = uint64_t{1} << 30;
  if (uint64_t(config.blocks) * threads > most_fibers) {
    throw UsageError(fmt::format(
        "the launch has {} blocks of {} threads, expected at most {} threads in all: use fewer blocks",
        config.blocks, threads, most_fibers));
  }
  World& world = transport.world();
  fibers::Scheduler& scheduler = world.scheduler();
  scheduler.check_caller();
  const Transport::Use use(transport, nullptr);

  std::vector<std::unique_ptr<Block>> blocks;  // only for blocks with several threads
  const std::vector<Proxied*> proxies = transport.proxies();
  const int fibers = int(config.blocks * threads);
  const int beside = scheduler.seeded() ? int(proxies.size()) : 0;
  std::atomic<int> left{fibers};
  std::atomic<bool> gave_up{false};
  const Deadline deadline{world.abort_word(), 0, 0};

  const auto run_thread = [&](uint32_t at, fibers::BlockHost& host) -> Stop {
    Group group = block_group(at / threads, config.blocks, &host);
    if (threads == 1) return kernel(group, deadline);
    Block& block = *blocks[at / threads];
    Thread thread(host, block, block.whole, at % threads, threads);
    struct End {
      Block& block;
      ~End() { block.ended.fetch_add(1, std::memory_order_release); }
    } const end{block};
    group.host = &thread;
    group.rank = at % threads;
    group.size = threads;
    return kernel(group, deadline);
  };
  const auto body = [&](int at, fibers::BlockHost& host) {
    if (at >= fibers) return proxies[size_t(at - fibers)]->run_fiber(host, left);
    struct Leave {
      std::atomic<int>& left;
      ~Leave() { left.fetch_sub(1, std::memory_order_release); }
    } const leave{left};
    const Stop stop = run_thread(uint32_t(at), host);
    if (stop == Stop::none) return;
    gave_up.store(true, std::memory_order_relaxed);
    raise_stop_of(world, name, uint32_t(at) / threads, stop);
  };

  const auto end_proxies = [&proxies](bool stopped) {
    for (Proxied* proxy : proxies) proxy->end(stopped);
  };
  for (Proxied* proxy : proxies) proxy->begin();
  bool stopped = true;
  try {
    if (threads > 1) blocks = make_blocks(config.blocks, threads);
    const fibers::LaunchResult result = scheduler.launch(
        world.rank(), fibers + beside, body,
        [&](const fibers::Stuck& stuck) { return describe(transport, name, stuck, threads, config.blocks); });
    stopped = result.stop != Stop::none || gave_up.load(std::memory_order_relaxed);
  } catch (...) {
    // Otherwise peers would wait for this rank, which has launched nothing. If the world has already stopped,
    // abort() has no effect.
    world.abort(system::thrown_text());
    transport.set_broken();
    end_proxies(true);
    throw;
  }
  end_proxies(stopped);
  // Blocks may have ended normally, but a stop may have lost orders that they gave to a proxy.
  if (stopped || (!proxies.empty() && load_acquire(&world.abort_word()->stop) != 0)) {
    transport.set_broken();
    world.check();
  }
}

}  // namespace chorale
