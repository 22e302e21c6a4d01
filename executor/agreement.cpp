#include "agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "world/group.hpp"

namespace chorale {
namespace {

/// The plain part of what a rank says; the numbers of bindings and the plan's name follow.
struct Head {
  uint64_t plan_hash = 0;
  uint64_t bytes = 0;
  uint32_t ranks = 0;
  int32_t dtype = 0, op = -1, packet = 0;
  uint32_t executor = 0;  ///< proposed
  uint32_t launches = 0, captured = 0;
  uint32_t evictable = 0;  ///< so many numbers
  uint32_t multicast = 0;
};

struct Said {
  Head head;
  std::vector<uint64_t> evictable;
  std::string name;

  std::vector<std::byte> to_bytes() const {
    const size_t numbers = evictable.size() * sizeof(uint64_t);
    std::vector<std::byte> bytes(sizeof head + numbers + name.size());
    std::memcpy(bytes.data(), &head, sizeof head);
    if (numbers) std::memcpy(bytes.data() + sizeof head, evictable.data(), numbers);
    if (!name.empty()) std::memcpy(bytes.data() + sizeof head + numbers, name.data(), name.size());
    return bytes;
  }

  explicit Said(const std::vector<std::byte>& bytes) {
    std::memcpy(&head, bytes.data(), std::min(sizeof head, bytes.size()));
    const size_t numbers = head.evictable * sizeof(uint64_t);
    if (bytes.size() < sizeof head + numbers) return;  // another version of this library: the hash differs
    evictable.resize(head.evictable);
    if (numbers) std::memcpy(evictable.data(), bytes.data() + sizeof head, numbers);
    name.assign(reinterpret_cast<const char*>(bytes.data()) + sizeof head + numbers,
                bytes.size() - sizeof head - numbers);
  }
  Said() = default;
};

std::string op_text(int32_t op) { return op < 0 ? "the plan's" : reduce_op_name(ReduceOp(op)); }
std::string packet_text(int32_t packet) { return std::string(packet_form_names[size_t(packet)]); }
std::string switch_text(uint32_t multicast) { return multicast ? "multicast" : "peer"; }
std::string plan_text(const Said& of) { return fmt::format("'{}' ({:016x})", of.name, of.head.plan_hash); }

/// Throws if `rank` is about to run something else than rank 0.
void compare(const Said& said, const Said& by_rank, size_t rank) {
  const Head &first = said.head, &other = by_rank.head;
  const auto differ = [rank](const char* what, const std::string& a, const std::string& b) {
    throw RunError(RunError::Reason::mismatch,
                   fmt::format("ranks 0 and {} disagree on {}: {} and {}", rank, what, a, b));
  };
  if (other.plan_hash != first.plan_hash) differ("the plan", plan_text(said), plan_text(by_rank));
  if (other.bytes != first.bytes) differ("bytes", std::to_string(first.bytes), std::to_string(other.bytes));
  if (other.dtype != first.dtype)
    differ("dtype", dtype_name(DType(first.dtype)), dtype_name(DType(other.dtype)));
  if (other.op != first.op) differ("op", op_text(first.op), op_text(other.op));
  if (other.packet != first.packet) differ("packet", packet_text(first.packet), packet_text(other.packet));
  if (other.multicast != first.multicast)
    differ("switch_channels", switch_text(first.multicast), switch_text(other.multicast));
  if (other.launches != first.launches && !other.captured && !first.captured) {
    differ(
        "the calls before this one, which one of them had bound before and the other had not: they have "
        "launched",
        std::to_string(first.launches), std::to_string(other.launches));
  }
}

}  // namespace

std::vector<uint64_t> agree_on_binding(World& world, const Plan& plan, const Call& call,
                                       LaunchCount& launches, const std::vector<uint64_t>& evictable) {
  Said mine;
  mine.head = {call.plan_hash,
               call.bytes,
               plan.ranks(),
               int32_t(call.dtype),
               call.op,
               int32_t(call.packet),
               launches.proposal(),
               launches.count(),
               launches.captured(),
               uint32_t(evictable.size()),
               call.multicast};
  mine.evictable = evictable;
  mine.name = plan.name;
  std::vector<Said> all;
  const auto ahead = [&launches] { return launches.ahead(); };
  for (const auto& bytes :
       world.group().allgather(world.rank(), mine.to_bytes(), world::Collective::binding, ahead))
    all.emplace_back(bytes);
  uint32_t executor = 0;
  for (const Said& said : all) executor = std::max(executor, said.head.executor);
  for (size_t rank = 1; rank < all.size(); ++rank) compare(all[0], all[rank], rank);
  if (!launches.numbered()) launches.number(executor);
  std::vector<uint64_t> common;
  for (const uint64_t number : all[0].evictable) {
    const bool everywhere = std::all_of(all.begin(), all.end(), [number](const Said& said) {
      return std::find(said.evictable.begin(), said.evictable.end(), number) != said.evictable.end();
    });
    if (everywhere) common.push_back(number);
  }
  return common;
}

void agree_on_use(World& world, const std::string& mine) {
  const auto all = world.allgather(std::as_bytes(std::span(mine.data(), mine.size())));
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty()) continue;
    if (!mine.empty()) throw UsageError(mine);
    throw UsageError(fmt::format(
        "rank {}: {}", rank, std::string(reinterpret_cast<const char*>(all[rank].data()), all[rank].size())));
  }
}

}  // namespace chorale
