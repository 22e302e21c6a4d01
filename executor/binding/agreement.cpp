#include "agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "chorale/byte_count.hpp"
#include "chorale/error.hpp"
#include "executor/world/collective_try.hpp"
#include "executor/world/group.hpp"

namespace chorale {

namespace {

using system::Thrown;

/// Tells what kind of exception a rank threw.
enum class Kind : uint8_t { nothing, usage, run };

Kind kind_of(const std::optional<Thrown>& thrown) {
  if (!thrown) return Kind::nothing;
  return thrown->usage ? Kind::usage : Kind::run;
}

/// Throws the exception of `rank`, if there is one. A UsageError of this rank takes precedence.
void pass_on(const std::optional<Thrown>& thrown, size_t rank, const std::optional<Thrown>& mine) {
  if (!thrown) return;
  if (mine && mine->usage) throw UsageError(mine->text);
  const std::string text = fmt::format("rank {}: {}", rank, thrown->text);
  if (thrown->usage) throw UsageError(text);
  throw RunError(thrown->reason, text);
}

/// Represents the fixed part of a rank's message. The numbers of bindings and a text follow it.
struct Head {
  uint64_t plan_hash = 0;
  uint64_t bytes = 0, part_distance = 0, round_scratch = 0, scratch = 0;
  uint32_t ranks = 0;
  int32_t dtype = 0, op = -1, packet = 0;
  uint32_t executor = 0;  ///< the proposed number of the executor
  uint32_t launches = 0, captured = 0;
  uint32_t evictable = 0;  ///< the count of numbers that follow
  uint32_t multicast = 0, bindings = 0;
  Kind thrown = Kind::nothing;
  RunError::Reason reason = RunError::Reason::other;
};

struct Said {
  Head head;
  std::vector<uint64_t> evictable;
  std::string text;  ///< the plan's name, or the reason why the rank cannot bind

  std::vector<std::byte> to_bytes() const {
    const size_t numbers = evictable.size() * sizeof(uint64_t);
    std::vector<std::byte> bytes(sizeof head + numbers + text.size());
    std::memcpy(bytes.data(), &head, sizeof head);
    if (numbers) std::memcpy(bytes.data() + sizeof head, evictable.data(), numbers);
    if (!text.empty()) std::memcpy(bytes.data() + sizeof head + numbers, text.data(), text.size());
    return bytes;
  }

  explicit Said(const std::vector<std::byte>& bytes) {
    std::memcpy(&head, bytes.data(), std::min(sizeof head, bytes.size()));
    const size_t numbers = head.evictable * sizeof(uint64_t);
    // A peer with another version of this library may send fewer bytes. Its hash then differs.
    if (bytes.size() < sizeof head + numbers) return;
    evictable.resize(head.evictable);
    if (numbers) std::memcpy(evictable.data(), bytes.data() + sizeof head, numbers);
    text.assign(reinterpret_cast<const char*>(bytes.data()) + sizeof head + numbers,
                bytes.size() - sizeof head - numbers);
  }
  Said() = default;

