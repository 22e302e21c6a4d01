/// \file
/// Makes small plans for the tests of proofs, and returns the findings in them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "chorale/proof.hpp"
#include "tests/unit/compiler/helpers.hpp"

namespace chorale {

inline std::string place_of(const OpPlace& at) {
  return std::to_string(at.rank) + "." + std::to_string(at.threadblock) + "." + std::to_string(at.op);
}

/// Returns the names of all proofs except one, which is the only one to run.
inline std::vector<std::string> all_but(std::string_view proof) {
  std::vector<std::string> others(std::begin(proof_names), std::end(proof_names));
  std::erase(others, proof);
  return others;
}

/// Returns a line for each finding of one proof and each note: its text and "at rank.block.op".
inline std::string found(std::string_view proof, const Plan& plan) {
  const Diagnostics findings = prove_plan(plan, all_but(proof)).diagnostics();
  std::string text;
  for (const Diagnostic& finding : findings) {
    text += finding.text + (finding.at ? " at " + place_of(*finding.at) : "") + "\n";
    for (const Note& note : finding.notes) {
      text += "  " + note.text + (note.at ? " at " + place_of(*note.at) : "") + "\n";
    }
  }
  return text;
}

inline std::string races(const Plan& plan) { return found("races", plan); }
inline std::string replay(const Plan& plan) { return found("replay", plan); }

inline void copy(Plan& plan, const Operand& from, const Operand& to, uint32_t on = 0, uint32_t rank = 0) {
  add(block(plan, rank, on), Opcode::copy, {from}, {to});
}
/// Adds a put. `remote` is 0 input, 1 output, 2 scratch of the peer.
inline void put(Plan& plan, const Operand& from, uint32_t remote, uint64_t index, uint32_t rank = 0,
                uint32_t on = 0) {
  add(block(plan, rank, on), Opcode::put, {from}, {at(remote, index)}, {}, ChannelType::memory);
}
inline void nop(Plan& plan, uint32_t rank = 0, uint32_t on = 0) { add(block(plan, rank, on), Opcode::nop); }

/// Adds an operation on one channel, semaphore or barrier.
inline Op& control(Plan& plan, Opcode code, uint32_t id, uint32_t rank, uint32_t on = 0,
                   ChannelType via = ChannelType::memory) {
  return add(block(plan, rank, on), code, {}, {}, {id}, via);
}

/// Rank `from` signals, rank 1 - from waits.
inline void hand_over(Plan& plan, uint32_t from, uint32_t on = 0, bool relaxed = false) {
  control(plan, relaxed ? Opcode::relaxed_signal : Opcode::signal, 0, from, on);
  control(plan, relaxed ? Opcode::relaxed_wait : Opcode::wait, 0, 1 - from, on);
}

inline void sync(Plan& plan, uint32_t rank = 0) {
  for (uint32_t on = 0; on < 2; ++on) control(plan, Opcode::barrier, 0, rank, on).participants = 2;
}

}  // namespace chorale
