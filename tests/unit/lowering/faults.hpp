/// \file
/// Searches a device program for faults that a GPU would not report.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "executor/lowering/lower.hpp"

namespace chorale::test {

/// Holds a page with its places resolved for one turn of one launch.
struct SettledPage {
  const lowering::PageHeader& header;
  const lowering::ProgramStep* steps;
  const lowering::SyncItem* items;
  std::vector<Mem> plain;
  std::vector<char*> packets;

  SettledPage(const lowering::PageShape& shape, const char* from, uint64_t epoch, char* in, char* out,
              uint64_t turn = 0)
      : header(*reinterpret_cast<const lowering::PageHeader*>(from)),
        steps(reinterpret_cast<const lowering::ProgramStep*>(from + sizeof header)),
        items(reinterpret_cast<const lowering::SyncItem*>(from + shape.items_at())) {
    const auto* place = reinterpret_cast<const lowering::ProgramPlace*>(from + shape.plain_at());
    const auto* stride = reinterpret_cast<const uint64_t*>(from + shape.strides_at());
    for (uint32_t at = 0; at < shape.plain + shape.packets; ++at, ++place) {
      char* const address = place->settled(epoch, in, out) + (shape.strides != 0 ? turn * stride[at] : 0);
      if (at < shape.plain) {
        plain.emplace_back(static_cast<void*>(address), place->valid);
      } else {
        packets.push_back(address);
      }
    }
  }
};

/// Finds whole units that are not whole, and steps of one batch of which one accesses what another one
/// writes.
class Faults {
 public:
  Faults(const SettledPage& page, uint32_t odd, PacketForm packet)
      : page_(page), odd_(odd), packet_(packet) {}

  std::string find() const {
    for (uint32_t at = 0; at < page_.header.steps; ++at) {
      const lowering::ProgramStep& step = page_.steps[at];
      if (step.kind < lowering::ProgramStepKind::copy) continue;
      std::string fault = units(step);
      if (fault.empty()) fault = batch(at);
      if (!fault.empty()) return "operation " + std::to_string(step.op) + ": " + fault;
    }
    return "";
  }

 private:
  /// Returns the first of the plain sinks, and the end of them.
  static std::pair<uint32_t, uint32_t> sinks(const lowering::ProgramStep& step) {
    using lowering::ProgramStepKind;
    const uint32_t sources = step.kind == ProgramStepKind::reduce           ? 1u + step.n
                             : step.kind == ProgramStepKind::reduce_packets ? (step.own != 0 ? 1u : 0u)
                             : step.kind == ProgramStepKind::unpack         ? 0u
                                                                            : 1u;
    return {step.first_plain + sources, step.first_plain + sources + step.plain_sinks};
  }

  std::string units(const lowering::ProgramStep& step) const {
    if (!step.whole || (step.passed & odd_) != 0) return "";
    if (step.bytes % unit_bytes != 0) return "whole units, and a tail";
    for (uint32_t at = step.first_plain; at < sinks(step).second; ++at) {
      const Mem& place = page_.plain[at];
      if (has_lines(step) && place.valid != page_.plain[step.first_plain].valid && place.valid < step.bytes)
        return "places with different ends";
      if (has_lines(step) && place.valid == 0) continue;
      if (!place.data || reinterpret_cast<uint64_t>(place.data) % unit_bytes != 0)
        return "whole units at an odd address";
      if (place.valid >= step.bytes) continue;
      if (!has_lines(step)) return "whole units that do not exist";
      if (place.valid % unit_bytes != 0) return "a unit of which a part exists";
    }
    return "";
  }

  /// Returns true if a step has LL128 packets. The last of its lines may be padded.
  bool has_lines(const lowering::ProgramStep& step) const {
    using lowering::ProgramStepKind;
    return packet_ == PacketForm::ll128 && (step.packet_sinks != 0 || step.kind == ProgramStepKind::unpack ||
                                            step.kind == ProgramStepKind::reduce_packets);
  }

  bool touch(uint32_t a, uint32_t b, uint64_t bytes) const {
    const char *const one = page_.plain[a].data, *const other = page_.plain[b].data;
    return one && other && one < other + bytes && other < one + bytes;
  }

  std::string batch(uint32_t at) const {
    const lowering::ProgramStep& first = page_.steps[at];
    const auto [begin, end] = sinks(first);
    for (uint32_t next = at + 1; next < at + first.batch; ++next) {
      const lowering::ProgramStep& other = page_.steps[next];
      if (other.kind != first.kind || other.bytes != first.bytes) return "a batch of steps that differ";
      const auto [other_begin, other_end] = sinks(other);
      for (uint32_t a = first.first_plain; a < end; ++a) {
        for (uint32_t b = other.first_plain; b < other_end; ++b) {
          if ((a >= begin || b >= other_begin) && touch(a, b, first.bytes))
            return "a step of its batch touches what another one writes";
        }
      }
    }
    return "";
  }

  const SettledPage& page_;
  const uint32_t odd_;  ///< 1: the input is not aligned; 2: the output
  const PacketForm packet_;
};

/// Returns the fault of a program, for launches with this input and output; empty if there is none.
inline std::string fault_of(const lowering::DeviceProgram& program, PacketForm packet, char* in, char* out) {
  const auto misaligned = [](const char* at) { return reinterpret_cast<uint64_t>(at) % unit_bytes != 0; };
  const uint32_t odd = (misaligned(in) ? 1u : 0u) | (misaligned(out) ? 2u : 0u);
  for (uint64_t page = 0; page < uint64_t(program.blocks) * program.pages; ++page) {
    for (const uint64_t epoch : {1, 2}) {
      const SettledPage settled(program.page, program.bytes.data() + page * program.page.bytes(), epoch, in,
                                out);
      const std::string fault = Faults(settled, odd, packet).find();
      if (!fault.empty()) return fault;
    }
  }
  return "";
}

}  // namespace chorale::test