  std::optional<Thrown> thrown() const {
    if (head.thrown == Kind::nothing) return std::nullopt;
    return Thrown{text, head.thrown == Kind::usage, head.reason};
  }
};

// A peer with another version of this library may send a number that this version does not know.
std::string dtype_text(int32_t dtype) {
  return size_t(dtype) < std::size(all_dtypes) ? dtype_name(DType(dtype)) : std::to_string(dtype);
}
std::string op_text(int32_t op) {
  if (op < 0) return "the plan's";
  return size_t(op) < std::size(all_reduce_ops) ? reduce_op_name(ReduceOp(op)) : std::to_string(op);
}
std::string packet_text(int32_t packet) {
  return size_t(packet) < std::size(packet_form_names) ? std::string(packet_form_names[size_t(packet)])
                                                       : std::to_string(packet);
}
std::string switch_text(uint32_t multicast) { return multicast ? "multicast" : "peer"; }
std::string plan_text(const Said& of) { return fmt::format("'{}' ({:016x})", of.text, of.head.plan_hash); }

/// Throws if `rank` is about to bind another call than rank 0.
void compare(const Said& said, const Said& by_rank, size_t rank) {
  const Head &first = said.head, &other = by_rank.head;
  const auto differ = [rank](const char* what, const std::string& a, const std::string& b) {
    throw RunError(RunError::Reason::mismatch,
                   fmt::format("ranks 0 and {} disagree on {}: {} and {}", rank, what, a, b));
  };
  if (other.plan_hash != first.plan_hash) differ("the plan", plan_text(said), plan_text(by_rank));
  if (other.bytes != first.bytes) differ("bytes", std::to_string(first.bytes), std::to_string(other.bytes));
  if (other.part_distance != first.part_distance) {
    differ("the bytes of a part", std::to_string(first.part_distance), std::to_string(other.part_distance));
  }
  if (other.dtype != first.dtype) differ("dtype", dtype_text(first.dtype), dtype_text(other.dtype));
  if (other.op != first.op) differ("op", op_text(first.op), op_text(other.op));
  if (other.packet != first.packet) differ("packet", packet_text(first.packet), packet_text(other.packet));
  if (other.multicast != first.multicast)
    differ("switch_channels", switch_text(first.multicast), switch_text(other.multicast));
  // Ranks with different limits would drop different bindings, and then wait for each other.
  if (other.bindings != first.bindings)
    differ("bindings", std::to_string(first.bindings), std::to_string(other.bindings));
  if (other.round_scratch != first.round_scratch)
    differ("round_scratch", byte_count_text(first.round_scratch), byte_count_text(other.round_scratch));
  if (other.scratch != first.scratch)
    differ("scratch", byte_count_text(first.scratch), byte_count_text(other.scratch));
  if (other.launches != first.launches && !other.captured && !first.captured) {
    differ(
        "the calls before this one, which one of them had bound before and the other had not: they have "
        "launched",
        std::to_string(first.launches), std::to_string(other.launches));
  }
}

}  // namespace

std::vector<uint64_t> agree_on_binding(World& world, const Plan& plan, const Call& call,
                                       LaunchCount& launches, const std::vector<uint64_t>& evictable,
                                       const std::optional<Thrown>& cannot) {
  Said mine;
  mine.head = {call.plan_hash,
               call.bytes,
               call.part_distance,
               call.round_scratch,
               call.scratch,
               plan.ranks(),
               int32_t(call.dtype),
               call.op,
               int32_t(call.packet),
               launches.proposal(),
               launches.count(),
               launches.captured(),
               uint32_t(evictable.size()),
               call.multicast,
               call.bindings,
               kind_of(cannot),
               cannot ? cannot->reason : RunError::Reason::other};
  mine.evictable = evictable;
  mine.text = cannot ? cannot->text : plan.name;
  world::look_for_the_cause(world, cannot);
  std::vector<Said> all;
  const auto ahead = [&] {
    const std::string why = launches.ahead();
    return why.empty() || !cannot ? why : fmt::format("{}; and it cannot: {}", why, cannot->text);
  };
  for (const auto& bytes :
       world.group().allgather(world.rank(), mine.to_bytes(), world::Collective::binding, ahead))
    all.emplace_back(bytes);
  for (size_t rank = 0; rank < all.size(); ++rank) pass_on(all[rank].thrown(), rank, cannot);
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

void agree_on_use(World& world, const std::function<void()>& step) {
  const std::optional<Thrown> mine = system::thrown_by(step);
  world::look_for_the_cause(world, mine);
  Said said;
  said.head.thrown = kind_of(mine);
  if (mine) {
    said.head.reason = mine->reason;
    said.text = mine->text;
  }
  const auto all = world.allgather(said.to_bytes());
  for (size_t rank = 0; rank < all.size(); ++rank) pass_on(Said(all[rank]).thrown(), rank, mine);
}

void require_scratch(const Plan& plan, const Call& call, uint64_t bytes, uint64_t kept) {
  if (call.scratch == 0 || bytes + kept <= call.scratch) return;
  const std::string beside =
      kept == 0
          ? ""
          : fmt::format(", in addition to {} bytes of calls whose launches or graphs still need them", kept);
  throw RunError(
      RunError::Reason::resources,
      fmt::format("plan '{}': a message of {} bytes takes {} bytes of scratch on a rank{}, but the "
                  "setting scratch allows an executor {}\n  help: set CHORALE_SCRATCH to {} or more "
                  "on all ranks, or lower CHORALE_ROUND_SCRATCH ({}){}",
                  plan.name, call.bytes, bytes, beside, byte_count_text(call.scratch), bytes + kept,
                  byte_count_text(call.round_scratch),
                  kept == 0 ? "" : ", or destroy graphs that you no longer need"));
}

}  // namespace chorale
