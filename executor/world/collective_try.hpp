/// \file
/// collective_try() runs a step that succeeds on all ranks or fails on all. bytes_of() and read_as() convert
/// values for an exchange.
#pragma once

#include <cstring>
#include <optional>
#include <span>

#include "chorale/error.hpp"
#include "chorale/world.hpp"
#include "executor/system/thrown.hpp"
#include "group.hpp"

namespace chorale::world {

/// Looks for a dead peer before this rank reports an error. A peer may die after it has agreed, so no barrier
/// notices it. If this rank then cannot open something of that peer, the peer's death is the real cause.
inline void look_for_the_cause(World& world, const std::optional<system::Thrown>& thrown) {
  if (thrown && !thrown->usage && thrown->reason == RunError::Reason::other) world.group().look_for_dead();
}

/// Runs `step` on all ranks; collective. If it throws on one rank, this throws a RunError on all ranks, with
/// the reason of the lowest failing rank (see Thrown). A rank whose step threw a UsageError throws a
/// UsageError.
template <class Step>
void collective_try(World& world, const Step& step) {
  const std::optional<system::Thrown> thrown = system::thrown_by(step);
  look_for_the_cause(world, thrown);
  try {
    thrown ? world.agree(thrown->text, thrown->reason) : world.agree(std::nullopt);
  } catch (const RunError&) {
    if (thrown && thrown->usage) throw UsageError(thrown->text);
    throw;
  }
}

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

template <class T>
T read_as(std::span<const std::byte> bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

}  // namespace chorale::world
