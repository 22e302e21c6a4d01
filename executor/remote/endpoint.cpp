#include "endpoint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "chorale/device/atomics.hpp"
#include "chorale/error.hpp"
#include "chorale/plan.hpp"
#include "executor/system/deadline.hpp"
#include "executor/system/texts.hpp"
#include "executor/world/collective_try.hpp"
#include "executor/world/group.hpp"

namespace chorale::remote {
namespace {

constexpr std::chrono::seconds patience{1};  // the longest time that the destructor sends
constexpr std::chrono::milliseconds nap{100};

/// Returns the first stream of a binding in a map by stream.
template <class Map>
auto first_of(Map& streams, uint64_t binding) {
  return streams.lower_bound({binding, std::numeric_limits<int>::min()});
}

}  // namespace

RemoteEndpoint::Order RemoteEndpoint::FarEnd::order(const void* from, const void* to, uint64_t bytes,
                                                    bool with_signal) {
  Order order;
  order.peer = peer;
  order.from = static_cast<const char*>(from);
  order.bytes = bytes;
  if (bytes != 0) order.to = FarPlace::of(to);
  if (with_signal && signal != no_signal) {
    order.signal = signal;
    order.posted = ++posted;
  }
  return order;
}

RemoteEndpoint::RemoteEndpoint(World& world, std::unique_ptr<Copies> copies, Events events)
    : world_(world), rank_(world.rank()), events_(std::move(events)), copies_(std::move(copies)) {}

RemoteEndpoint::~RemoteEndpoint() {
  // A peer may still wait for a last signal of this rank.
  const auto until = Clock::now() + patience;
  const auto unsent = [this] {
    const Lock lock(mutex_);
    return link_ && !dropped_ && !stopped() && !(all_done() && arriving_.empty());
  };
  while (unsent() && Clock::now() < until) work();
  close();
}

// -- The life of the link

void RemoteEndpoint::connect() {
  {
    const Lock lock(mutex_);
    if (link_ && link_->current()) return;
  }
  // All ranks have entered the reset by now, or never had a link, so no rank still needs the old link.
  close();
  world::collective_try(world_, [this] {
    const Lock lock(mutex_);
    copies_->finish();
  });
  ucx::WorldLink::Events events;
  events.message = [this](int from, std::span<const std::byte> header, ucx::Payload payload) {
    come(from, header, std::move(payload));
  };
  events.left = [this](int peer) { leave(peer); };
  auto link = std::make_unique<ucx::WorldLink>(world_, std::move(events));

  const Lock lock(mutex_);
  forget();
  entries_.clear();
  // The numbers of bindings restart, because ranks may have stopped at different numbers. Numbers from before
  // the reset are not reused.
  registered_ = world_.resets() << 32;
  dropped_ = false;
  link_ = std::move(link);
  changed_.notify_all();
}

/// Says goodbye to the peers, and destroys the link.
void RemoteEndpoint::close() {
  Lock lock(mutex_);
  while (asleep_) {
    link_->wake();
    changed_.wait_for(lock, std::chrono::milliseconds(1));
  }
  if (!link_) return;
  // Ignore messages from before the reset, because they belong to no binding.
  dropped_ = true;
  link_.reset();
}

void RemoteEndpoint::drop() {
  const Lock lock(mutex_);
  dropped_ = true;
  if (link_) link_->be_quiet();
  copies_->finish();
  forget();
}

/// Drops all messages. No copy may be running.
void RemoteEndpoint::forget() {
  outboxes_.clear();
  inboxes_.clear();
  to_begin_.clear();
  to_deliver_.clear();
  to_tell_.clear();
  leaving_.clear();
  arriving_.clear();
  bytes_on_the_way_ = notes_ = notes_left_ = notes_flushing_ = 0;
  flush_.reset();
}

bool RemoteEndpoint::stopped() const { return load_acquire(&world_.abort_word()->stop) != 0; }

// -- Bindings and their runs

uint64_t RemoteEndpoint::register_binding(const Memory& memory, const std::vector<int>& peers) {
  const Lock lock(mutex_);
  link_->connect(peers);
  entries_[++registered_].memory = memory;
  look_again(registered_);
  return registered_;
}

void RemoteEndpoint::unregister_binding(uint64_t binding) {
  const Lock lock(mutex_);
  if (entries_.erase(binding) == 0) return;
  for (Arriving& one : arriving_) {
    if (one.stream.first == binding) one.signal = nullptr;
  }
  for (auto at = first_of(inboxes_, binding); at != inboxes_.end() && at->first.first == binding;) {
    // Messages for an unregistered binding, such as a signal for which no rank waits, are only answered.
    if (!at->second.waiting.empty()) owe(at->first, at->second.waiting.rbegin()->first);
    at = inboxes_.erase(at);
  }
  for (auto at = first_of(outboxes_, binding); at != outboxes_.end() && at->first.first == binding;) {
    at->second.gone = true;
    for (Sent& sent : at->second.sent) sent.done.reset();
    at = at->second.empty() ? outboxes_.erase(at) : std::next(at);
  }
}

void RemoteEndpoint::begin_run(uint64_t binding, uint64_t run, const Region& input, const Region& output) {
  const Lock lock(mutex_);
  until_.reset();
  const auto found = entries_.find(binding);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  entry.memory.buffers[size_t(BufferKind::input)] = input;
  entry.memory.buffers[size_t(BufferKind::output)] = output;
  entry.run = run;
  entry.running = true;
  look_again(binding);
}

void RemoteEndpoint::end_run(uint64_t binding) {
  const Lock lock(mutex_);
  const auto found = entries_.find(binding);
  if (found != entries_.end()) found->second.running = false;
}

/// Makes deliver() check all waiting messages of a binding again.
void RemoteEndpoint::look_again(uint64_t binding) {
  for (auto at = first_of(inboxes_, binding); at != inboxes_.end() && at->first.first == binding; ++at)
    to_deliver_.insert(at->first);
}

// -- The thread of the proxy

bool RemoteEndpoint::work() {
  const Lock lock(mutex_);
  return work_locked();
}

bool RemoteEndpoint::work_locked() {
  if (!link_) return false;
  bool any = link_->progress();
  // After a stop, callers may already have freed their memory.
  if (!dropped_ && !stopped()) {
    try {
      any |= begin_orders();
      any |= send_what_left();
      any |= deliver();
      any |= finish_arrivals();
      any |= !leaving_.empty() || !arriving_.empty();
    } catch (const RunError& failed) {
      world_.abort(std::string("the proxy of port channels: ") + failed.what());
    }
  }
  if (std::exchange(moved_, false)) {
    if (until_) until_ = system::deadline_after(world_.timeout());
    if (events_.moved) events_.moved();
  }
  return any;
}

void RemoteEndpoint::rest() {
  Lock lock(mutex_);
  if (!link_) {
    changed_.wait(lock, [this] { return link_ || woken_; });
    woken_ = false;
    return;
  }
  if (std::exchange(woken_, false) || work_locked()) return;
  ucx::WorldLink& link = *link_;
  asleep_ = true;
  lock.unlock();
  link.sleep(nap);
  lock.lock();
  asleep_ = false;
  changed_.notify_all();
}

void RemoteEndpoint::wake() {
  const Lock lock(mutex_);
  woken_ = true;
  if (link_) link_->wake();
  changed_.notify_all();
}

// -- The end of a launch

void RemoteEndpoint::start_clock() {
  const Lock lock(mutex_);
  until_ = system::deadline_after(world_.timeout());
}

bool RemoteEndpoint::idle() {
  const Lock lock(mutex_);
  return all_done() && notes_ == notes_left_;
}

/// Returns true if peers have carried out all messages of this rank.
bool RemoteEndpoint::all_done() const {
  return std::all_of(outboxes_.begin(), outboxes_.end(), [](const auto& box) { return box.second.empty(); });
}

std::string RemoteEndpoint::waited_for() const {
  std::map<int, size_t> messages;
  for (const auto& [stream, outbox] : outboxes_) {
    if (!outbox.empty()) messages[stream.second] += outbox.sent.size() + outbox.orders.size();
  }
  std::vector<std::string> words;
  for (const auto& [peer, n] : messages) {
    words.push_back(
        fmt::format("rank {}, on {}, to take {} of its messages", peer, world_.group().host_text(peer), n));
  }
  return words.empty() ? "the connections to other hosts to send its answers"
                       : fmt::format("{}", fmt::join(words, ", and "));
}

bool RemoteEndpoint::settled() {
  const Lock lock(mutex_);
  if (!link_ || dropped_ || stopped()) return true;
  if (until_ && Clock::now() > *until_) {
    if (!all_done() || notes_ != notes_left_) {
      world_.group().raise(
          Stop::timed_out, rank_,
          fmt::format("rank {} waited {} for {}; {}", rank_, system::seconds_text(world_.timeout()),
                      waited_for(), system::more_time));
    }
    return true;
  }
  // No other code checks for dead peers while the launch waits here.
  world_.group().check_peers();
  if (!all_done()) return false;
  while (notes_ != notes_left_) {
    if (!flush_) {
      flush_.emplace();
      notes_flushing_ = notes_;
    }
    if (!link_->flushed(*flush_)) return false;
    flush_.reset();
    notes_left_ = notes_flushing_;
  }
  return true;
}

}  // namespace chorale::remote
