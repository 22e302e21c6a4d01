#include "recorder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <type_traits>

#include "../interpreter/packet_form.hpp"
#include "../interpreter/semantics.hpp"
#include "chorale/device/engine.hpp"
#include "chorale/error.hpp"

namespace chorale::cuda {
namespace {

constexpr uint64_t most_page_bytes = 160 << 10;  ///< of shared memory

/// A step with what it works on, for one parity of the launch.
struct Step {
  TapeStep step;
  std::vector<TapeItem> items;
  std::vector<TapePlace> plain, packets;  ///< sources, then sinks
};

/// The machine that semantics.hpp runs on here: it does nothing, and notes what a thread block is to do.
class Recorder {
 public:
  Recorder(const image::Image& image, const TapePlaces& places, PacketForm packet, bool even,
           const std::vector<uint32_t>& waiters)
      : image_(image), places_(places), packet_(packet), even_(even), waiters_(waiters) {}

  std::vector<Step>& steps() { return steps_; }
  size_t counts() const { return slots_.size(); }
  void begin(uint32_t block) { first_record_ = image_.blocks[block].first; }

  const image::Image& image() const { return image_; }
  uint32_t flag() const { return 0; }
  const Deadline* deadline() const { return nullptr; }
  uint64_t bank(uint64_t bytes) const { return even_ ? bytes : 0; }
  uint64_t packet_bank(uint64_t bytes) const { return bank(bytes); }

  char* base(uint32_t buffer) const {
    if (buffer == 0) return reinterpret_cast<char*>(TapePlace::in);
    if (buffer == 1) return reinterpret_cast<char*>(TapePlace::out);
    return image_.buffers[buffer].base;
  }

  image::Range range(uint64_t bytes, const op::Slice& slice) const {
    return image::range_of(bytes, turn_first_, turn_bytes_, slice.index, slice.size, image_.alignment);
  }
  void turn(uint64_t first, uint64_t bytes) {
    turn_first_ = first;
    turn_bytes_ = bytes;
  }

  template <class T, class Item>
  T* list(uint32_t n, const Item& item) {
    auto items = std::make_shared<std::vector<T>>();
    for (uint32_t at = 0; at < n; ++at) items->push_back(item(at));
    lists_.push_back(items);
    return items->data();
  }
  void release_lists() { lists_.clear(); }

  template <class F>
  Stop with_packet(const F& f) const {
    return interpreter::with_packet_form(packet_, f);
  }

  void enter(uint32_t record) { op_ = record - first_record_; }

  // -- Data
  // ---------------------------------------------------------------------------------------------------

  template <class Source, class Sink>
  Stop move(uint64_t bytes, const Source& source, const Sink& sink) {
    Step& step = data(std::is_same_v<Source, Mem> ? TapeKind::copy : TapeKind::unpack, bytes);
    add(step, source);
    step.step.n = 1;
    add_sinks(step, sink);
    return Stop::none;
  }

  template <class First, class Other, class Sink>
  Stop reduce(ReduceOp op, uint64_t bytes, const First& first, const Other* others, uint32_t n,
              const Sink& sink) {
    constexpr bool plain_first = std::is_same_v<First, Mem>, plain = std::is_same_v<Other, Mem>;
    static_assert(plain_first || !plain, "packets, then plain memory: no operation does so");
    Step& step = data(plain         ? TapeKind::reduce
                      : plain_first ? TapeKind::reduce_packets
                                    : TapeKind::sum_packets,
                      bytes);
    step.step.reduce_op = uint8_t(op);
    add(step, first);
    for (uint32_t other = 0; other < n; ++other) add(step, others[other]);
    step.step.n = uint16_t(n);
    add_sinks(step, sink);
    return Stop::none;
  }

  template <class Sink>
  Stop reduce_members(ReduceOp op, uint64_t bytes, const pieces::Members& from, const Sink& sink) {
    std::vector<Mem> members;
    for (uint32_t member = 0; member < from.n; ++member)
      members.emplace_back(from.data[member] + from.offset, from.valid);
    return reduce(op, bytes, members[0], members.data() + 1, from.n - 1, sink);
  }

  /// Peers' memory was mapped when the plan was bound.
  template <Role... R>
  Stop reach(const op::Places<R>&...) const {
    return Stop::none;
  }

  // -- Synchronisation
  // ----------------------------------------------------------------------------------------

  void sync() { other(TapeKind::sync); }

  void post(const op::Ids& channels, bool relaxed) {
    Step& step = other(relaxed ? TapeKind::post_relaxed : TapeKind::post);
    for (uint32_t at = 0; at < channels.n; ++at) {
      if (Signal* const there = places_.signals_at_peer[channels.first[at]]) item(step).post = {there};
    }
  }

