#pragma once
// With this source and sink, a transfer can read and write LL128 packets; see endpoints.hpp.

#include <cstdint>
#include <cstring>

#include "chorale/device/atomics.hpp"
#include "chorale/device/deadline.hpp"
#include "chorale/device/endpoints.hpp"
#include "chorale/device/group.hpp"
#include "chorale/device/packet.hpp"
#include "chorale/device/packets.hpp"
#include "chorale/device/vec.hpp"

namespace chorale {

#if defined(__CUDACC__)
namespace detail {
/// Returns the lane that has the flag of the calling lane's line.
CHORALE_FN uint32_t flag_lane() { return threadIdx.x % warp_threads | LL128::units; }
CHORALE_FN bool has_flag() { return threadIdx.x % warp_threads == flag_lane(); }

/// Returns the largest of a warp's reasons to stop, in all its lanes.
CHORALE_FN Stop agree_in_warp(Stop stop) { return Stop(__reduce_max_sync(0xffffffffu, uint32_t(stop))); }
}  // namespace detail
#endif

/// Uses LL128 packets (lines) as a source or a sink. The source waits for every line. The sink sends whole
/// lines and pads the last one. On CUDA it needs groups of whole warps.
template <>
struct Packets<LL128> {
  LL128* slots = nullptr;
  uint32_t flag = 0;
  const Deadline* deadline = nullptr;  ///< only for a source; null: waits forever

  Packets() = default;
  CHORALE_HD Packets(void* slots, uint32_t flag, const Deadline* deadline = nullptr)
      : slots(static_cast<LL128*>(slots)), flag(flag), deadline(deadline) {}
  /// Makes a source only.
  CHORALE_HD Packets(const void* slots, uint32_t flag, const Deadline* deadline = nullptr)
      : slots(static_cast<LL128*>(const_cast<void*>(slots))), flag(flag), deadline(deadline) {}

  static constexpr bool waits = true;
  static constexpr bool by_line = true;
  static constexpr uint32_t at_once = 4;

#if defined(__CUDACC__)
  using Loaded = Unit;

  CHORALE_FN bool may_take_several() const { return true; }
  CHORALE_FN bool whole(uint64_t) const { return true; }

  /// Waits for the turn's lines from sources at(0) .. at(n-1), n <= K, as Packets<P>::gather does. Called by
  /// a warp; all lanes get the same verdict. Lanes that have the flag, and lanes past the end of the data,
  /// get undefined values.
  template <bool, uint32_t K, uint32_t N, class At>
  CHORALE_FN static Stop gather(const Group& group, const Turn& turn, uint32_t n, const At& at,
                                Unit (&to)[K][N]) {
    static_assert(K * N <= 32, "there is one bit per line");
    const uint32_t flag = n != 0 ? at(0).flag : 0, flag_lane = detail::flag_lane();
    const char* from[K];
    uint32_t missing = 0;
#pragma unroll
    for (uint32_t source = 0; source < K; ++source) {
      from[source] = source < n ? place(at(source), turn) : nullptr;
#pragma unroll
      for (uint32_t index = 0; index < N; ++index) {
        to[source][index] = Unit{};
        if (source < n && index < turn.lines) missing |= 1u << (source * N + index);
      }
    }
#pragma unroll
    for (uint32_t line = 0; line < K * N; ++line) {
      if (missing & 1u << line)
        load(from[line / N] + line % N * turn.line_stride * sizeof(LL128), to[line / N][line % N]);
    }
    Stop stop = Stop::none;
    uint64_t until = 0;
    for (uint32_t spin = 1;; ++spin) {
#pragma unroll
      for (uint32_t line = 0; line < K * N; ++line) {
        // A lane that has no flag votes with its data, and that vote is ignored.
        const uint32_t flags = __ballot_sync(0xffffffffu, to[line / N][line % N].item[0] == flag);
        if (flags >> flag_lane & 1) missing &= ~(1u << line);
      }
      if (!__any_sync(0xffffffffu, missing != 0)) break;
      if (stop != Stop::none) return stop;  // data that came in time counts, even at the last check
      group.pause(spin);
      if (spin % looks_between_polls == 0 && at(0).deadline) {
        const Deadline* const deadline = at(0).deadline;
        if (until == 0) until = deadline->started();
        stop = detail::agree_in_warp(Deadline{deadline->shared, 0, until}.poll());
      }
#pragma unroll
      for (uint32_t line = 0; line < K * N; ++line) {
        if (missing & 1u << line) {
          load(place(at(line / N), turn) + line % N * turn.line_stride * sizeof(LL128),
               to[line / N][line % N]);
        }
      }
    }
    return Stop::none;
  }

