#include "chorale/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "carrier.hpp"
#include "executor/system/fork.hpp"
#include "executor/system/one_call.hpp"
#include "executor/world/collective_try.hpp"
#include "executor/world/group.hpp"

namespace chorale {

using namespace exchange;

namespace {

void check_message(const World& world, const char* what, const void* data, uint64_t bytes, int peer) {
  if (peer < 0 || peer >= world.ranks()) {
    throw UsageError(
        fmt::format("{} of {} bytes: there is no rank {}: there are {}", what, bytes, peer, world.ranks()));
  }
  // The library computes positions up to about a slot after the end of a message, which must not overflow.
  if (bytes > ~uint64_t{0} >> 1)
    throw UsageError(fmt::format("{} of {} bytes: that is more than any memory holds", what, bytes));
  if (!data && bytes != 0) {
    throw UsageError(fmt::format("{} of {} bytes, peer {}: the pointer is null", what, bytes, peer));
  }
}

/// Checks this rank's messages to itself, because no later call could match them.
void check_own(int self, std::span<const SendTo> sends, std::span<const RecvFrom> recvs) {
  std::vector<uint64_t> sent, received;
  for (const SendTo& send : sends)
    if (send.peer == self) sent.push_back(send.bytes);
  for (const RecvFrom& recv : recvs)
    if (recv.peer == self) received.push_back(recv.bytes);
  if (sent.size() != received.size()) {
    throw UsageError(fmt::format(
        "rank {} sends {} messages to itself and receives {}: a call must receive the messages that a rank "
        "sends to itself in this call",
        self, sent.size(), received.size()));
  }
  for (size_t at = 0; at < sent.size(); ++at) {
    if (sent[at] == received[at]) continue;
    throw UsageError(fmt::format(
        "rank {} sends {} bytes to itself and receives {}, as message {}: give both the same size", self,
        sent[at], received[at], at));
  }
}

/// Refuses memory that two messages receive into, or that one message receives into while another sends from
/// it, because the result would depend on timing. The only exception is a message from a rank to itself that
/// stays in place.
void check_overlaps(int self, std::span<const SendTo> sends, std::span<const RecvFrom> recvs) {
  if (recvs.empty() || sends.size() + recvs.size() < 2) return;
  struct Part {
    uintptr_t begin, end;
    int peer;
    bool received;
  };
  std::vector<Part> parts;
  parts.reserve(sends.size() + recvs.size());
  const auto add = [&](const void* data, uint64_t bytes, int peer, bool received) {
    const auto begin = reinterpret_cast<uintptr_t>(data);
    if (bytes != 0) parts.push_back({begin, begin + bytes, peer, received});
  };
  for (const SendTo& send : sends) add(send.data, send.bytes, send.peer, false);
  for (const RecvFrom& recv : recvs) add(recv.data, recv.bytes, recv.peer, true);
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.begin < b.begin; });
  // It is enough to compare with one earlier part of each kind: the part that ends last.
  const Part* furthest[2] = {nullptr, nullptr};
  for (const Part& part : parts) {
    for (const Part* before : furthest) {
      if (!before || before->end <= part.begin || !(before->received || part.received)) continue;
      if (part.peer == self && before->peer == self && part.begin == before->begin &&
          part.end == before->end && before->received != part.received)
        continue;
      const Part& into = part.received ? part : *before;
      const Part& other = part.received ? *before : part;
      throw UsageError(fmt::format(
          "the memory received from rank {}, [{:#x}, {:#x}), overlaps memory {} rank {} in the same call, "
          "[{:#x}, {:#x}): use separate memory",
          into.peer, into.begin, into.end, other.received ? "received from" : "sent to", other.peer,
          other.begin, other.end));
    }
    const Part*& reached = furthest[part.received];
    if (!reached || reached->end < part.end) reached = &part;
  }
}

/// Returns why these options are not allowed; "" if they are.
std::string wrong(const ExchangeOptions& options, const std::string& backend, int ranks) {
  if (backend != "cpu" && backend != "cuda")
    return fmt::format("backend '{}': it must be 'cpu' or 'cuda'", backend);
  if (options.slot_bytes != 0 && (options.slot_bytes < 16 || options.slot_bytes > uint64_t{1} << 31))
    return fmt::format("slot_bytes is {}: it must be from 16 to 2 GiB, or 0", options.slot_bytes);
  if (options.slots > 256) return fmt::format("slots is {}: it must be from 1 to 256, or 0", options.slots);
  const int most = std::min(1024, 65535 / (2 * ranks));
  if (options.blocks_per_peer > uint32_t(most)) {
    return fmt::format("blocks_per_peer is {}: with {} ranks it must be from 1 to {}, or 0",
                       options.blocks_per_peer, ranks, most);
  }
  return "";
}

