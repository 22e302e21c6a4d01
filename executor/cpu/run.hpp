/// \file
/// One rank's bound plan on the CPU: what its blocks and its proxy share.
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

/// Where a rank's own input and output are in this run, for its peers: an address where all ranks are threads
/// of one process, else a SharedAddress. It lies in the rank's window.
struct alignas(128) Published {
  uint64_t epoch = 0;  ///< of the run that the others are of, written last
  uint64_t in = 0, out = 0;
};

/// A place in memory that several processes map: which window, and how far into it. 0 is nowhere.
struct SharedAddress {
  static constexpr uint64_t own_window = 0xfffe;  ///< that of the binding itself

  static uint64_t make(uint64_t window, uint64_t offset) { return (window + 1) << 48 | offset; }
  static uint64_t window(uint64_t word) { return (word >> 48) - 1; }
  static uint64_t offset(uint64_t word) { return word & ((uint64_t(1) << 48) - 1); }
};

struct Run {
  image::Image image;
  uint32_t rank = 0;
  PacketForm packet = PacketForm::ll8;
  DType dtype = DType::f32;
  uint64_t epoch = 0;  ///< of this run; the first is 1
  Deadline deadline;

  Signal* signals = nullptr;                 ///< this rank's, by channel, posted by peers
  Signal* const* signals_at_peer = nullptr;  ///< by channel; null: nobody can wait there
  uint64_t* expected = nullptr;              ///< by channel: posts that this rank has waited for
  Signal* barriers = nullptr;                ///< arrivals ever
  Semaphore* semaphores = nullptr;
  uint64_t* pushed = nullptr;   ///< by channel: triggers ever
  Signal* completed = nullptr;  ///< by channel: triggers that the proxy has done
  Fifo* fifo = nullptr;
  Courier* courier = nullptr;  ///< to other hosts; null: this plan's channels lead to none
  uint64_t binding = 0;        ///< the courier's number of it
  const char* far = nullptr;   ///< by channel: whether the peer is on another host; null: none is
  Trace trace;

  Published* const* published = nullptr;         ///< by rank; null: it is on another host
  const Window* window = nullptr;                ///< the binding's
  const std::vector<Window>* windows = nullptr;  ///< those of Executor::allocate
  bool local = true;                             ///< all ranks are in this process

  char* address(uint32_t of_rank, uint64_t word) const {
    if (local || word == 0) return reinterpret_cast<char*>(word);
    const uint64_t id = SharedAddress::window(word);
    const Window& in = id == SharedAddress::own_window ? *window : (*windows)[id];
    return reinterpret_cast<char*>(in.at(int(of_rank))) + SharedAddress::offset(word);
  }
};

}  // namespace chorale::cpu
