// This file makes steps of items. The rules below are those of the import, read backwards:
//   receive S; x + S -> d; send d      becomes    rrcs x -> d    (rrc without the send)
//   receive S; x + S -> S; send S      becomes    rrs x
//   receive S; copy S -> d; send S     becomes    rcs d          (r without the send)
//   receive d; send d                  becomes    rcs d
// In the first three, S are chunks of scratch that nothing else accesses. MSCCL keeps a message in a buffer
// of its connection instead, so S is no part of the algorithm.

#include <algorithm>
#include <optional>

#include "compiler/plan/report.hpp"
#include "export.hpp"

namespace chorale::msccl {
namespace {

using Kind = Item::Kind;

class StepMaker {
 public:
  StepMaker(const RankItems& items, const Plan& plan, uint32_t rank, Algorithm& algorithm, Diagnostics& out)
      : items_(items),
        algorithm_(algorithm),
        gpu_(algorithm.gpus[rank]),
        rank_(rank),
        report_("export", out),
        accesses_(plan.gpus[rank].chunks[size_t(BufferKind::scratch)], 0),
        slots_(accesses_.size(), false),
        released_(items.events),
        waits_(items.blocks.size()) {}

  void run() {
    for (const BlockItems& block : items_.blocks) {
      for (const Item& item : block.items) {
        for (const Region* region : {&item.source, &item.other, &item.destination}) {
          if (!(item.kind == Kind::send && region == &item.destination)) touch(*region);
        }
      }
    }
    gpu_.blocks.resize(items_.blocks.size());
    for (block_ = 0; block_ < items_.blocks.size(); ++block_) block();
    for (block_ = 0; block_ < items_.blocks.size(); ++block_) wait();
    uint64_t own = slots_.size();
    while (own > 0 && (slots_[own - 1] || accesses_[own - 1] == 0)) --own;
    gpu_.said_scratch = gpu_.scratch = own;
  }

 private:
  void touch(const Region& region) {
    if (region.buffer != BufferKind::scratch) return;
    for (uint64_t chunk = region.index; chunk < region.index + region.size; ++chunk) ++accesses_[chunk];
  }

  /// Returns whether a region is in scratch and has exactly so many accesses.
  bool only(const Region& region, uint32_t accesses) const {
    if (region.buffer != BufferKind::scratch) return false;
    return std::all_of(accesses_.begin() + int64_t(region.index),
                       accesses_.begin() + int64_t(region.index + region.size),
                       [&](uint32_t of) { return of == accesses; });
  }

  void block() {
    const BlockItems& from = items_.blocks[block_];
    Block& to = gpu_.blocks[block_];
    to.send = from.send;
    to.receive = from.receive;
    for (at_ = 0; at_ < from.items.size();) {
      const Item& item = from.items[at_];
      if (item.kind == Kind::acquire) {
        waiting_.push_back(item);
        ++at_;
      } else if (item.kind == Kind::release) {
        if (to.steps.empty() || !waiting_.empty()) add("nop", {}, {}, 0);
        to.steps.back().awaited = true;
        released_[item.event] = {block_, uint32_t(to.steps.size() - 1)};
        ++at_;
      } else if (!joined(from.items)) {
        single(item);
        ++at_;
      }
    }
    if (!waiting_.empty()) add("nop", {}, {}, 0);
  }

  /// Makes one step of the next items, if a rule says how.
  bool joined(const std::vector<Item>& items) {
    const auto next = [&](size_t ahead, Kind kind) {
      return at_ + ahead < items.size() && items[at_ + ahead].kind == kind ? &items[at_ + ahead] : nullptr;
    };
    const Item* const received = next(0, Kind::receive);
    if (!received) return false;
    const Region slot = received->destination;
    const Item* const last = next(2, Kind::send);
    if (const Item* sum = next(1, Kind::reduce)) {
      const bool first = sum->source == slot;
      if (!first && sum->other != slot) return false;
      const Region& addend = first ? sum->other : sum->source;
      if (sum->destination == slot) {
        if (!last || last->source != slot || !only(slot, 4)) return false;
        return join("rrs", addend, {}, slot, 3, true);
      }
      if (!only(slot, 2)) return false;
      const bool sends = last && last->source == sum->destination;
      return join(sends ? "rrcs" : "rrc", addend, sum->destination, slot, sends ? 3 : 2, true);
    }
    if (const Item* copied = next(1, Kind::copy)) {
      if (copied->source != slot) return false;
      const bool sends = last && last->source == slot;
      if (!only(slot, sends ? 3 : 2)) return false;
      return join(sends ? "rcs" : "r", {}, copied->destination, slot, sends ? 3 : 2, true);
    }
    const Item* const sent = next(1, Kind::send);
    return sent && sent->source == slot && join("rcs", {}, slot, slot, 2, false);
  }