  Stop await(const op::Ids& channels, bool relaxed) {
    Step& step = other(relaxed ? TapeKind::await_relaxed : TapeKind::await);
    for (uint32_t at = 0; at < channels.n; ++at) {
      const uint32_t channel = channels.first[at];
      const bool shared = waiters_[channel] > 1;
      const uint32_t slot = shared ? 0 : slots_.try_emplace(channel, uint32_t(slots_.size())).first->second;
      item(step).await = {places_.signals + channel, shared ? places_.expected + channel : nullptr, slot,
                          image_.channels[channel].peer, op_};
    }
    return Stop::none;
  }

  Stop drain(const op::Ids& channels) {
    Step& step = other(TapeKind::drain);
    for (uint32_t at = 0; at < channels.n; ++at) {
      item(step).drain = {places_.pushed + channels.first[at], places_.completed + channels.first[at]};
    }
    return Stop::none;
  }

  Stop acquire(const op::Ids& semaphores) {
    Step& step = other(TapeKind::acquire);
    for (uint32_t at = 0; at < semaphores.n; ++at)
      item(step).permit = {places_.semaphores + semaphores.first[at]};
    return Stop::none;
  }

  void release(const op::Ids& semaphores) {
    Step& step = other(TapeKind::release);
    for (uint32_t at = 0; at < semaphores.n; ++at)
      item(step).permit = {places_.semaphores + semaphores.first[at]};
  }

  Stop arrive(uint32_t id, uint32_t participants) {
    item(other(TapeKind::barrier)).meeting = {places_.barriers + id, participants};
    return Stop::none;
  }

  // -- Port channels
  // ------------------------------------------------------------------------------------------

  Stop push(Action action, const op::Ids& channels) {
    Step& step = other(TapeKind::push);
    for (uint32_t at = 0; at < channels.n; ++at) {
      item(step).push = {places_.pushed + channels.first[at], channels.first[at], has(action, Action::signal),
                         ~0u, ~0u};
    }
    return Stop::none;
  }

  template <Role S, Role D>
  Stop push(Action action, const op::Ids& channels, const op::Slice& slice, const op::Places<S>& src,
            const op::Places<D>& dst) {
    if constexpr (D == Role::RemotePacketWrite) {
      // Packets say themselves that they have come, so nothing orders them behind the proxy: the block stores
      // them, as through a memory channel.
      if (has(action, Action::pack)) return copy_to_packets(*this, slice, src, dst);
      return forward_packets(*this, slice, src, dst);
    } else {
      for (uint32_t at = 0; at < channels.n; ++at) {
        const op::Places<S> from{&src[src.n == 1 ? 0 : at], 1};
        const op::Places<D> to{&dst[at], 1};
        // The signal goes behind the last piece, each of which the proxy copies as it is.
        const image::Range part = range(from[0].bytes, slice);
        pieces::each(
            *this, part,
            [&](uint64_t first, uint64_t bytes) {
              const Mem source = pieces::memory(*this, from, 0, first),
                        sink = pieces::memory(*this, to, 0, first);
              const uint64_t exist = std::min({bytes, source.valid, sink.valid});
              if (source.data && sink.data && exist != 0)
                push_one(channels.first[at], source, sink, exist, false);
              return Stop::none;
            },
            from, to);
        if (has(action, Action::signal)) push_one(channels.first[at], {}, {}, 0, true);
      }
      return Stop::none;
    }
  }

 private:
  Step& other(TapeKind kind) {
    Step& step = steps_.emplace_back();
    step.step.kind = kind;
    step.step.op = op_;
    return step;
  }

  Step& data(TapeKind kind, uint64_t bytes) {
    Step& step = other(kind);
    step.step.bytes = bytes;
    return step;
  }

  TapeItem& item(Step& step) {
    ++step.step.n;
    return step.items.emplace_back(TapeItem{});
  }

  void push_one(uint32_t channel, const Mem& from, const Mem& to, uint64_t bytes, bool signal) {
    Step& step = data(TapeKind::push, bytes);
    TapeItem& what = item(step);
    what.push = {places_.pushed + channel, channel, signal, ~0u, ~0u};
    if (bytes == 0) return;
    what.push.from = 0;
    what.push.to = 1;
    add(step, from);
    add(step, to);
  }

  void add(Step& step, const Mem& place) {
    step.plain.push_back({reinterpret_cast<uint64_t>(place.data), 0, place.data ? place.valid : 0});
  }
  template <class P>
  void add(Step& step, const Packets<P>& place) {
    step.packets.push_back({reinterpret_cast<uint64_t>(place.slots), 0, 0});
  }

