/// \file
/// Collective steps that work on all ranks or on none, and values as the bytes of an exchange.
#pragma once

#include <cstring>
#include <new>
#include <optional>
#include <span>
#include <string>

#include "chorale/error.hpp"
#include "chorale/world.hpp"
#include "group.hpp"
#include "thrown.hpp"

namespace chorale::world {

/// Collective. Runs `step`; throws on all ranks, with the lowest failing rank's reason, if it throws on one.
/// What is no RunError has the reason `resources` if memory ran out, else `other`; but a UsageError stays one
/// on the ranks that threw it.
template <class Step>
void together(World& world, const Step& step) {
  std::optional<std::string> error, usage;
  RunError::Reason reason = RunError::Reason::other;
  try {
    step();
  } catch (const RunError& failed) {
    error = failed.what();
    reason = failed.reason;
  } catch (const std::bad_alloc&) {
    error = "out of memory";
    reason = RunError::Reason::resources;
  } catch (const UsageError& wrong) {
    error = usage = wrong.what();
  } catch (...) {
    error = thrown_text();
  }
  // Who has died may have agreed before, so that nobody misses it: what peers then cannot have of it is not
  // what is wrong.
  if (error && !usage && reason == RunError::Reason::other) world.group().look_for_dead();
  try {
    world.agree(error, reason);
  } catch (const RunError&) {
    if (usage) throw UsageError(*usage);
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