/// Checks that all ranks have the same options, and that these are allowed; collective.
void agree_on_options(World& world, const ExchangeOptions& options, const std::string& backend) {
  const std::string mine = fmt::format("{} slots of {} bytes, {} blocks per peer, backend {}", options.slots,
                                       options.slot_bytes, options.blocks_per_peer, backend);
  const auto all = world.allgather(std::as_bytes(std::span(mine.data(), mine.size())));
  const auto text = [&](size_t rank) {
    return std::string(reinterpret_cast<const char*>(all[rank].data()), all[rank].size());
  };
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    throw RunError(
        RunError::Reason::mismatch,
        fmt::format("the ranks make different exchanges: rank 0 {}, rank {} {} (0: the default); they must "
                    "be the same",
                    text(0), rank, text(rank)));
  }
  if (const std::string why = wrong(options, backend, world.ranks()); !why.empty())
    throw UsageError("an exchange: " + why);
}

}  // namespace

std::string exchange::describe(const Report& report, int self, int peer, bool receives, uint32_t channel) {
  if (receives && report.sent != report.bytes) {
    return fmt::format(
        "rank {} sends {} bytes to rank {}, which receives {}: messages between two ranks match in "
        "order, and both ranks must name the same size",
        peer, report.sent, self, report.bytes);
  }
  return fmt::format(
      "rank {} {} a message of {} bytes {} rank {}, channel {}, but rank {} did not take part in time", self,
      receives ? "receives" : "sends", report.bytes, receives ? "from" : "to", peer, channel, peer);
}

struct Exchange::State {
  World& world;
  std::atomic<bool> in_use{false};
  const system::Origin origin;
  uint64_t resets;  ///< the world's resets() when the rings were last cleared
  std::unique_ptr<Carrier> carrier;

  State(World& of, const ExchangeOptions& options, const Config& config) : world(of), resets(of.resets()) {
    const std::string backend = config.backend;
    agree_on_options(of, options, backend);
    carrier = backend == "cuda" ? cuda_carrier(of, options, config) : cpu_carrier(of, options);
  }

  void require_new() const {
    if (resets == world.resets()) return;
    throw UsageError(
        "the world was reset, but the exchange was not, so leftovers in its rings would be taken for data: "
        "call Exchange::reset() on all ranks");
  }
};

Exchange::Exchange(World& world, const ExchangeOptions& options, const Config& config)
    : state_((world.group().require_one_host("Exchange"), std::make_unique<State>(world, options, config))) {}
Exchange::~Exchange() { system::keep_if_forked(state_); }
Exchange::Exchange(Exchange&&) noexcept = default;
Exchange& Exchange::operator=(Exchange&& other) noexcept {
  system::replace(state_, other.state_);
  return *this;
}

void Exchange::exchange(std::span<const SendTo> sends, std::span<const RecvFrom> recvs, void* stream) {
  const OneCall call(state_->in_use, "an exchange");
  check();
  state_->require_new();
  World& world = state_->world;
  Carrier& carrier = *state_->carrier;
  for (const SendTo& send : sends) {
    check_message(world, "a send", send.data, send.bytes, send.peer);
    carrier.require_readable(send.data);
  }
  for (const RecvFrom& recv : recvs) {
    check_message(world, "a receive", recv.data, recv.bytes, recv.peer);
    carrier.require_readable(recv.data);
  }
  check_own(world.rank(), sends, recvs);
  check_overlaps(world.rank(), sends, recvs);
  for (const Launch& launch : launches_of(sends, recvs, carrier.links(), carrier.most_messages()))
    carrier.run(launch, stream);
}

void Exchange::send(const void* data, uint64_t bytes, int peer, void* stream) {
  const SendTo message{data, bytes, peer};
  exchange({&message, 1}, {}, stream);
}
void Exchange::recv(void* data, uint64_t bytes, int peer, void* stream) {
  const RecvFrom message{data, bytes, peer};
  exchange({}, {&message, 1}, stream);
}

void Exchange::check() { state_->carrier->check(); }
void Exchange::synchronize(void* stream) { state_->carrier->synchronize(stream); }

void Exchange::reset() {
  const OneCall call(state_->in_use, "an exchange");
  state_->carrier->reset();
  state_->resets = state_->world.resets();
}

}  // namespace chorale
