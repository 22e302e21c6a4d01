// This file finds transfers that MSCCL++ does wrongly.

#include "checks.hpp"

namespace chorale::mscclpp {
namespace {

/// Says what to do instead of waiting for a flush before a source is overwritten.
const std::string acknowledge = "use put_with_signal, and an acknowledgement by the peer";

}  // namespace

void get_offsets(const Plan& plan, Finder& find) {
  for_each_op(plan, [&](const Gpu&, const ThreadBlock& block, const Op& op, const Op*, OpPlace at) {
    if (op.code != Opcode::get) return;
    for (size_t k = 0; k < op.sources; ++k) {
      const uint64_t there = block.sources(op)[k].index, here = block.dests(op)[k].index;
      if (there == here) continue;
      find.add(at,
               "'get' reads from chunk " + number(there) + " of the peer to chunk " + number(here) +
                   " here, but MSCCL++ takes each offset for the other",
               "let the peer put, or place both at the same offset", path_of("src_buff", k).substr(1));
    }
  });
}

void put_sources(const Plan& plan, Finder& find) {
  for_each_op(plan, [&](const Gpu&, const ThreadBlock& block, const Op& op, const Op*, OpPlace at) {
    const Shape& row = shape(op.code);
    const bool transfer = row.sources.size() == 1 && row.sources[0].many && row.sources[0].role == Role::Read;
    if (!transfer) return;
    for (const Operand& source : block.sources(op)) {
      const uint32_t first = block.sources(op)[0].ref;
      if (source.ref == first) continue;
      find.add(at, name_of(op) + " reads from " + std::string(buffer_names[first]) + " and from " +
                       std::string(buffer_names[source.ref]) + ", but MSCCL++ takes all from " +
                       std::string(buffer_names[first]));
      return;
    }
  });
}

void port_packets(const Plan& plan, Finder& find) {
  for_each_op(plan, [&](const Gpu&, const ThreadBlock& block, const Op& op, const Op*, OpPlace at) {
    if (op.code != Opcode::put_packets || op.via != ChannelType::port) return;
    find.add(
        at,
        "'put_packets' reads " + count(block.sources(op)[0].size, "chunk") +
            " of plain data, but over a port channel MSCCL++ takes them for packets",
        "make packets with copy_packets and forward them with read_put_packets, or use a memory channel");
  });
}

void flush(const Plan& plan, Finder& find) {
  for_each_op(plan, [&](const Gpu&, const ThreadBlock&, const Op& op, const Op*, OpPlace at) {
    if (op.code != Opcode::flush) return;
    find.add(at, "'flush' waits for " + count(op.ids, "port channel") + ", but MSCCL++ waits for none",
             acknowledge);
  });
}

// As of commit 00668b4a, put and put_with_signal use the entry of the list of offsets, but
// put_with_signal_and_flush uses the list.
void put_with_signal_and_flush(const Plan& plan, Finder& find) {
  for_each_op(plan, [&](const Gpu&, const ThreadBlock& block, const Op& op, const Op*, OpPlace at) {
    if (op.code != Opcode::put_with_signal_and_flush) return;
    const Operand& source = block.sources(op)[0];
    find.add(at,
             name_of(op) + " reads from chunk " + number(source.index) + " of " +
                 std::string(buffer_names[source.ref]) +
                 ", but MSCCL++ takes the address of an array for its offset",
             acknowledge);
  });
}

}  // namespace chorale::mscclpp
