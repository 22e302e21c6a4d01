#pragma once
/// \file
/// Readers, writers, checks and rewrites use the op table in this form. It says the role of each operand of
/// an operation, and what its ids name.

#include <cstddef>
#include <cstdint>
#include <span>

#include "chorale/plan.hpp"

namespace chorale {

/// Says what the Op::ids of an operation name.
enum class IdKind : uint8_t { none, channel, semaphore, barrier };

/// Holds one row of the op table, with its fields sorted by kind.
struct Shape {
  std::span<const Field> sources, dests;
  uint32_t roles = 0;  ///< bits, by Role

  static constexpr uint32_t bit(Role role) { return uint32_t(1) << uint32_t(role); }
  constexpr bool has(Role role) const { return roles & bit(role); }
  constexpr bool has_any(uint32_t bits) const { return roles & bits; }

  /// Returns the field of the operand at `position` of sources or dests; null if the row has no such list.
  /// Operands past the end of the list belong to its last field.
  constexpr const Field* field(bool in_dst, size_t position) const {
    const std::span<const Field> fields = in_dst ? dests : sources;
    if (fields.empty()) return nullptr;
    return &fields[position < fields.size() ? position : fields.size() - 1];
  }
};

extern const Shape* const shapes;  ///< by Opcode
inline const Shape& shape(Opcode code) { return shapes[size_t(code)]; }

inline constexpr uint32_t channel_roles = Shape::bit(Role::Channels) | Shape::bit(Role::Post) |
                                          Shape::bit(Role::PostRelaxed) | Shape::bit(Role::Await) |
                                          Shape::bit(Role::AwaitRelaxed) | Shape::bit(Role::Drain);
inline constexpr uint32_t post_roles = Shape::bit(Role::Post) | Shape::bit(Role::PostRelaxed);
inline constexpr uint32_t await_roles = Shape::bit(Role::Await) | Shape::bit(Role::AwaitRelaxed);
inline constexpr uint32_t packet_roles = Shape::bit(Role::PacketRead) | Shape::bit(Role::PacketWrite) |
                                         Shape::bit(Role::RemotePacketWrite) |
                                         Shape::bit(Role::SwitchPacketWrite);
inline constexpr uint32_t switched_roles =
    Shape::bit(Role::SwitchRead) | Shape::bit(Role::SwitchWrite) | Shape::bit(Role::SwitchPacketWrite);

inline IdKind id_kind(const Shape& row, ChannelType via) {
  if (row.has_any(channel_roles)) return IdKind::channel;
  if (row.has(Role::PortChannels) && has_proxy(via)) return IdKind::channel;
  if (row.has(Role::Acquire) || row.has(Role::Release)) return IdKind::semaphore;
  return row.has(Role::Arrive) ? IdKind::barrier : IdKind::none;
}

/// Calls visit(const Field&, const Operand&) for each operand, sources first.
template <class Visit>
void for_each_operand(const ThreadBlock& block, const Op& op, Visit&& visit) {
  const Shape& row = shape(op.code);
  for (const bool in_dst : {false, true}) {
    const std::span<const Operand> operands = in_dst ? block.dests(op) : block.sources(op);
    for (size_t position = 0; position < operands.size(); ++position) {
      if (const Field* field = row.field(in_dst, position)) visit(*field, operands[position]);
    }
  }
}

/// Returns whether the operation itself synchronises the threads of a block.
inline bool is_fence(const Op& op) { return op.code == Opcode::nop || op.code == Opcode::barrier; }

/// Returns whether the operation asks to synchronise the threads of its block on this side of it.
inline bool wants(const Op& op, SyncType side) { return uint8_t(op.sync) & uint8_t(side); }

}  // namespace chorale