  bool join(std::string_view type, const Region& source, const Region& destination, const Region& slot,
            size_t items, bool leaves_slot) {
    add(type, source, destination, slot.size);
    if (leaves_slot) std::fill_n(slots_.begin() + int64_t(slot.index), slot.size, true);
    at_ += items;
    return true;
  }

  void single(const Item& item) {
    switch (item.kind) {
      case Kind::copy:
        return add("cpy", item.source, item.destination, item.source.size);
      case Kind::send:
        return add("s", item.source, {}, item.source.size);
      case Kind::receive:
        return add("r", {}, item.destination, item.destination.size);
      case Kind::reduce:
        return reduce(item);
      case Kind::release:
      case Kind::acquire:
        return;
    }
  }

  MemoryPlace memory(const Region& region) const { return memory_place(algorithm_, rank_, region); }

  bool overlaps(const Region& one, const Region& other) const {
    return overlap(algorithm_, rank_, one, other);
  }

  /// A step adds to its destination. If neither addend is there, the first one is copied to it.
  void reduce(const Item& item) {
    const Region& to = item.destination;
    if (memory(item.source) == memory(to)) return add("re", item.other, to, to.size);
    if (memory(item.other) == memory(to)) return add("re", item.source, to, to.size);
    if (overlaps(item.source, to) || overlaps(item.other, to)) {
      report_.add(OpPlace{rank_, items_.blocks[block_].origin, item.op},
                  "the result overlaps a part of an addend, and a step of MSCCL adds whole chunks to its "
                  "destination");
      return;
    }
    add("cpy", item.source, to, to.size);
    add("re", item.other, to, to.size);
  }

  /// Adds a step that waits for all acquired events. A step waits for one other, so `nop`s before it wait for
  /// the rest.
  void add(std::string_view type, const Region& source, const Region& destination, uint64_t count) {
    std::vector<AlgorithmStep>& steps = gpu_.blocks[block_].steps;
    std::vector<Item> waiting = std::move(waiting_);
    waiting_.clear();
    for (size_t k = 0; k < std::max<size_t>(waiting.size(), 1); ++k) {
      const bool last = k + 1 >= waiting.size();
      if (k < waiting.size()) waits_[block_].push_back({uint32_t(steps.size()), waiting[k]});
      AlgorithmStep& step = steps.emplace_back();
      step.type = step_type(last ? type : "nop");
      step.awaited = false;
      if (!last) continue;
      step.source = source;
      step.destination = destination;
      step.count = count;
    }
  }

  void wait() {
    for (const auto& [step, acquired] : waits_[block_]) {
      const std::optional<StepRef>& of = released_[acquired.event];
      if (!of) {
        report_.add(OpPlace{rank_, items_.blocks[block_].origin, acquired.op}, "nothing releases this");
      } else if (of->block != block_) {
        gpu_.blocks[block_].steps[step].waits_for = {*of};
      }
    }
  }

  struct Wait {
    uint32_t step;
    Item acquired;
  };

  const RankItems& items_;
  const Algorithm& algorithm_;
  AlgorithmGpu& gpu_;
  uint32_t rank_, block_ = 0;
  size_t at_ = 0;
  Report report_;
  std::vector<uint32_t> accesses_;                // by chunk of scratch
  std::vector<bool> slots_;                       // by chunk of scratch: whether it only holds messages
  std::vector<Item> waiting_;                     // acquired since the last step
  std::vector<std::optional<StepRef>> released_;  // by event
  std::vector<std::vector<Wait>> waits_;          // by thread block
};

}  // namespace

void make_steps(const RankItems& items, const Plan& plan, uint32_t rank, Algorithm& algorithm,
                Diagnostics& out) {
  StepMaker(items, plan, rank, algorithm, out).run();
}

}  // namespace chorale::msccl