  template <bool Whole, uint32_t N>
  CHORALE_FN Stop read(const Group& group, const Turn& turn, Unit (&to)[N]) const {
    Unit held[1][N];
    const Stop stop = gather<Whole, 1, N>(
        group, turn, 1, [this](uint32_t) -> const Packets& { return *this; }, held);
#pragma unroll
    for (uint32_t index = 0; index < N; ++index) to[index] = held[0][index];
    return stop;
  }

  /// Stores a line. All its lanes store at once, including those past the end of the data.
  template <bool, uint32_t N>
  CHORALE_FN void write(const Turn& turn, const Unit (&from)[N]) const {
    __syncwarp(0xffu << (detail::flag_lane() - LL128::units));
#pragma unroll
    for (uint32_t index = 0; index < N; ++index) {
      uint64_t words[2];
      std::memcpy(words, &from[index], sizeof words);
      if (detail::has_flag()) words[0] = flag;
      if (index < turn.lines) {
        asm volatile("st.relaxed.sys.global.v2.b64 [%0], {%1, %2};" ::"l"(
                         place(*this, turn) + index * turn.line_stride * sizeof(LL128)),
                     "l"(words[0]), "l"(words[1])
                     : "memory");
      }
    }
  }

 private:
  /// Returns the calling lane's part of the turn's first line.
  CHORALE_FN static char* place(const Packets& of, const Turn& turn) {
    return reinterpret_cast<char*>(of.slots + turn.line) + threadIdx.x % (LL128::units + 1) * unit_bytes;
  }

  CHORALE_FN static void load(const char* from, Unit& to) {
    uint64_t words[2];
    asm volatile("ld.relaxed.sys.global.v2.b64 {%0, %1}, [%2];"
                 : "=l"(words[0]), "=l"(words[1])
                 : "l"(from)
                 : "memory");
    std::memcpy(&to, words, sizeof words);
  }
#else
  uint64_t run(uint64_t) const { return 0; }

  Stop view(const Group& group, uint64_t at, uint64_t bytes, char* room, const char*& seen) const {
    const uint64_t all = detail::padded(bytes);
    for (uint64_t done = 0; done < all; done += packet_payload<LL128>) {
      const LL128* line = slots + (at + done) / packet_payload<LL128>;
      const auto came = [this, line]() -> bool { return load_acquire(&line->flag) == flag; };
      const Stop stop = spin_until(group, deadline ? *deadline : Deadline{}, came);
      if (stop != Stop::none) return stop;
      const uint64_t left = all - done, here = left < packet_payload<LL128> ? left : packet_payload<LL128>;
      const uint64_t* const from = reinterpret_cast<const uint64_t*>(line->data);
      for (uint64_t word = 0; word < here / sizeof(uint64_t); ++word) {
        const uint64_t data = load_relaxed(from + word);
        std::memcpy(room + done + word * sizeof data, &data, sizeof data);
      }
    }
    seen = room;
    return Stop::none;
  }

  void put(uint64_t at, uint64_t bytes, const char* from) const {
    const uint64_t all = detail::padded(bytes);
    for (uint64_t done = 0; done < all; done += packet_payload<LL128>) {
      LL128* const line = slots + (at + done) / packet_payload<LL128>;
      const uint64_t left = all - done, here = left < packet_payload<LL128> ? left : packet_payload<LL128>;
      uint64_t* const to = reinterpret_cast<uint64_t*>(line->data);
      for (uint64_t word = 0; word < packet_payload<LL128> / sizeof(uint64_t); ++word) {
        uint64_t data = 0;
        if (word * sizeof data < here) std::memcpy(&data, from + done + word * sizeof data, sizeof data);
        store_relaxed(to + word, data);
      }
      store_release(&line->flag, uint64_t(flag));
    }
  }
#endif
};

}  // namespace chorale
