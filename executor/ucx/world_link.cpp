#include "world_link.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "executor/world/collective_try.hpp"
#include "executor/world/group.hpp"

namespace chorale::ucx {

enum class WorldLink::Word : uint32_t {
  message,
  bye,       ///< the sender leaves and needs nothing more; its messages have arrived
  bye_heard  ///< the answer to `bye`, after the answering rank's messages have arrived
};

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds goodbye_patience{1000};  // the wait for answers to our goodbye

/// Precedes each header. It is sent without conversion, because all hosts have the same architecture and
/// version.
struct Front {
  uint32_t word, from;
};
static_assert(sizeof(Front) == UcxLink::most_header - WorldLink::most_header);

}  // namespace

WorldLink::WorldLink(World& world, Events events)
    : world_(world),
      events_(std::move(events)),
      resets_(world.resets()),
      parting_(size_t(world.ranks())),
      met_(size_t(world.ranks())) {
  world::collective_try(world_, [&] {
    UcxLink::Events of_link;
    of_link.message = [this](std::span<const std::byte> bytes, Payload payload) {
      come(bytes, std::move(payload));
    };
    of_link.lost = [this](int peer, const std::string& why) { lose(peer, why); };
    of_link.too_large = [this](size_t bytes) { lack(bytes); };
    link_ = std::make_unique<UcxLink>(world_.ranks(), std::move(of_link));
  });
  std::vector<std::byte> mine;
  world::collective_try(world_, [&] { mine = link_->address(); });
  const auto all = world_.allgather(mine);
  for (int rank = 0; rank < world_.ranks(); ++rank) link_->connect(rank, all[size_t(rank)]);
}

WorldLink::~WorldLink() {
  quiet_ = true;
  const auto begun = Clock::now(), until = begun + goodbye_patience;
  const auto work = [this] {
    if (!progress()) link_->sleep(std::chrono::milliseconds(1));
  };
  // A connection must not end during a large message, because UCX 1.13 may then end the sending process. So
  // both words of a goodbye also tell that the sender's messages have arrived.
  while (link_->unsent_bytes() != 0 && Clock::now() < begun + goodbye_patience / 2) work();
  for (int peer = 0; peer < world_.ranks(); ++peer) {
    if (met_[size_t(peer)] && parting_[size_t(peer)] == Parting::none) say(peer, Word::bye, {}, {});
  }
  const auto unheard = [this] {
    for (size_t peer = 0; peer < met_.size(); ++peer) {
      if (met_[peer] && parting_[peer] == Parting::none) return true;
    }
    return !unanswered_.empty();
  };
  while (unheard() && Clock::now() < until) work();
  // Our answers to goodbyes may still be on the way.
  UcxLink::Flush flush;
  while (!link_->flushed(flush) && Clock::now() < until) link_->progress();
}

void WorldLink::connect(const std::vector<int>& peers) {
  for (const int peer : peers) met_[size_t(peer)] = true;
}

void WorldLink::send(int peer, std::span<const std::byte> header, Payload payload) {
  say(peer, Word::message, header, std::move(payload));
}

void WorldLink::say(int peer, Word word, std::span<const std::byte> header, Payload payload) {
  const Front front{uint32_t(word), uint32_t(world_.rank())};
  std::byte bytes[UcxLink::most_header];
  std::memcpy(bytes, &front, sizeof front);
  if (!header.empty()) std::memcpy(bytes + sizeof front, header.data(), header.size());
  met_[size_t(peer)] = true;
  link_->send(peer, {bytes, sizeof front + header.size()}, std::move(payload));
}

bool WorldLink::progress() {
  const bool any = link_->progress();
  if (!unanswered_.empty() && link_->unsent_bytes() == 0) {
    for (const int peer : std::exchange(unanswered_, {})) say(peer, Word::bye_heard, {}, {});
  }
  return any;
}

void WorldLink::come(std::span<const std::byte> bytes, Payload payload) {
  if (bytes.size() < sizeof(Front)) return;  // not a message of a WorldLink
  const Front front = world::read_as<Front>(bytes.first(sizeof(Front)));
  if (front.from >= parting_.size()) return;
  const int from = int(front.from);
  switch (Word(front.word)) {
    case Word::message:
      events_.message(from, bytes.subspan(sizeof front), std::move(payload));
      return;
    case Word::bye:
      parting_[front.from] = Parting::left;
      unanswered_.push_back(from);
      events_.left(from);
      return;
    case Word::bye_heard:
      if (parting_[front.from] == Parting::none) parting_[front.from] = Parting::heard;
      return;
  }
}

void WorldLink::lose(int peer, const std::string& why) {
  const bool left = std::exchange(parting_[size_t(peer)], Parting::left) != Parting::none;
  if (left || quiet_ || !current()) return;
  world_.group().raise(Stop::peer_lost, peer,
                       fmt::format("rank {}, on {}, died or can no longer be reached (UCX: {})", peer,
                                   world_.group().host_text(peer), why));
}

void WorldLink::lack(size_t bytes) {
  world_.abort(
      fmt::format("rank {} has no memory for a copy of a message of {} bytes between hosts: use more "
                  "instances of the plan, or smaller buffers",
                  world_.rank(), bytes));
}

}  // namespace chorale::ucx