  void add_sinks(Step& step, const Mem& sink) {
    ++step.step.plain_sinks;
    add(step, sink);
  }
  template <class P>
  void add_sinks(Step& step, const Packets<P>& sink) {
    ++step.step.packet_sinks;
    add(step, sink);
  }
  template <class S>
  void add_sinks(Step& step, const Many<S>& sinks) {
    for (uint32_t sink = 0; sink < sinks.n; ++sink) add_sinks(step, sinks.sinks[sink]);
  }
  void add_sinks(Step& step, const MultiStore& sinks) {
    for (uint32_t member = 0; member < sinks.n; ++member) add_sinks(step, sinks.member(member));
  }
  template <class A, class B>
  void add_sinks(Step& step, const Tee<A, B>& sinks) {
    add_sinks(step, sinks.a);
    add_sinks(step, sinks.b);
  }

  const image::Image& image_;
  const TapePlaces& places_;
  const PacketForm packet_;
  const bool even_;
  const std::vector<uint32_t>& waiters_;
  std::vector<Step> steps_;
  std::vector<std::shared_ptr<void>> lists_;
  std::map<uint32_t, uint32_t> slots_;  ///< of this block's counts, by channel
  uint32_t first_record_ = 0, op_ = 0;
  uint64_t turn_first_ = 0, turn_bytes_ = 0;
};

/// By channel: how many blocks wait on it.
std::vector<uint32_t> count_waiters(const interpreter::BoundImage& image) {
  std::vector<uint32_t> waiters(image.channels.size()), last(image.channels.size(), ~0u);
  for (uint32_t block = 0; block < image.blocks.size(); ++block) {
    for (uint32_t at = 0; at < image.blocks[block].n; ++at) {
      const image::Record& record = image.records[image.blocks[block].first + at];
      const OpInfo& row = info(record.code);
      if (!row.has(Role::Await) && !row.has(Role::AwaitRelaxed)) continue;
      for (uint32_t id = 0; id < record.ids; ++id) {
        const uint32_t channel = image.ids[record.first_id + id];
        waiters[channel] += last[channel] != block;
        last[channel] = block;
      }
    }
  }
  return waiters;
}

bool moves_data(TapeKind kind) { return kind >= TapeKind::copy; }

/// From two parities to places that hold for both.
void settle_banks(std::vector<TapePlace>& odd, const std::vector<TapePlace>& even) {
  for (size_t at = 0; at < odd.size(); ++at) odd[at].even = even[at].at - odd[at].at;
}

/// Bytes of a step, in multiples of `grain`, that exist at all its places and are aligned, given that what is
/// passed is.
uint64_t whole_bytes(const Step& step, uint64_t grain) {
  uint64_t bytes = step.step.bytes;
  for (const TapePlace& place : step.plain) {
    if ((place.at & ~(TapePlace::in | TapePlace::out)) % unit_bytes != 0 || place.at == 0) return 0;
    bytes = std::min(bytes, place.valid);
  }
  return bytes / grain * grain;
}

uint8_t passed_by(const Step& step) {
  uint8_t passed = 0;
  for (const TapePlace& place : step.plain) {
    if (place.at & TapePlace::in) passed |= 1;
    if (place.at & TapePlace::out) passed |= 2;
  }
  return passed;
}

/// Data steps as whole units, or whole lines, and what is left of them apart: the fast way knows no tails.
/// The last chunk of a message counts as many bytes as the others, though not all of them exist.
void split_tails(std::vector<Step>& steps, PacketForm packet) {
  std::vector<Step> split;
  for (Step& step : steps) {
    if (!moves_data(step.step.kind)) {
      split.push_back(std::move(step));
      continue;
    }
    if (step.step.bytes == 0) continue;
    step.step.passed = passed_by(step);
    const bool lines = packet == PacketForm::ll128 && !step.packets.empty();
    const uint64_t whole = whole_bytes(step, lines ? packet_payload<LL128> : unit_bytes);
    if (whole == 0) {
      split.push_back(std::move(step));
      continue;
    }
    step.step.whole = 1;
    if (whole == step.step.bytes) {
      split.push_back(std::move(step));
      continue;
    }
    Step tail = step;
    tail.step.whole = 0;
    tail.step.bytes -= whole;
    for (TapePlace& place : tail.plain) {
      place.at += whole;
      if (place.valid != unlimited) place.valid -= whole;
    }
    for (TapePlace& place : tail.packets) place.at += lines ? packet_offset<LL128>(whole) : 2 * whole;
    step.step.bytes = whole;
    split.push_back(std::move(step));
    split.push_back(std::move(tail));
  }
  steps = std::move(split);
}

/// Whether all threads of the block meet in a step of its own accord, so that a sync beside it orders nothing
/// more: what lies before it is ordered before what lies behind it, and it touches no data itself.
bool meets(TapeKind kind) {
  switch (kind) {
    case TapeKind::sync:
    case TapeKind::post:
    case TapeKind::await:
    case TapeKind::await_relaxed:
    case TapeKind::drain:
    case TapeKind::acquire:
    case TapeKind::release:
    case TapeKind::barrier:
    case TapeKind::push:
      return true;
    default:
      return false;
  }
}

/// Whether they meet at its end.
bool ends_in_meeting(TapeKind kind) {
  return meets(kind) || kind == TapeKind::unpack || kind == TapeKind::reduce_packets ||
         kind == TapeKind::sum_packets;
}

/// Posts next to each other leave together, and waits next to each other wait together.
bool joins(const TapeStep& before, const TapeStep& next) {
  if (before.kind != next.kind) return false;
  return next.kind == TapeKind::post || next.kind == TapeKind::post_relaxed || next.kind == TapeKind::await ||
         next.kind == TapeKind::await_relaxed;
}

/// Leaves out syncs that order nothing: the compiler puts them around every signal and wait, since MSCCL++
/// knows no other way. Joins what can go together.
void tidy(std::vector<Step>& steps) {
  std::vector<Step> kept;
  for (size_t at = 0; at < steps.size(); ++at) {
    Step& step = steps[at];
    if (step.step.kind == TapeKind::sync) {
      const bool last = at + 1 == steps.size();
      if (last || meets(steps[at + 1].step.kind)) continue;
      if (kept.empty() || ends_in_meeting(kept.back().step.kind)) continue;
    }
    if (!kept.empty() && joins(kept.back().step, step.step)) {
      kept.back().items.insert(kept.back().items.end(), step.items.begin(), step.items.end());
      kept.back().step.n = uint16_t(kept.back().items.size());
      continue;
    }
    kept.push_back(std::move(step));
  }
  steps = std::move(kept);
}

/// One block's pages, as lists of steps.
struct Page {
  size_t first = 0, end = 0;
  PageShape shape;
};

PageShape plus(PageShape shape, const Step& step) {
  ++shape.steps;
  shape.items += uint32_t(step.items.size());
  shape.plain += uint32_t(step.plain.size());
  shape.packets += uint32_t(step.packets.size());
  return shape;
}

std::vector<Page> paginate(const std::vector<Step>& steps, uint64_t page_bytes) {
  std::vector<Page> pages(1);
  for (size_t at = 0; at < steps.size(); ++at) {
    const PageShape more = plus(pages.back().shape, steps[at]);
    if (more.shared_bytes() > page_bytes && pages.back().end != pages.back().first) {
      pages.push_back({at, at, {}});
    }
    pages.back().shape = plus(pages.back().shape, steps[at]);
    pages.back().end = at + 1;
  }
  return pages;
}

/// Whether two pieces of memory may be one, of which at least one is written. A plan in place has its input
/// and output in one buffer, so that what is passed as one may be the other.
bool may_touch(const TapePlace& a, uint64_t a_bytes, const TapePlace& b, uint64_t b_bytes) {
  constexpr uint64_t tags = TapePlace::in | TapePlace::out;
  if ((a.at & tags) != (b.at & tags)) return (a.at & tags) != 0 && (b.at & tags) != 0;
  // Banks differ by more than a piece is long, and alike for both.
  return a.at < b.at + b_bytes && b.at < a.at + a_bytes;
}

bool is_batchable(const Step& step) {
  const TapeStep& of = step.step;
  // A step that waits and sends could wait for what another one of the batch has yet to send.
  return of.whole && (of.kind == TapeKind::copy || (of.kind == TapeKind::unpack && of.packet_sinks == 0));
}

bool independent(const Step& a, const Step& b) {
  const uint64_t bytes = a.step.bytes;
  const size_t a_sources = a.step.kind == TapeKind::copy ? 1 : 0,
               b_sources = b.step.kind == TapeKind::copy ? 1 : 0;
  for (size_t one = 0; one < a.plain.size(); ++one) {
    for (size_t other = 0; other < b.plain.size(); ++other) {
      const bool written = one >= a_sources || other >= b_sources;
      if (written && may_touch(a.plain[one], bytes, b.plain[other], bytes)) return false;
    }
  }
  return true;
}

/// Steps from `at` on that may run side by side: alike, of equal size, with no sync between them, and none
/// touches what another one writes.
uint16_t batch_from(const std::vector<Step>& steps, size_t at, size_t end) {
  constexpr size_t most = 32;
  if (!is_batchable(steps[at])) return 1;
  size_t next = at + 1;
  for (; next < end && next - at < most; ++next) {
    if (!is_batchable(steps[next]) || steps[next].step.kind != steps[at].step.kind ||
        steps[next].step.bytes != steps[at].step.bytes ||
        steps[next].packets.empty() != steps[at].packets.empty()) {
      break;
    }
    bool apart = true;
    for (size_t before = at; before < next; ++before)
      apart = apart && independent(steps[before], steps[next]);
    if (!apart) break;
  }
  return uint16_t(next - at);
}

void write_page(char* to, const PageShape& shape, const std::vector<Step>& steps, const Page& page,
                bool more) {
  PageHeader header;
  header.steps = uint32_t(page.end - page.first);
  header.more = more;
  std::memcpy(to, &header, sizeof header);
  uint32_t items = 0, plain = 0, packets = 0;
  for (size_t at = page.first; at < page.end; ++at) {
    const Step& from = steps[at];
    TapeStep step = from.step;
    step.batch = batch_from(steps, at, page.end);
    step.first_item = uint16_t(items);
    step.first_plain = uint16_t(plain);
    step.first_packets = uint16_t(packets);
    std::memcpy(to + 16 + (at - page.first) * sizeof step, &step, sizeof step);
    for (TapeItem item : from.items) {
      if (step.kind == TapeKind::push && item.push.from != ~0u) {
        item.push.from += plain;
        item.push.to += plain;
      }
      std::memcpy(to + shape.items_at() + items++ * sizeof item, &item, sizeof item);
    }
    for (const TapePlace& place : from.plain)
      std::memcpy(to + shape.plain_at() + plain++ * sizeof place, &place, sizeof place);
    for (const TapePlace& place : from.packets) {
      std::memcpy(to + shape.packets_at() + packets++ * sizeof place, &place, sizeof place);
    }
  }
}

}  // namespace

Tapes record_tapes(const interpreter::BoundImage& bound, const TapePlaces& places, PacketForm packet,
                   uint64_t page_bytes) {
  const image::Image image = bound.view();
  const std::vector<uint32_t> waiters = count_waiters(bound);
  std::vector<std::vector<Step>> blocks;
  std::vector<std::vector<Page>> pages;
  Tapes tapes;
  size_t counts = 0;
  for (uint32_t block = 0; block < bound.blocks.size(); ++block) {
    Recorder odd(image, places, packet, false, waiters), even(image, places, packet, true, waiters);
    for (Recorder* recorder : {&odd, &even}) {
      recorder->begin(block);
      run_block(*recorder, block);
    }
    std::vector<Step>& steps = odd.steps();
    for (size_t at = 0; at < steps.size(); ++at) {
      settle_banks(steps[at].plain, even.steps()[at].plain);
      settle_banks(steps[at].packets, even.steps()[at].packets);
    }
    split_tails(steps, packet);
    tidy(steps);
    counts = std::max(counts, odd.counts());
    pages.push_back(paginate(steps, page_bytes));
    blocks.push_back(std::move(steps));
    for (const Page& page : pages.back()) {
      tapes.page.steps = std::max(tapes.page.steps, page.shape.steps);
      tapes.page.items = std::max(tapes.page.items, page.shape.items);
      tapes.page.plain = std::max(tapes.page.plain, page.shape.plain);
      tapes.page.packets = std::max(tapes.page.packets, page.shape.packets);
    }
    tapes.pages = std::max(tapes.pages, uint32_t(pages.back().size()));
  }
  if (tapes.page.shared_bytes() > most_page_bytes) {
    throw RunError(
        RunError::Reason::resources,
        fmt::format("a thread block's tape takes {} bytes of shared memory at a time, and no more than {} "
                    "can be given: an operation with fewer operands is needed",
                    tapes.page.shared_bytes(), most_page_bytes));
  }
  const uint64_t page_size = tapes.page.bytes();
  tapes.bytes.resize(blocks.size() * tapes.pages * page_size);
  for (size_t block = 0; block < blocks.size(); ++block) {
    for (size_t page = 0; page < pages[block].size(); ++page) {
      write_page(tapes.bytes.data() + (block * tapes.pages + page) * page_size, tapes.page, blocks[block],
                 pages[block][page], page + 1 < pages[block].size());
    }
  }
  tapes.state_bytes = uint32_t((sizeof(BlockState) + counts * sizeof(uint64_t) + 127) / 128 * 128);
  return tapes;
}

}  // namespace chorale::cuda
