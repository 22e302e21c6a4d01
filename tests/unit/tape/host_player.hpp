/// \file
/// Plays tapes without a GPU: every thread block of every rank is a fiber, and they take turns. It knows no
/// more of a plan than its tapes, and finds out what a GPU would only suffer from: whole units that are not,
/// places that do not exist, blocks that wait for ever.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "data_steps.hpp"
#include "executor/cpu/fiber.hpp"
#include "tape_rank.hpp"

namespace chorale::test {

class HostPlayer {
 public:
  /// Elements are int32_t. `ended(rank)` says after each launch of a rank whether there is to be one more; it
  /// has by then taken the result and brought new data.
  HostPlayer(std::vector<TapeRank>& ranks, PacketForm packet, uint64_t seed,
             std::function<bool(uint32_t)> ended)
      : ranks_(ranks),
        packet_(packet),
        random_(seed),
        ended_(std::move(ended)),
        running_(ranks.size(), true) {
    for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
      proxies_.emplace_back(ranks[rank].places.signals_at_peer.size());
      for (uint32_t block = 0; block < ranks[rank].blocks; ++block) {
        blocks_.push_back(std::make_unique<Block>(*this, rank, block));
      }
    }
  }

  /// \return what went wrong first; empty if nothing did
  std::string play() {
    std::vector<bool> slow(ranks_.size());
    for (uint64_t round = 0;; ++round) {
      if (round % 64 == 0) {
        for (size_t rank = 0; rank < slow.size(); ++rank) slow[rank] = random_() % 3 == 0;
      }
      bool moved = false, skipped = false;
      for (const auto& block : blocks_) {
        if (!running_[block->rank] || block->done || !block->may_run()) continue;
        if (slow[block->rank] && random_() % 16 != 0) {
          skipped = true;
          continue;
        }
        moved = true;
        block->done = block->resume();
      }
      for (uint32_t rank = 0; rank < ranks_.size(); ++rank) moved |= end_launch(rank);
      for (Proxy& proxy : proxies_) {
        if (!proxy.triggers.empty()) skipped = true;
        if (!proxy.triggers.empty() && random_() % 2 == 0) serve(proxy);
      }
      if (moved || skipped) continue;
      if (std::none_of(running_.begin(), running_.end(), [](bool one) { return one; })) return wrong_;
      if (stop_ != Stop::none) return wrong_;
      note("all blocks wait: " + waiting());
      stop_ = Stop::deadlock;  // they leave, in the next round
    }
  }

 private:
  /// Holds a task that a rank's port channel was given and has not done.
  struct Trigger {
    uint32_t channel;
    Mem from, to;
    uint64_t bytes;
    bool signal;
    TapeRank* rank;
  };
  struct Proxy {
    explicit Proxy(size_t channels) : done(channels) {}
    std::deque<Trigger> triggers;
    std::vector<uint64_t> done;
  };

  struct Block final : cpu::Fiber, HostBlock {
    Block(HostPlayer& player, uint32_t rank, uint32_t block)
        : Fiber(128 << 10), player(player), rank(rank), block(block) {}

    bool may_run() const { return !ready || ready(state) || player.stop_ != Stop::none; }
    void park(bool (*is_ready)(const void*), const void* of) override {
      ready = is_ready;
      state = of;
      suspend();
      ready = nullptr;
    }
    void sync() override {}
    void step() override {
      if (player.random_() % 8 == 0) suspend();
    }
    Stop stopped() override { return player.stop_; }

    void run() override {
      switch (player.packet_) {
        case PacketForm::ll8:
          return player.play_block<LL8>(*this);
        case PacketForm::ll16:
          return player.play_block<LL16>(*this);
        case PacketForm::ll128:
          return player.play_block<LL128>(*this);
      }
    }

    HostPlayer& player;
    const uint32_t rank, block;
    bool done = false;
    uint32_t op = 0;
    bool (*ready)(const void*) = nullptr;
    const void* state = nullptr;
  };

  bool end_launch(uint32_t rank) {
    if (!running_[rank]) return false;
    for (const auto& block : blocks_) {
      if (block->rank == rank && !block->done) return false;
    }
    running_[rank] = ended_(rank) && stop_ == Stop::none;
    for (const auto& block : blocks_) {
      if (block->rank == rank) block->done = false;
    }
    return true;
  }

  void serve(Proxy& proxy) {
    const Trigger of = proxy.triggers.front();
    proxy.triggers.pop_front();
    if (of.bytes != 0) std::memmove(of.to.data, of.from.data, of.bytes);
    Signal* const there = of.rank->places.signals_at_peer[of.channel];
    if (of.signal && there) add_release(&there->value, uint64_t(1));
    const Signal* const completed = of.rank->places.completed + of.channel;
    store_release(&const_cast<Signal*>(completed)->value, ++proxy.done[of.channel]);
  }

