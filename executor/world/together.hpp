/// \file
/// Collective steps that work on all ranks or on none, and values as the bytes of an exchange.
#pragma once

#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "chorale/error.hpp"
#include "chorale/world.hpp"
#include "group.hpp"
#include "thrown.hpp"

namespace chorale::world {

/// Before this rank tells what it threw. Who has died may have agreed before, so that nobody misses it: what
/// peers then cannot have of it is not what is wrong.
inline void look_for_the_cause(World& world, const std::optional<Thrown>& thrown) {
  if (thrown && !thrown->usage && thrown->reason == RunError::Reason::other) world.group().look_for_dead();
}

/// Collective. Runs `step`; throws on all ranks, with the lowest failing rank's reason, if it throws on one:
/// see Thrown. But a UsageError stays one on the ranks that threw it.
template <class Step>
void together(World& world, const Step& step) {
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
