/// \file
/// An all-reduce of rows that adds a residual, normalises each row (RMSNorm) and gives it to an epilogue, in
/// one pass.
///
///     fused::RmsNormAllReduce norm(world, 4096, 8192 * sizeof(bf16), {.space = Space::device});
///     norm.run<bf16>({in, residual, weight, 1e-6f, rows, cols}, fused::StoreRow<bf16>{out}, {stream});
///
/// For each row it computes the following. If residual, weight and epsilon are equal on all ranks, so are the
/// bits of the results.
///
///     sum       = in of all ranks, added in f32 in rank order, then rounded to T
///     residual += sum, in f32, rounded to T. Without a residual this is the sum
///     out       = epilogue(residual * weight / sqrt(mean of its squares + epsilon)), in f32
///
/// The squares are those of the values before they are rounded. Forms: packets, packets_twice, window.
#pragma once

#include <cstdint>
#include <string>

#include "chorale/device.hpp"
#include "chorale/fused/buffers.hpp"
#include "chorale/fused/epilogues.hpp"
#include "chorale/fused/norm_row.hpp"
#include "chorale/fused/rows.hpp"

namespace chorale::fused {

namespace detail {
/// Returns how many of `all` turns group.each_strided() gives to this group.
CHORALE_FN uint64_t turns_of(const Group& group, uint64_t all) {
  return all > group.id ? (all - group.id - 1) / group.count + 1 : 0;
}
}  // namespace detail

/// Sends rows in one exchange of packets. Every rank sends its rows to every other, and adds up and
/// normalises them all.
template <class T, class Epilogue, class P = LL16>
struct RmsNormPackets {
  EndpointTable table;
  NormRows<T, Epilogue> norm;

  CHORALE_FN Stop operator()(const Group& group, const Deadline& deadline) const {
    const uint32_t units = norm.units();
    const uint64_t slot = packet_bytes<P>(uint64_t(units) * unit_bytes);
    const uint64_t mine = detail::turns_of(group, norm.call.rows);
    if (mine == 0) return Stop::none;
    PacketExchange<P> exchange(group, table, deadline);
    Stop stop = exchange.begin(mine * slot);
    if (stop != Stop::none) return stop;
    // The first unit of each row stays in a register until it is added.
    const auto push = [&](uint64_t index) {
      const uint64_t row = group.id + index * group.count;
      Unit first{};
#if defined(__CUDACC__)
#pragma unroll 1
#endif
      for (uint32_t unit = group.rank; unit < units; unit += group.size) {
        const Unit own = unit_of<T>(norm.own(row, unit));
        exchange.send(index * slot, unit, own);
        if (unit == group.rank) first = own;
      }
      return first;
    };
    Unit first = push(0);
    for (uint64_t index = 0; index < mine; ++index) {
      const uint64_t row = group.id + index * group.count;
      const Unit next = index + 1 < mine ? push(index + 1) : Unit{};  // in transit while this group waits
      stop = rms_norm_row<1>(group, norm, row, [&](uint32_t unit, Unit& sum) {
        return exchange.template sum<ReduceOp::sum, T>(
            index * slot, unit, unit == group.rank ? first : unit_of<T>(norm.own(row, unit)), sum);
      });
      if (stop != Stop::none) return stop;
      first = next;
    }
    exchange.end();
    return Stop::none;
  }
};

/// Does the same in two exchanges, with a `ranks`-th of the data. One rank adds up each row: the others send
/// it their rows, and it sends them the sum. If there are groups for all rows, each row has its own group.
template <class T, class Epilogue, class P = LL16>
struct RmsNormPacketsTwice {
  EndpointTable table;
  NormRows<T, Epilogue> norm;

  CHORALE_FN Stop operator()(const Group& group, const Deadline& deadline) const {
    const int32_t ranks = table.ranks, self = table.self;
    const uint32_t units = norm.units();
    const uint64_t slot = packet_bytes<P>(uint64_t(units) * unit_bytes);
    const uint64_t mine = detail::turns_of(group, norm.call.rows);
    if (mine == 0) return Stop::none;
    PacketExchange<P> exchange(group, table, deadline);
    // A row goes from one rank to another at most once: as a part of a sum, or as the sum.
    Stop stop = exchange.begin(mine * slot);
    if (stop != Stop::none) return stop;
    const auto row_of = [&](uint64_t index) { return group.id + index * group.count; };
    const auto owner_of = [&](uint64_t index) { return int32_t(row_of(index) % uint32_t(ranks)); };
    const auto push = [&](uint64_t index) {
      const int32_t owner = owner_of(index);
      for (uint32_t unit = group.rank; unit < units && owner != self; unit += group.size)
        exchange.send_to(owner, index * slot, unit, unit_of<T>(norm.own(row_of(index), unit)));
    };
    push(0);
    for (uint64_t index = 0; index < mine; ++index) {
      if (index + 1 < mine) push(index + 1);  // in transit while this group waits
      const uint64_t row = row_of(index), at = index * slot;
      const int32_t owner = owner_of(index);
      stop = rms_norm_row<1>(group, norm, row, [&](uint32_t unit, Unit& sum) {
        if (owner != self) return exchange.receive(owner, at, unit, sum);
        const Stop got =
            exchange.template sum<ReduceOp::sum, T>(at, unit, unit_of<T>(norm.own(row, unit)), sum);
        if (got == Stop::none) exchange.send(at, unit, sum);
        return got;
      });
      if (stop != Stop::none) return stop;
    }
    exchange.end();
    return Stop::none;
  }
};

namespace detail {
/// Adds up what is `from` bytes into all windows, and writes the sums `to` bytes into all of them. It is not
/// inlined, so that it does not take registers from its caller.
template <class T>
CHORALE_COLD void add_up_rows(Group group, char* const* windows, uint32_t ranks, uint64_t from, uint64_t to,
                              uint64_t bytes) {
  transfer(group, bytes, Multi<ReduceOp::sum, T>{windows, ranks, from}, MultiStore{windows, ranks, to});
}
}  // namespace detail

/// Sends long messages through windows. Each rank adds up its part of the rows from all ranks' windows and
/// writes the sums into all of them, where each rank then normalises them. In windows a row is whole units,
/// padded with zeros. It uses barriers 2 * group and 2 * group + 1.
template <class T, class Epilogue>
struct RmsNormWindow {
  WindowView window;           ///< a rank's input, then the sums
  uint64_t sums_at;            ///< the offset of the sums
  NormRows<T, Epilogue> norm;  ///< `room` is where the sums are

