/// \file
/// Makes machines and plans whose times can be computed by hand.
#pragma once

#include <cstdint>

#include "chorale/simulate.hpp"
#include "tests/unit/compiler/helpers.hpp"

namespace chorale {

/// Returns a machine on which nothing takes time, to a picosecond. Each test sets the times that it needs.
inline Machine nothing_takes_time() {
  Machine machine;
  machine.name = "made up";
#define CHORALE_NS(name, summary) machine.name##_ns = 0;
#define CHORALE_GB_S(name, summary) machine.name##_gb_s = 1e9;
#define CHORALE_COUNT(name, summary) machine.name = 1e9;
#include "chorale/machine.def"
  return machine;
}

/// Gives the sizes of the buffers of two_ranks(): 8 chunks of 8000 bytes each.
constexpr uint64_t chunk_bytes = 8000, made_up_bytes = 8 * chunk_bytes;

constexpr double near = 0.01;  // nanoseconds

inline double ns_of(const Plan& plan, const Machine& machine, uint64_t bytes = made_up_bytes,
                    PacketForm packet = PacketForm::ll16) {
  return simulate(plan, {.bytes = bytes, .dtype = DType::u8, .packet = packet}, machine).ns;
}

/// Adds a put of chunk `chunk` of rank `rank`'s input to its peer's, by thread block `id`.
inline void add_put(Plan& plan, uint32_t rank, uint32_t id, uint64_t chunk) {
  add(block(plan, rank, id), Opcode::put, {in(chunk)}, {at(1, chunk)}, {}, ChannelType::memory);
}

/// Adds a signal of `rank` to its peer, which waits.
inline void add_hop(Plan& plan, uint32_t rank, Opcode signal = Opcode::signal, Opcode wait = Opcode::wait) {
  add(block(plan, rank), signal, {}, {}, {0}, ChannelType::memory);
  add(block(plan, 1 - rank), wait, {}, {}, {0}, ChannelType::memory);
}

}  // namespace chorale
