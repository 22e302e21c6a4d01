/// \file
/// A Run is one rank's bound plan on the CPU, which its blocks and its proxy share.
#pragma once

#include <cstdint>
#include <vector>

#include "../interpreter/image.hpp"
#include "../interpreter/trace.hpp"
#include "chorale/device/deadline.hpp"
#include "chorale/device/signal.hpp"
#include "chorale/executor.hpp"
#include "chorale/window.hpp"

namespace chorale::cpu {

class Courier;
class Fifo;

/// Tells peers where a rank's own input and output are in this run. The words are addresses when all ranks
/// are threads of one process, else SharedAddresses. A Published lies in the rank's window.
struct alignas(128) Published {
  uint64_t epoch = 0;  ///< the run that `in` and `out` belong to; written last
  uint64_t in = 0, out = 0;
};

/// A place in memory that several processes map: which window, and how far into it. 0 is nowhere.
struct SharedAddress {
  static constexpr uint64_t own_window = 0xfffe;  ///< the window of the binding itself

  static uint64_t make(uint64_t window, uint64_t offset) { return (window + 1) << 48 | offset; }
  static uint64_t window(uint64_t word) { return (word >> 48) - 1; }
  static uint64_t offset(uint64_t word) { return word & ((uint64_t(1) << 48) - 1); }
};

struct Run {
  image::Image image;
  uint32_t rank = 0;
  PacketForm packet = PacketForm::ll8;
  DType dtype = DType::f32;
  uint64_t epoch = 0;  ///< the number of this run, from 1
  Deadline deadline;

  Signal* signals = nullptr;                 ///< this rank's, by channel, posted by peers
  Signal* const* signals_at_peer = nullptr;  ///< by channel; null: nobody can wait there
  uint64_t* expected = nullptr;              ///< by channel: posts that this rank has waited for
  Signal* barriers = nullptr;                ///< by barrier: all arrivals so far
  Semaphore* semaphores = nullptr;
  uint64_t* pushed = nullptr;   ///< by channel: all triggers so far
  Signal* completed = nullptr;  ///< by channel: triggers that the proxy has done
  Fifo* fifo = nullptr;
  Courier* courier = nullptr;  ///< the courier to other hosts; null: this plan's channels lead to none
  uint64_t binding = 0;        ///< the courier's number of this binding
  const char* far = nullptr;   ///< by channel: not 0 if the peer is on another host; null: none is
  Trace trace;

  Published* const* published = nullptr;         ///< by rank; null: it is on another host
  const Window* window = nullptr;                ///< the binding's window
  const std::vector<Window>* windows = nullptr;  ///< the windows of Executor::allocate
  bool local = true;                             ///< all ranks are in this process

  char* address(uint32_t of_rank, uint64_t word) const {
    if (local || word == 0) return reinterpret_cast<char*>(word);
    const uint64_t id = SharedAddress::window(word);
    const Window& in = id == SharedAddress::own_window ? *window : (*windows)[id];
    return reinterpret_cast<char*>(in.at(int(of_rank))) + SharedAddress::offset(word);
  }
};

}  // namespace chorale::cpu
