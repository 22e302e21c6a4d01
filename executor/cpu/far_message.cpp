#include "far_message.hpp"

namespace chorale::cpu {
namespace {

bool moves_data(Action action) {
  return has(action, Action::copy) || has(action, Action::pack) || has(action, Action::copy_packets);
}

}  // namespace

net::Payload gather(Machine& machine, const Trigger& trigger) {
  if (!moves_data(trigger.action)) return {};
  const image::Range range = trigger.range;
  net::Payload payload(range.end - range.first);
  char* const room = reinterpret_cast<char*>(payload.data.get());
  if (has(trigger.action, Action::copy_packets)) {
    const op::Places<Role::PacketRead> from{&trigger.src, 1};
    machine.with_packet([&](auto form) {
      using P = typename decltype(form)::type;
      return machine.move(payload.bytes, pieces::packets<P>(machine, from, 0, range.first),
                          Mem(static_cast<void*>(room), payload.bytes));
    });
    return payload;
  }
  const op::Places<Role::Read> from{&trigger.src, 1};
  pieces::each(
      machine, range,
      [&](uint64_t at, uint64_t bytes) {
        // Bytes past a segment's end travel as zeros.
        return machine.move(bytes, pieces::memory(machine, from, 0, at),
                            Mem(static_cast<void*>(room + (at - range.first)), bytes));
      },
      from);
  return payload;
}

void scatter(Machine& machine, const FarMessage& message, const net::Payload& payload) {
  if (!moves_data(message.action)) return;
  const image::Range range = message.range;
  const char* const room = reinterpret_cast<const char*>(payload.data.get());
  if (!has(message.action, Action::copy)) {
    const op::Places<Role::PacketWrite> to{&message.place, 1};
    machine.with_packet([&](auto form) {
      using P = typename decltype(form)::type;
      return machine.move(payload.bytes, Mem(static_cast<const void*>(room), payload.bytes),
                          pieces::packets<P>(machine, to, 0, range.first));
    });
    return;
  }
  const op::Places<Role::Write> to{&message.place, 1};
  pieces::each(
      machine, range,
      [&](uint64_t at, uint64_t bytes) {
        return machine.move(bytes, Mem(static_cast<const void*>(room + (at - range.first)), bytes),
                            pieces::memory(machine, to, 0, at));
      },
      to);
}

}  // namespace chorale::cpu
