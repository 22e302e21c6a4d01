/// \file
/// A Run is one rank's bound plan on the CPU. The rank's blocks and its proxy share it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "chorale/device/deadline.hpp"
#include "chorale/device/endpoints.hpp"
#include "chorale/device/signal.hpp"
#include "chorale/packet_form.hpp"
#include "chorale/types.hpp"
#include "chorale/window.hpp"
#include "executor/lowering/lower.hpp"
#include "executor/lowering/published.hpp"
#include "executor/lowering/trace.hpp"
#include "executor/remote/endpoint.hpp"

namespace chorale::cpu {

class Fifo;

/// This struct is in the rank's window. Its words are addresses if all ranks are threads of one process, and
/// SharedAddresses otherwise.
using lowering::Published;

/// Names memory that several processes map: the number of a window and an offset in it. 0 is null.
struct SharedAddress {
  static constexpr uint64_t own_window = 0xfffe;  ///< the window of the binding itself

  static uint64_t make(uint64_t window, uint64_t offset) { return (window + 1) << 48 | offset; }
  static uint64_t window(uint64_t word) { return (word >> 48) - 1; }
  static uint64_t offset(uint64_t word) { return word & ((uint64_t(1) << 48) - 1); }
};

/// Holds the end of a channel as the proxy serves it.
struct ChannelEnd {
  int peer = -1;
  Signal* signal_at_peer = nullptr;         ///< null: no block waits there, or the peer is on another host
  remote::RemoteEndpoint::FarEnd far = {};  ///< set if the peer is on another host
};

struct Run {
  const lowering::DeviceProgram* program = nullptr;  ///< the program of this round
  char* states = nullptr;                            ///< by block: lowering::BlockState and its counts
  uint32_t rank = 0;
  PacketForm packet = PacketForm::ll8;
  DType dtype = DType::f32;
  uint64_t epoch = 0;  ///< the number of this run, from 1
  Deadline deadline;
  char *in = nullptr, *out = nullptr;  ///< the beginning of this round's slices
  uint64_t skip = 0;                   ///< bytes of every chunk before the slice of this round
  lowering::Gaps gaps;                 ///< of `in` and `out`; only GPUs have some

  std::vector<ChannelEnd> channels;
  Signal* completed = nullptr;  ///< by channel: the number of triggers that the proxy has done
  Fifo* fifo = nullptr;
  remote::RemoteEndpoint* endpoint = nullptr;  ///< null: no channel leads to another host
  uint64_t binding = 0;                        ///< the number that the endpoint gave this binding
  uint32_t client = 0;                         ///< the number that the proxy gave this binding
  Trace trace;

  Published* const* published = nullptr;         ///< by rank; null: that rank is on another host
  const Window* window = nullptr;                ///< the binding's window
  const std::vector<Window>* windows = nullptr;  ///< the windows of Executor::allocate
  bool local = true;                             ///< all ranks are in this process

  /// Runs the steps of a switch. Null: there is no switch, and programs have no such steps.
  std::function<Stop(const Group&, const lowering::ProgramStep&, const Mem* places)> by_switch;

  char* address(uint32_t of_rank, uint64_t word) const {
    if (local || word == 0) return reinterpret_cast<char*>(word);
    const uint64_t id = SharedAddress::window(word);
    const Window& in_window = id == SharedAddress::own_window ? *window : (*windows)[id];
    return reinterpret_cast<char*>(in_window.at(int(of_rank))) + SharedAddress::offset(word);
  }
};

}  // namespace chorale::cpu
