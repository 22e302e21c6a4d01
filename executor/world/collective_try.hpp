/// \file
/// A collective step works on all ranks or on none. Values become the bytes of an exchange.
#pragma once

#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "../system/thrown.hpp"
#include "chorale/error.hpp"
#include "chorale/world.hpp"
#include "group.hpp"

namespace chorale::world {

/// Looks for a dead peer before this rank tells what it threw. A peer that died may have agreed before, so
/// that no rank misses it. Then its death is the cause, and not that peers cannot get something from it.
inline void look_for_the_cause(World& world, const std::optional<Thrown>& thrown) {
  if (thrown && !thrown->usage && thrown->reason == RunError::Reason::other) world.group().look_for_dead();
}

/// Collective: runs `step`. If it throws on one rank, this throws on all, with the lowest failing rank's
/// reason: see Thrown. But a UsageError stays one on the ranks that threw it.
template <class Step>
void collective_try(World& world, const Step& step) {
  const std::optional<Thrown> thrown = thrown_by(step);
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
