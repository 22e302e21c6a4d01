/// \file
/// Buffers holds what every fused kernel needs: links and windows of a stated size, made once by all ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "chorale/launch.hpp"
#include "chorale/one_sided_window.hpp"
#include "chorale/transport.hpp"

namespace chorale::fused {

/// Names the ways to exchange data. The header of a kernel says which of them it has.
enum class Form : uint8_t {
  by_size,        ///< the library chooses one of the next three, see form_of()
  packets,        ///< in one exchange of packets, which takes the least time for short messages
  packets_twice,  ///< in two exchanges of packets: what is reduced is sent once more
  window,         ///< through memory that the other ranks read and write, for long messages
  tiles           ///< through the rings of a transport
};

/// Sets up a kernel. All ranks must pass the same.
struct Setup {
  Space space = Space::host;  ///< the memory of links and windows, and so where the kernel runs
  Form form = Form::by_size;
  /// Limits the thread blocks of a call. With 0 it is 4 in host memory, and in device memory 32 for packets
  /// and 128 for other forms. Calls with little work launch fewer.
  uint32_t blocks = 0;
  /// Sets the threads of a block. With 0 it is 1 in host memory, and what suits the call in device memory,
  /// where it must be a multiple of 32, at most 512.
  uint32_t threads = 0;
};

/// Limits the bytes of a call that Form::by_size sends as packets. The numbers follow the table of fused
/// kernels on two H200s in docs/benchmarks.md; other machines and more ranks were not measured.
struct PacketLimits {
  uint64_t sent = 128 << 10;   ///< packets: the bytes that one rank sends to all others together
  uint64_t twice = 512 << 10;  ///< packets_twice: the bytes of the message
};

/// Returns the form that Form::by_size stands for, if the call's packets fit. The form() of a kernel's class
/// returns the form that a call takes.
/// \param sent     the bytes that a rank sends to all others in one exchange of packets
/// \param message  the bytes of the message, if the kernel has packets_twice; else 0
constexpr Form form_of(uint64_t sent, uint64_t message, int ranks) {
  // A PacketExchange has at most 16 ranks, and one rank alone needs no packets.
  if (ranks == 1 || ranks > 16) return Form::window;
  if (sent <= PacketLimits{}.sent) return Form::packets;
  return message != 0 && message <= PacketLimits{}.twice ? Form::packets_twice : Form::window;
}

/// Holds the links and the window of a fused kernel. Each kernel's class derives from it. The world must
/// outlive it. Peers write into its memory, so destroy it after the launches of all ranks have ended
/// (World::barrier()). Use it from one stream, or see Transport::hand_over(), which transport() offers.
class Buffers {
 public:
  Buffers(Buffers&&) noexcept;
  Buffers& operator=(Buffers&&) noexcept;

  World& world() const { return transport_->world(); }
  Transport& transport() const { return *transport_; }
  const Setup& setup() const { return setup_; }
  uint64_t capacity() const { return capacity_; }  ///< the bytes of the longest call

  /// Clears links and window, so that leftovers of a stopped call are not taken for data. Collective; call it
  /// after World::reset(), when no kernel is running.
  void reset();

 protected:
  /// Says what a kernel needs.
  struct Needs {
    std::string name;           ///< the kernel's, for messages
    std::string forms;          ///< the kernel's forms, for messages
    bool has_form = true;       ///< whether Setup::form is one of them
    std::string sizes;          ///< what else must be the same on all ranks, for messages
    std::string wrong;          ///< why it cannot be made so; "" if it can
    uint64_t capacity = 0;      ///< the bytes of the longest call
    uint64_t packets = 0;       ///< the longest message to one peer that goes as packets; 0: none does
    uint64_t grain = 0;         ///< the longest piece that one block sends whole as packets
    uint64_t window = 0;        ///< the bytes of a rank's window; 0: there is none
    uint32_t signals = 0;       ///< the window's signals for each sender
    uint64_t slot_bytes = 16;   ///< the bytes of a ring's slot
    uint32_t block_factor = 1;  ///< a launch has a multiple of so many blocks
  };

  /// Makes links and window; collective.
  /// \throws UsageError, on all ranks, for sizes and setups that are out of range
  /// \throws RunError mismatch, on all ranks, if sizes or setups differ; otherwise as direct_rendezvous() and
  ///         OneSidedWindow::create()
  Buffers(World& world, const Setup& setup, const Needs& needs);
  ~Buffers();

  /// Returns the longest message that goes as packets, if `all` is the longest message.
  static uint64_t packets_for(Form form, uint64_t all, uint64_t limit) {
    if (form == Form::by_size) return all < limit ? all : limit;
    return form == Form::packets || form == Form::packets_twice ? all : 0;
  }

  /// Throws UsageError unless the call is right; `why` follows the kernel's name.
  void require(bool right, const std::string& why) const;
  /// Throws UsageError if a call needs more bytes than capacity().
  /// \param shape   the call, as in "8 rows of 4096 elements"
  /// \param remedy  the argument of the constructor that must be larger
  void require_room(uint64_t bytes, const std::string& shape, const std::string& remedy) const;

  /// Throws UsageError if rows do not fit, or if input() has rows that are not whole units (`ragged_input`).
  void require_rows(uint64_t rows, uint64_t cols, uint64_t element_bytes, bool ragged_input) const;

  WindowView window() const { return window_ ? window_->view() : WindowView{}; }
  char* window_memory() const { return window_ ? reinterpret_cast<char*>(window_->local()) : nullptr; }

  /// Returns the blocks and threads of a launch for `items` pieces of work of `units` units of 16 bytes each.
  LaunchConfig shape_of(Form form, uint64_t items, uint64_t units) const;
  /// Returns whether packets carry `bytes` bytes of each block.
  bool packets_fit(uint64_t bytes) const { return bytes <= packet_room_; }

 private:
  std::string name_;
  Setup setup_;
  uint64_t capacity_ = 0, packet_room_ = 0;
  uint32_t packet_blocks_ = 0, other_blocks_ = 0, factor_ = 1;
  std::unique_ptr<Transport> transport_;
  std::optional<OneSidedWindow> window_;
};

}  // namespace chorale::fused