  void note(const std::string& what) {
    if (wrong_.empty()) wrong_ = what;
  }
  std::string waiting() const {
    std::string all;
    for (const auto& block : blocks_) {
      if (!running_[block->rank] || block->done) continue;
      all += "rank " + std::to_string(block->rank) + " block " + std::to_string(block->block) +
             " operation " + std::to_string(block->op) + "; ";
    }
    return all;
  }

  /// The steps of a batch run side by side on a GPU: here, in any order.
  std::vector<uint32_t> order_of(const SettledPage& page) {
    std::vector<uint32_t> order(page.header.steps);
    std::iota(order.begin(), order.end(), 0u);
    for (uint32_t step = 0; step < order.size(); step += std::max<uint32_t>(page.steps[step].batch, 1)) {
      const auto first = order.begin() + step;
      std::shuffle(first, first + std::max<uint32_t>(page.steps[step].batch, 1), random_);
    }
    return order;
  }

  template <class P>
  void play_block(Block& block) {
    TapeRank& rank = ranks_[block.rank];
    const cuda::Tapes& tapes = rank.tapes;
    auto* const state =
        reinterpret_cast<cuda::BlockState*>(rank.states.data() + block.block * tapes.state_bytes);
    const uint64_t epoch = state->epoch + 1, slots = (tapes.state_bytes - sizeof *state) / sizeof(uint64_t);
    const char* at = tapes.bytes.data() + uint64_t(block.block) * tapes.pages * tapes.page.bytes();
    for (uint32_t turn = 0; turn < tapes.pages; ++turn, at += tapes.page.bytes()) {
      const SettledPage page(tapes.page, at, epoch, rank.in, rank.out, rank.skip);
      std::vector<Packets<P>> packets;
      for (char* slot : page.packets) packets.emplace_back(static_cast<void*>(slot), uint32_t(epoch));
      for (const uint32_t step : order_of(page)) {
        block.op = page.steps[step].op;
        const Stop stop = page.steps[step].kind < cuda::TapeKind::copy
                              ? run_control(block, rank, page, page.steps[step], state->counts(), slots)
                              : run_data<P>(note_, block, rank, page, packets, page.steps[step]);
        if (stop != Stop::none) return;
      }
      if (page.header.more == 0) break;
    }
    state->epoch = epoch;
  }

  Stop run_control(Block& block, TapeRank& rank, const SettledPage& page, const cuda::TapeStep& step,
                   uint64_t* counts, uint64_t slots) {
    const Group group = block_group(0, 1, &block);
    for (uint32_t at = 0; at < step.n; ++at) {
      const cuda::TapeItem& item = page.items[step.first_item + at];
      Stop stop = Stop::none;
      const auto wait = [&](const uint64_t* word, uint64_t goal) {
        stop = spin_until(group, {}, [word, goal] { return load_acquire(word) >= goal; });
      };
      group.step();
      switch (step.kind) {
        case cuda::TapeKind::post:
        case cuda::TapeKind::post_relaxed:
          add_release(&item.post.at_peer->value, uint64_t(1));
          break;
        case cuda::TapeKind::await:
        case cuda::TapeKind::await_relaxed:
          if (!item.await.expected && item.await.slot >= slots)
            note("a count that the block's state has no room for");
          wait(&item.await.mine->value,
               1 + add_relaxed(item.await.expected ? item.await.expected : counts + item.await.slot,
                               uint64_t(1)));
          break;
        case cuda::TapeKind::drain:
          wait(&item.drain.completed->value, load_relaxed(item.drain.pushed));
          break;
        case cuda::TapeKind::push: {
          const bool data = item.push.from != ~0u;
          add_relaxed(item.push.pushed, uint64_t(1));
          proxies_[block.rank].triggers.push_back(
              {item.push.channel, data ? page.plain[item.push.from] : Mem(),
               data ? page.plain[item.push.to] : Mem(), data ? step.bytes : 0, item.push.signal != 0, &rank});
          break;
        }
        case cuda::TapeKind::acquire:
          stop = semaphore_acquire(group, item.permit.semaphore);
          break;
        case cuda::TapeKind::release:
          add_release(&item.permit.semaphore->permits, uint64_t(1));
          break;
        case cuda::TapeKind::barrier: {
          const uint64_t all = item.meeting.participants;
          const uint64_t ticket = add_acq_rel(&item.meeting.word->value, uint64_t(1));
          wait(&item.meeting.word->value, (ticket / all + 1) * all);
          break;
        }
        default:
          break;
      }
      if (stop != Stop::none) return stop;
    }
    return Stop::none;
  }

  std::vector<TapeRank>& ranks_;
  const PacketForm packet_;
  std::mt19937_64 random_;
  std::function<bool(uint32_t)> ended_;
  std::vector<bool> running_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<Proxy> proxies_;
  Stop stop_ = Stop::none;
  std::string wrong_;
  const Note note_ = [this](const std::string& what) { note(what); };
};

}  // namespace chorale::test
