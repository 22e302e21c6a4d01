#include "courier.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "../world/group.hpp"
#include "../world/together.hpp"

namespace chorale::cpu {
namespace {

constexpr uint64_t most_on_the_way = uint64_t(64) << 20;  // bytes that we keep copies of
constexpr std::chrono::seconds patience{1};               // with those who hear our goodbye
constexpr std::chrono::milliseconds nap{100};

}  // namespace

Courier::Courier(World& world)
    : world_(world), rank_(world.rank()), parting_(size_t(world.ranks())), met_(size_t(world.ranks())) {}

Courier::~Courier() { close(); }

void Courier::connect() {
  {
    const Lock lock(mutex_);
    if (link_ && resets_ == world_.resets()) return;
  }
  // All ranks have entered the reset by now, or have had no link: nobody minds that the old one goes.
  close();
  std::unique_ptr<net::UcxLink> link;
  world::together(world_, [&] {
    net::UcxLink::Events events;
    events.message = [this](std::span<const std::byte> header, net::Payload payload) {
      come(header, std::move(payload));
    };
    events.lost = [this](int peer, const std::string& why) { lose(peer, why); };
    events.too_large = [this](size_t bytes) { lack(bytes); };
    link = std::make_unique<net::UcxLink>(world_.ranks(), std::move(events));
  });
  std::vector<std::byte> mine;
  world::together(world_, [&] { mine = link->address(); });
  const auto all = world_.allgather(mine);
  for (int rank = 0; rank < world_.ranks(); ++rank) link->connect(rank, all[size_t(rank)]);

  const Lock lock(mutex_);
  parting_.assign(parting_.size(), Parting::none);
  met_.assign(met_.size(), false);
  entries_.clear();
  outboxes_.clear();
  inboxes_.clear();
  enrolled_ = bytes_on_the_way_ = notes_ = notes_left_ = notes_flushing_ = 0;
  flush_.reset();
  dropped_ = false;
  resets_ = world_.resets();
  link_ = std::move(link);
  changed_.notify_all();
}

/// Tells those who know us, and takes the link away.
void Courier::close() {
  Lock lock(mutex_);
  while (asleep_) {
    link_->wake();
    changed_.wait_for(lock, std::chrono::milliseconds(1));
  }
  if (!link_) return;
  // The old life's messages are nobody's, and its losses no news.
  dropped_ = true;
  for (int peer = 0; peer < world_.ranks(); ++peer) {
    if (met_[size_t(peer)] && parting_[size_t(peer)] == Parting::none) send_note(FarMessage::Kind::bye, peer);
  }
  const auto until = Clock::now() + patience;
  const auto unheard = [&] {
    for (size_t peer = 0; peer < met_.size(); ++peer) {
      if (met_[peer] && parting_[peer] == Parting::none) return true;
    }
    return false;
  };
  while (unheard() && Clock::now() < until) {
    if (!link_->progress()) link_->sleep(std::chrono::milliseconds(10));
  }
  // Our own answers to goodbyes are on their way, too.
  net::UcxLink::Flush flush;
  while (!link_->flushed(flush) && Clock::now() < until) link_->progress();
  link_.reset();
}

uint64_t Courier::enrol(const std::vector<int>& peers) {
  const Lock lock(mutex_);
  for (const int peer : peers) met_[size_t(peer)] = true;
  entries_[++enrolled_];
  return enrolled_;
}

void Courier::strike(uint64_t binding) {
  const Lock lock(mutex_);
  entries_.erase(binding);
  // Its launches have ended on all ranks: nothing is on its way.
  std::erase_if(outboxes_, [binding](const auto& box) { return box.first.first == binding; });
  std::erase_if(inboxes_, [binding](const auto& box) { return box.first.first == binding; });
}

void Courier::begin(uint64_t binding, const Run& run) {
  const Lock lock(mutex_);
  until_.reset();
  Entry& entry = entries_[binding];
  entry.run = run;
  entry.active = true;
  recheck_ = true;
}

void Courier::end(uint64_t binding) {
  const Lock lock(mutex_);
  const auto found = entries_.find(binding);
  if (found != entries_.end()) found->second.active = false;
}

void Courier::start_clock() {
  const Lock lock(mutex_);
  until_.reset();
  if (world_.timeout().count() > 0) until_ = Clock::now() + world_.timeout();
}

bool Courier::idle() {
  const Lock lock(mutex_);
  return idle_locked();
}

bool Courier::idle_locked() const {
  for (const auto& [stream, outbox] : outboxes_) {
    if (!outbox.waiting.empty()) return false;
  }
  return notes_ == notes_left_;
}

// -- What is sent

bool Courier::has_room() {
  const Lock lock(mutex_);
  return bytes_on_the_way_ < most_on_the_way;
}

void Courier::send(const Trigger& trigger, Machine& machine) {
  const Run& run = *trigger.run;
  const image::Channel& channel = run.image.channels[trigger.channel];
  FarMessage message;
  message.kind = FarMessage::Kind::data;
  message.from = uint32_t(rank_);
  message.binding = run.binding;
  message.epoch = run.epoch;
  message.action = trigger.action;
  message.signal = channel.signal_at_peer;
  message.place = trigger.dst;
  message.place.buffer = run.image.buffers[trigger.dst.buffer].kind;
  message.range = trigger.range;
  net::Payload payload;
  try {
    payload = gather(machine, trigger);
  } catch (const std::bad_alloc&) {
    return lack(size_t(trigger.range.end - trigger.range.first));
  }

  const Lock lock(mutex_);
  if (!link_ || dropped_) return;
  const int peer = int(channel.peer);
  Outbox& outbox = outboxes_[{run.binding, peer}];
  message.turn = ++outbox.last_turn;
  outbox.waiting.push_back({message.turn, payload.bytes, &run, trigger.channel});
  bytes_on_the_way_ += payload.bytes;
  met_[size_t(peer)] = true;
  link_->send(peer, world::bytes_of(message), std::move(payload));
}

void Courier::send_note(FarMessage::Kind kind, int peer, uint64_t binding, uint64_t turn) {
  FarMessage message;
  message.kind = kind;
  message.from = uint32_t(rank_);
  message.binding = binding;
  message.turn = turn;
  met_[size_t(peer)] = true;
  link_->send(peer, world::bytes_of(message));
}

// -- What comes

void Courier::come(std::span<const std::byte> header, net::Payload payload) {
  if (header.size() != sizeof(FarMessage)) return;  // none of ours
  const FarMessage message = world::read_as<FarMessage>(header);
  if (message.from >= parting_.size()) return;
  const int from = int(message.from);
  switch (message.kind) {
    case FarMessage::Kind::data:
      if (!dropped_)
        inboxes_[{message.binding, from}].waiting.emplace(message.turn, Held{message, std::move(payload)});
      recheck_ = true;
      return;
    case FarMessage::Kind::done:
      if (!dropped_) take_done(message);
      return;
    case FarMessage::Kind::bye: {
      parting_[message.from] = Parting::left;
      send_note(FarMessage::Kind::bye_heard, from);
      // It has done all that it will do. If somebody waits for more, that will be said of the wait.
      for (auto& [stream, outbox] : outboxes_) {
        if (stream.second != from || outbox.waiting.empty()) continue;
        FarMessage all = message;
        all.binding = stream.first;
        all.turn = outbox.last_turn;
        take_done(all);
      }
      return;
    }
    case FarMessage::Kind::bye_heard:
      if (parting_[message.from] == Parting::none) parting_[message.from] = Parting::heard;
      return;
  }
}

void Courier::take_done(const FarMessage& message) {
  const auto found = outboxes_.find({message.binding, int(message.from)});
  if (found == outboxes_.end()) return;
  std::deque<Sent>& waiting = found->second.waiting;
  for (; !waiting.empty() && waiting.front().turn <= message.turn; waiting.pop_front()) {
    const Sent& sent = waiting.front();
    bytes_on_the_way_ -= sent.bytes;
    add_release(&sent.run->completed[sent.channel].value, uint64_t(1));
    sent.run->fifo->end();
  }
}

void Courier::lose(int peer, const std::string& why) {
  const bool left = std::exchange(parting_[size_t(peer)], Parting::left) != Parting::none;
  if (left || dropped_ || resets_ != world_.resets()) return;
  world_.group().raise(Stop::peer_lost, peer,
                       fmt::format("rank {}, on {}, died or cannot be reached any more (UCX: {})", peer,
                                   world_.group().host_text(peer), why));
}

/// Nobody could catch it on this thread.
void Courier::lack(size_t bytes) {
  world_.abort(
      fmt::format("rank {} has no memory for a copy of a message of {} bytes between hosts: use more "
                  "instances of the plan, or smaller buffers",
                  rank_, bytes));
}

/// What is next in a stream, as long as its run has begun.
void Courier::deliver(const Stream& stream, Inbox& inbox) {
  const auto found = entries_.find(stream.first);
  if (found == entries_.end() && stream.first <= enrolled_) {
    inbox.waiting.clear();
    return;
  }
  while (!inbox.waiting.empty()) {
    const auto first = inbox.waiting.begin();
    if (first->first != inbox.done + 1) break;
    if (found == entries_.end() || first->second.message.epoch > found->second.run.epoch) break;
    carry_out(found->second, first->second);
    inbox.done = first->first;
    inbox.waiting.erase(first);
  }
  if (inbox.told == inbox.done) return;
  inbox.told = inbox.done;
  ++notes_;
  send_note(FarMessage::Kind::done, stream.second, stream.first, inbox.done);
}

void Courier::carry_out(Entry& entry, const Held& held) {
  const FarMessage& message = held.message;
  Run run = entry.run;
  const bool over = !entry.active || message.epoch != run.epoch;
  if (over && held.payload.bytes != 0 && message.place.buffer <= uint32_t(BufferKind::output)) {
    world_.abort(fmt::format(
        "rank {} has put into the {} of rank {} after the launch there had ended: the plan does not "
        "make it wait; chorale check shows where",
        message.from, buffer_names[message.place.buffer], rank_));
    return;
  }
  run.epoch = message.epoch;
  const size_t room = Machine::room_bytes(run.image);
  if (room_.size() < room) room_.resize(room);
  const Group group;
  Machine machine(run, group, nullptr, room_.data());
  scatter(machine, message, held.payload);
  if (has(message.action, Action::signal) && message.signal != image::Channel::none)
    signal_add(group, &run.signals[message.signal]);
}

bool Courier::look() {
  if (!link_) return false;
  bool any = link_->progress();
  if (std::exchange(recheck_, false) && !dropped_) {
    for (auto& [stream, inbox] : inboxes_) {
      const uint64_t before = inbox.done;
      deliver(stream, inbox);
      any |= inbox.done != before;
    }
  }
  return any;
}

bool Courier::work() {
  const Lock lock(mutex_);
  return look();
}

// -- The end of a launch, and the time between launches

std::string Courier::waited_for() const {
  std::map<int, size_t> messages;
  for (const auto& [stream, outbox] : outboxes_) {
    if (!outbox.waiting.empty()) messages[stream.second] += outbox.waiting.size();
  }
  std::vector<std::string> words;
  for (const auto& [peer, n] : messages) {
    words.push_back(
        fmt::format("rank {}, on {}, to take {} of its messages", peer, world_.group().host_text(peer), n));
  }
  return words.empty() ? "other hosts to hear what it has done"
                       : fmt::format("{}", fmt::join(words, ", and "));
}

bool Courier::settled() {
  const Lock lock(mutex_);
  if (!link_ || dropped_ || load_acquire(&world_.abort_word()->stop) != 0) return true;
  if (until_ && Clock::now() > *until_) {
    if (!idle_locked()) {
      world_.group().raise(
          Stop::timed_out, rank_,
          fmt::format("rank {} waited {} for {}; {}", rank_, world::seconds_text(world_.timeout()),
                      waited_for(), world::more_time));
    }
    return true;
  }
  // Nothing else looks for them while the launch waits here.
  world_.group().check_peers();
  for (const auto& [stream, outbox] : outboxes_) {
    if (!outbox.waiting.empty()) return false;
  }
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

void Courier::rest() {
  Lock lock(mutex_);
  if (!link_) {
    changed_.wait(lock, [this] { return link_ || woken_; });
    woken_ = false;
    return;
  }
  if (std::exchange(woken_, false) || look()) return;
  net::UcxLink& link = *link_;
  asleep_ = true;
  lock.unlock();
  link.sleep(nap);
  lock.lock();
  asleep_ = false;
  changed_.notify_all();
}

void Courier::wake() {
  const Lock lock(mutex_);
  woken_ = true;
  if (link_) link_->wake();
  changed_.notify_all();
}

void Courier::drop() {
  const Lock lock(mutex_);
  dropped_ = true;
  outboxes_.clear();
  inboxes_.clear();
  bytes_on_the_way_ = 0;
  notes_ = notes_left_ = notes_flushing_ = 0;
}

}  // namespace chorale::cpu
