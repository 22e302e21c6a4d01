#include "costs.hpp"

#include <algorithm>

namespace chorale::simulation {
namespace {

/// Returns how many bytes of the message are before a position in a buffer. Segments may end before their
/// last chunk does.
double valid_until(double nominal, const Layout& layout) {
  const double segment = double(layout.segment_nominal());
  const double before = segment > 0 ? double(uint64_t(nominal / segment)) : 0;
  return before * double(layout.segment_bytes) +
         std::min(nominal - before * segment, double(layout.segment_bytes));
}

double bytes_of(const Move& move, double atom_bytes, const Layout& layout) {
  if (move.buffer == BufferKind::scratch) return double(move.end - move.begin) * atom_bytes;
  return valid_until(double(move.end) * atom_bytes, layout) -
         valid_until(double(move.begin) * atom_bytes, layout);
}

struct PacketRates {
  double read, write, link;
};

PacketRates packet_rates(const Machine& machine, PacketForm form) {
  switch (form) {
    case PacketForm::ll8:
      return {machine.block_ll8_read_gb_s, machine.block_ll8_write_gb_s, machine.link_ll8_gb_s};
    case PacketForm::ll16:
      return {machine.block_ll16_read_gb_s, machine.block_ll16_write_gb_s, machine.link_ll16_gb_s};
    case PacketForm::ll128:
      break;
  }
  return {machine.block_ll128_read_gb_s, machine.block_ll128_write_gb_s, machine.link_ll128_gb_s};
}

/// \param coded_part  the bytes of an encoded operand, relative to those of a plain one
Cost cost_of(const Move& move, double bytes, const Machine& machine, PacketForm form, double coded_part) {
  const PacketPayload payload = payload_of(form);
  const double stored = bytes * payload.stored / payload.bytes;
  const PacketRates packets = packet_rates(machine, form);
  Cost cost;
  cost.bytes = bytes;
  if (bytes == 0) return cost;
  if (move.reads + move.packet_reads) cost.latency_ns = machine.read_ns;
  if (move.packet_reads && form == PacketForm::ll128) cost.latency_ns += machine.line_ns;
  if (move.gets) cost.latency_ns = std::max(cost.latency_ns, machine.remote_read_ns);
  const int operands = move.reads + move.writes + move.gets + move.puts + move.packet_reads +
                       move.packet_writes + move.packet_puts;
  cost.latency_ns += machine.operand_ns * std::max(0, operands - 2);
  // Encoded operands count as the part of an operand that they are.
  const auto whole = [&](uint16_t operands, uint16_t coded) { return operands - coded * (1 - coded_part); };
  const double reads = whole(move.reads, move.coded_reads), writes = whole(move.writes, move.coded_writes),
               gets = whole(move.gets, move.coded_gets), puts = whole(move.puts, move.coded_puts);
  // A thread loads operands that it combines at once, so one more of them costs less than the first.
  const bool at_once = move.combined != 0;
  const double loads = at_once ? std::max(std::min(1.0, reads) / machine.block_read_gb_s,
                                          std::min(1.0, gets) / machine.block_get_gb_s)
                               : reads / machine.block_read_gb_s + gets / machine.block_get_gb_s;
  cost.block_ns = bytes * (loads + writes / machine.block_write_gb_s + puts / machine.block_put_gb_s) +
                  stored * move.packet_writes / machine.block_write_gb_s;
  if (move.packet_reads == 0) {
    cost.block_ns += bytes * move.combined / machine.block_reduce_gb_s;
  } else {
    cost.block_ns +=
        stored * (1 / packets.read + (move.packet_reads - 1) / machine.block_packets_beside_gb_s);
  }
  cost.send_ns = stored * move.packet_puts / packets.write;
  cost.memory_ns =
      ((reads + writes) * bytes + (move.packet_reads + move.packet_writes) * stored) / machine.memory_gb_s;
  const auto set_traffic = [&](Peer::Traffic of, double over, double rate) {
    cost.traffic_ns[size_t(of)] = over / rate;
    cost.peer_memory_ns[size_t(of)] = over / machine.memory_gb_s;
    cost.traffic_bytes[size_t(of)] = over;
  };
  // A move has one size per kind of traffic: the mean of its operands.
  set_traffic(Peer::Traffic::get, move.gets ? bytes * gets / move.gets : bytes, machine.link_get_gb_s);
  set_traffic(Peer::Traffic::put, move.puts ? bytes * puts / move.puts : bytes, machine.link_put_gb_s);
  set_traffic(Peer::Traffic::packets, stored, packets.link);
  cost.copy_engine_ns = bytes / machine.link_copy_engine_gb_s;
  return cost;
}

}  // namespace

std::vector<double> coded_parts_of(const Plan& plan, DType dtype) {
  std::vector<double> parts;
  for (const Codec& codec : plan.extension.codecs)
    parts.push_back(double(codec.block_bytes()) / double(codec.block * dtype_size(dtype)));
  return parts;
}

std::vector<Cost> list_costs(const Recording& recording, const Layout& layout, const Machine& machine,
                             PacketForm form, const std::vector<double>& coded_parts) {
  const double atom_bytes = double(layout.chunk_bytes) / double(recording.message.chunk);
  std::vector<Cost> costs;
  costs.reserve(recording.moves.size());
  for (const Move& move : recording.moves)
    costs.push_back(cost_of(move, bytes_of(move, atom_bytes, layout), machine, form,
                            move.codec ? coded_parts[move.codec - 1] : 1));
  return costs;
}

}  // namespace chorale::simulation
