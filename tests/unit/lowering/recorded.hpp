/// \file
/// Lowers a plan for one rank, and shows the steps of its program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "chorale/layout.hpp"
#include "executor/lowering/lower.hpp"
#include "tests/unit/compiler/helpers.hpp"

namespace chorale::lowering {

/// Holds a step, with the contents of its page.
struct Seen {
  ProgramStep step;
  uint32_t page;
  const SyncItem* items;
  const ProgramPlace *plain, *packets;               ///< sources, then sinks
  std::shared_ptr<const std::vector<char>> program;  ///< keeps these alive
};

/// Returns two_ranks() with input and output in one piece each, so that only their last chunks may be short.
inline Plan two_wholes() {
  Plan plan = two_ranks();
  plan.collective = "allreduce";
  return plan;
}

/// Lowers rank 0. Buffers that are not passed have made-up addresses, because nothing runs here.
struct Recorded {
  BoundImage image;
  ProgramAddresses places;
  DeviceProgram program;

  static uint64_t base_of(size_t buffer) { return (buffer + 1) << 20; }

  Recorded(const Plan& plan, uint64_t bytes, uint64_t page_bytes = LowerOptions().page_bytes,
           uint64_t shift = 0, uint64_t loop_bytes = LowerOptions().loop_bytes)
      : Recorded(plan, layout_of(plan, bytes, DType::i32), page_bytes, shift, loop_bytes) {}
  Recorded(const Plan& plan, const Layout& layout, uint64_t page_bytes = LowerOptions().page_bytes,
           uint64_t shift = 0, uint64_t loop_bytes = LowerOptions().loop_bytes,
           PacketForm packet = PacketForm::ll8) {
    image = build_image(plan, 0, layout, DType::i32, {});
    for (size_t buffer = 2; buffer < image.buffers.size(); ++buffer) {
      image.buffers[buffer].base = reinterpret_cast<char*>(base_of(buffer) + shift);
    }
    for (size_t at = 0; at < image.channels.size(); ++at) {
      places.signals.push_back(reinterpret_cast<const Signal*>((uint64_t(1) << 40) + 4096 * at));
    }
    places.expected = reinterpret_cast<uint64_t*>(uint64_t(2) << 40);
    places.pushed = reinterpret_cast<uint64_t*>(uint64_t(3) << 40);
    places.completed = reinterpret_cast<const Signal*>(uint64_t(5) << 40);
    places.signals_at_peer.assign(image.channels.size(), reinterpret_cast<Signal*>(uint64_t(4) << 40));
    program = lower(image, places, packet,
                    {.page_bytes = page_bytes, .most_page_bytes = 160 << 10, .loop_bytes = loop_bytes});
  }

  std::vector<Seen> steps(uint32_t block = 0) const {
    std::vector<Seen> all;
    const auto kept = std::make_shared<const std::vector<char>>(program.bytes);
    const PageShape& shape = program.page;
    for (uint32_t page = 0; page < program.pages; ++page) {
      const char* const at = kept->data() + (uint64_t(block) * program.pages + page) * shape.bytes();
      const auto& header = *reinterpret_cast<const PageHeader*>(at);
      for (uint32_t step = 0; step < header.steps; ++step) {
        const ProgramStep& of = reinterpret_cast<const ProgramStep*>(at + sizeof header)[step];
        all.push_back({of, page, reinterpret_cast<const SyncItem*>(at + shape.items_at()) + of.first_item,
                       reinterpret_cast<const ProgramPlace*>(at + shape.plain_at()) + of.first_plain,
                       reinterpret_cast<const ProgramPlace*>(at + shape.packets_at()) + of.first_packets,
                       kept});
      }
      if (header.more == 0) break;
    }
    return all;
  }
};

}  // namespace chorale::lowering