  CHORALE_FN Stop operator()(const Group& group, const Deadline& deadline) const {
    const uint32_t ready = 2 * group.id, added = ready + 1, ranks = uint32_t(window.ranks);
    // All peers have read this rank's input of the last launch, because each of its groups waited for them.
    for (int32_t rank = 0; rank < window.ranks; ++rank) {
      const Leg part = part_of(group, rank);
      detail::copy_rows(group, norm.call.in, norm.call.cols, window.base[window.self],
                        part.begin / row_bytes(), part.bytes / row_bytes());
    }
    Stop stop = barrier(group, window, ready, deadline);
    if (stop != Stop::none) return stop;
    const Leg mine = part_of(group, window.self);
    detail::add_up_rows<T>(group, window.base, ranks, mine.begin, sums_at + mine.begin, mine.bytes);
    arrive_all(group, window, added);
    for (int32_t step = 0; step < window.ranks && stop == Stop::none; ++step) {
      // The group's own rows are already here.
      if (step == 1) stop = wait_all(group, window, added, deadline);
      if (stop == Stop::none) normalise(group, part_of(group, (window.self + step) % window.ranks));
    }
    return stop;
  }

 private:
  CHORALE_FN uint64_t row_bytes() const { return uint64_t(norm.units()) * unit_bytes; }

  /// Returns the rows that the group adds up at a rank. Each rank's rows begin with a different group. So
  /// with fewer rows than groups, no group has rows of several ranks while another has none.
  CHORALE_FN Leg part_of(const Group& group, int32_t rank) const {
    Leg all;
    all.bytes = norm.call.rows * row_bytes();
    const uint32_t ranks = uint32_t(window.ranks),
                   at = (group.id + uint32_t(rank) * (group.count / ranks)) % group.count;
    return share_of(share_of(all, uint32_t(rank), ranks, row_bytes()), at, group.count, row_bytes());
  }

  CHORALE_FN void normalise(const Group& group, const Leg& part) const {
    const char* const sums = window.base[window.self] + sums_at;
    for (uint64_t at = part.begin; at < part.begin + part.bytes; at += row_bytes()) {
      rms_norm_row<2>(group, norm, at / row_bytes(), [row = sums + at](uint32_t unit, Unit& sum) {
        sum = detail::load_whole(row + uint64_t(unit) * unit_bytes);
        return Stop::none;
      });
    }
  }
};

/// Has the links and windows for calls of RMSNorm of a stated size.
class RmsNormAllReduce : public Buffers {
 public:
  /// Makes it; collective. It takes 2 * `max_rows` * `max_row_bytes` bytes of memory, and up to eight times
  /// the bytes that go as packets, for each rank.
  /// \throws as Buffers
  RmsNormAllReduce(World& world, uint64_t max_rows, uint64_t max_row_bytes, const Setup& setup = {});

  /// Returns the form of a call. Every rank gets the same.
  Form form(uint64_t rows, uint64_t row_bytes) const;

  /// Returns memory for the input of calls in the form `window`, which then copy nothing. Rows there are
  /// whole units of 16 bytes. A call may overwrite it.
  template <class T>
  T* input() const {
    return reinterpret_cast<T*>(window_memory());
  }

  /// Makes a call, as launch() does. `out` of the epilogue may be `call.in`.
  /// \throws UsageError if the call is too long, or if a pointer is null; otherwise as launch()
  template <class T, class Epilogue, class = chorale::detail::Side>
  void run(const RmsNormCall<T>& call, const Epilogue& epilogue, LaunchStream on = {}) {
    const uint64_t row_bytes = uint64_t(call.cols) * sizeof(T);
    const bool whole = row_bytes % unit_bytes == 0;
    check(call.rows, call.cols, sizeof(T), call.in && call.weight,
          !whole && static_cast<const void*>(call.in) == window_memory());
    if (call.rows == 0 || call.cols == 0) return;
    const Form chosen = form(call.rows, row_bytes);
    const uint64_t units = (row_bytes + unit_bytes - 1) / unit_bytes;
    T* const sums = reinterpret_cast<T*>(window_memory() + capacity());
    const NormRows<T, Epilogue> norm{call, sums, units * unit_bytes / sizeof(T), epilogue};
    const LaunchConfig shape = shape_of(chosen, call.rows, units);
    const LaunchName name{"RmsNormAllReduce"};
    if (chosen == Form::packets) {
      launch(transport(), RmsNormPackets<T, Epilogue>{transport().table(), norm}, shape, on, name);
    } else if (chosen == Form::packets_twice) {
      launch(transport(), RmsNormPacketsTwice<T, Epilogue>{transport().table(), norm}, shape, on, name);
    } else {
      launch(transport(), RmsNormWindow<T, Epilogue>{window(), capacity(), norm}, shape, on, name);
    }
  }

 private:
  void check(uint64_t rows, uint64_t cols, uint64_t element_bytes, bool pointers, bool ragged_input) const;
};

}  // namespace chorale::fused
