#pragma once
/// \file
/// The rules say which two operations the rewrite fuse may join, and into which one. rewrites/join.cpp says
/// what each kind of join requires.

#include <array>
#include <cstddef>
#include <cstdint>

#include "chorale/plan.hpp"

namespace chorale {

enum class Join : uint8_t {
  fence,      ///< one synchronises as much as both
  ids,        ///< takes the ids of both, which name different things
  lists,      ///< takes the operands and ids of both, all of one size
  forward,    ///< takes the source, and the destinations of both
  chain,      ///< x = a + b; x = x + c: takes the sources of both
  store,      ///< also puts the result of the left one to peers
  keep,       ///< also keeps the result of the left one as packets
  relay,      ///< forwards the packets that the left one keeps
  multicast,  ///< broadcasts the result of the left one, which nothing else uses
};

struct Rule {
  Opcode left, right, result;
  Join join;
};

inline constexpr Rule fuse_rules[] = {
    {Opcode::nop, Opcode::nop, Opcode::nop, Join::fence},
    {Opcode::nop, Opcode::barrier, Opcode::barrier, Join::fence},
    {Opcode::barrier, Opcode::nop, Opcode::barrier, Join::fence},
    {Opcode::signal, Opcode::signal, Opcode::signal, Join::ids},
    {Opcode::relaxed_signal, Opcode::relaxed_signal, Opcode::relaxed_signal, Join::ids},
    {Opcode::wait, Opcode::wait, Opcode::wait, Join::ids},
    {Opcode::relaxed_wait, Opcode::relaxed_wait, Opcode::relaxed_wait, Join::ids},
    {Opcode::flush, Opcode::flush, Opcode::flush, Join::ids},
    {Opcode::sem_acquire, Opcode::sem_acquire, Opcode::sem_acquire, Join::ids},
    {Opcode::sem_release, Opcode::sem_release, Opcode::sem_release, Join::ids},
    {Opcode::get, Opcode::get, Opcode::get, Join::lists},
    {Opcode::put, Opcode::put, Opcode::put, Join::lists},
    {Opcode::put_with_signal, Opcode::put_with_signal, Opcode::put_with_signal, Join::lists},
    {Opcode::put_with_signal_and_flush, Opcode::put_with_signal_and_flush, Opcode::put_with_signal_and_flush,
     Join::lists},
    {Opcode::put_packets, Opcode::put_packets, Opcode::put_packets, Join::lists},
    {Opcode::read_put_packets, Opcode::read_put_packets, Opcode::read_put_packets, Join::forward},
    {Opcode::reduce, Opcode::reduce, Opcode::reduce, Join::chain},
    {Opcode::read_reduce, Opcode::read_reduce, Opcode::read_reduce, Join::chain},
    {Opcode::reduce_packets, Opcode::reduce_packets, Opcode::reduce_packets, Join::chain},
    {Opcode::reduce, Opcode::put, Opcode::reduce_send, Join::store},
    {Opcode::reduce_send, Opcode::put, Opcode::reduce_send, Join::store},
    {Opcode::read_reduce, Opcode::put, Opcode::read_reduce_send, Join::store},
    {Opcode::read_reduce_send, Opcode::put, Opcode::read_reduce_send, Join::store},
    {Opcode::reduce_packets, Opcode::put_packets, Opcode::reduce_send_packets, Join::store},
    {Opcode::reduce_send_packets, Opcode::put_packets, Opcode::reduce_send_packets, Join::store},
    {Opcode::reduce_copy_packets, Opcode::put_packets, Opcode::reduce_copy_send_packets, Join::store},
    {Opcode::reduce_copy_send_packets, Opcode::put_packets, Opcode::reduce_copy_send_packets, Join::store},
    {Opcode::reduce_packets, Opcode::copy_packets, Opcode::reduce_copy_packets, Join::keep},
    {Opcode::reduce_copy_packets, Opcode::read_put_packets, Opcode::reduce_copy_send_packets, Join::relay},
    {Opcode::reduce_copy_send_packets, Opcode::read_put_packets, Opcode::reduce_copy_send_packets,
     Join::relay},
    {Opcode::switch_reduce, Opcode::switch_broadcast, Opcode::switch_reduce_broadcast, Join::multicast},
};

inline const Rule* rule_for(Opcode left, Opcode right) {
  // The table holds, per pair of opcodes, the position of the rule plus one.
  static constexpr auto positions = [] {
    std::array<std::array<uint8_t, opcode_count>, opcode_count> made{};
    for (size_t k = 0; k < std::size(fuse_rules); ++k)
      made[size_t(fuse_rules[k].left)][size_t(fuse_rules[k].right)] = uint8_t(k + 1);
    return made;
  }();
  const uint8_t position = positions[size_t(left)][size_t(right)];
  return position ? &fuse_rules[position - 1] : nullptr;
}

}  // namespace chorale
