/// \file
/// An all-gather of rows that are then permuted: row i of the result is row index[i] of all ranks' rows. The
/// index is read by the kernel, and only the rows that it names are moved.
///
///     fused::GatherPermute gather(world, 1024, 8192 * sizeof(bf16), {.space = Space::device});
///     gather.run<bf16, int32_t>({in, out, index, rows, out_rows, cols}, {stream});
///
/// A row may be named several times or never. An index below 0, or beyond the last row, gives a row of zeros.
/// Forms: packets, window.
#pragma once

#include <cstdint>

#include "chorale/device.hpp"
#include "chorale/fused/buffers.hpp"
#include "chorale/fused/rows.hpp"

namespace chorale::fused {

/// Describes a call. `rows` and `cols` are equal on all ranks; index and out_rows may differ.
template <class T, class I = int32_t>
struct GatherPermuteCall {
  const T* in;     ///< this rank's rows. Any alignment; multiples of 16 are fast
  T* out;          ///< `out_rows` rows, which do not overlap `in`
  const I* index;  ///< for each row of `out`: rank * rows + the row at that rank
  uint64_t rows;   ///< of each rank
  uint64_t out_rows;
  uint32_t cols;
};

namespace detail {

/// Names a row of a rank; there is none if `rank` is -1.
struct Source {
  int32_t rank;
  uint64_t row;
};

template <class T, class I>
struct RowsByIndex {
  GatherPermuteCall<T, I> call;
  static constexpr uint32_t n = unit_bytes / sizeof(T);

  CHORALE_FN uint64_t units() const { return units_in_row<T>(call.cols); }
  CHORALE_FN Source source_of(uint64_t out_row, int32_t ranks) const {
    const I at = call.index[out_row];
    if (at < 0 || uint64_t(at) >= call.rows * uint32_t(ranks)) return {-1, 0};
    const uint64_t rank = chorale::detail::quotient(uint64_t(at), call.rows);
    return {int32_t(rank), uint64_t(at) - rank * call.rows};
  }
  CHORALE_FN Unit own(uint64_t row, uint64_t unit) const {
    return unit_of<T>(
        load_elements<T>(call.in + row * call.cols, unit * n, count_in<T>(uint32_t(unit), call.cols)));
  }
  CHORALE_FN void store(uint64_t out_row, uint64_t unit, const Unit& value) const {
    store_elements<T>(call.out + out_row * call.cols, unit * n, elements_of<T>(value),
                      count_in<T>(uint32_t(unit), call.cols));
  }
};

}  // namespace detail

/// Sends all rows to all ranks as packets. Each group has a part of the columns, so that no group waits for
/// another.
template <class T, class I, class P = LL16>
struct GatherPermutePackets {
  EndpointTable table;
  detail::RowsByIndex<T, I> rows;

  CHORALE_FN Stop operator()(const Group& group, const Deadline& deadline) const {
    const chorale::detail::EvenParts parts(rows.units(), group.count);
    const uint64_t first = parts.first(group.id), mine = parts.size(group.id);
    if (mine == 0) return Stop::none;
    PacketExchange<P> exchange(group, table, deadline);
    Stop stop = exchange.begin(packet_bytes<P>(rows.call.rows * mine * unit_bytes));
    if (stop != Stop::none) return stop;
    for (uint64_t at = group.rank; at < rows.call.rows * mine; at += group.size) {
      const uint64_t row = chorale::detail::quotient(at, mine), unit = at - row * mine;
      exchange.send(0, at, rows.own(row, first + unit));
    }
    for (uint64_t at = group.rank; at < rows.call.out_rows * mine && stop == Stop::none; at += group.size) {
      const uint64_t row = chorale::detail::quotient(at, mine), unit = at - row * mine;
      const detail::Source from = rows.source_of(row, table.ranks);
      Unit value{};
      if (from.rank == table.self) {
        value = rows.own(from.row, first + unit);
      } else if (from.rank >= 0) {
        stop = exchange.receive(from.rank, 0, from.row * mine + unit, value);
      }
      if (stop == Stop::none) rows.store(row, first + unit, value);
    }
    stop = group.agree(stop);
    if (stop == Stop::none) exchange.end();
    return stop;
  }
};

/// Reads rows from the windows of all ranks. In a window a row is whole units. It uses barriers 2 * group and
/// 2 * group + 1, and this rank's signal 0 for itself.
template <class T, class I>
struct GatherPermuteWindow {
  WindowView window;
  detail::RowsByIndex<T, I> rows;

  CHORALE_FN Stop operator()(const Group& group, const Deadline& deadline) const {
    const uint32_t sent = 2 * group.id, read = sent + 1;
    // Nobody reads this rank's window any more: in the last launch each group has waited until all ranks had
    // ended the group with its number.
    const chorale::detail::EvenParts parts(rows.call.rows, group.count);
    detail::copy_rows(group, rows.call.in, rows.call.cols, window.base[window.self], parts.first(group.id),
                      parts.size(group.id));
    // A row may be in any group's part. So the last group that has copied arrives for all of them.
    if (is_last(group)) {
      for (uint32_t post = group.rank; post < group.count * uint32_t(window.ranks - 1); post += group.size) {
        const int32_t peer = (window.self + 1 + int32_t(post / group.count)) % window.ranks;
        group.step();
        post_release(&window.barrier_at(peer, 2 * (post % group.count))->arrived.value, uint64_t{1});
      }
    }
    Stop stop = wait_all(group, window, sent, deadline);
    if (stop != Stop::none) return stop;
    copy_out(group);
    return barrier(group, window, read, deadline);
  }

 private:
  /// Returns whether this group is the last of its rank to get here. Synchronises the group.
  CHORALE_FN bool is_last(const Group& group) const {
    uint64_t* const count = &window.signal_at(window.self, window.self, 0)->value;
    group.sync();
    bool last = false;
    if (group.leader()) {
      group.step();
      last = add_acq_rel(count, uint64_t{1}) + 1 == group.count;
      if (last) store_relaxed(count, uint64_t{0});  // for the next launch
    }
    return group.broadcast(uint32_t(last)) != 0;
  }

  CHORALE_FN void copy_out(const Group& group) const {
    const chorale::detail::EvenParts parts(rows.call.out_rows, group.count);
    const uint64_t first = parts.first(group.id), units = rows.units(), end = parts.size(group.id) * units;
    constexpr uint32_t ahead = 4;
#if defined(__CUDACC__)
#pragma unroll 1
#endif
    for (uint64_t at = group.rank; at < end; at += ahead * group.size) {
      Unit held[ahead];
      uint64_t row[ahead], unit[ahead];
#if defined(__CUDACC__)
#pragma unroll
#endif
      for (uint32_t index = 0; index < ahead; ++index) {
        const uint64_t here = at + index * group.size;
        held[index] = Unit{};
        row[index] = first + chorale::detail::quotient(here, units);
        unit[index] = here - (row[index] - first) * units;
        if (here < end) load(row[index], unit[index], units, held[index]);
      }
#if defined(__CUDACC__)
#pragma unroll
#endif
      for (uint32_t index = 0; index < ahead; ++index) {
        if (at + index * group.size < end) rows.store(row[index], unit[index], held[index]);
      }
    }
  }

  CHORALE_FN void load(uint64_t row, uint64_t unit, uint64_t units, Unit& to) const {
    const detail::Source from = rows.source_of(row, window.ranks);
    if (from.rank == window.self) {
      to = rows.own(from.row, unit);  // other groups may still be copying it
    } else if (from.rank >= 0) {
      to = detail::load_whole(window.base[from.rank] + (from.row * units + unit) * unit_bytes);
    }
  }
};

/// Has the links and windows for gathers of a stated size.
class GatherPermute : public Buffers {
 public:
  /// Makes it; collective. It takes `max_rows` * `max_row_bytes` bytes of memory, and up to eight times the
  /// bytes that go as packets, for each rank.
  /// \param max_rows  the rows of one rank
  /// \throws as Buffers
  GatherPermute(World& world, uint64_t max_rows, uint64_t max_row_bytes, const Setup& setup = {});

  /// Returns the form of a call. Every rank gets the same.
  Form form(uint64_t rows, uint64_t row_bytes) const;

  /// Returns memory for the input of calls in the form `window`, which then copy nothing. Rows there are
  /// whole units of 16 bytes. Calls leave it as it is.
  template <class T>
  T* input() const {
    return reinterpret_cast<T*>(window_memory());
  }

  /// Makes a call, as launch() does.
  /// \throws UsageError if the call is too long, or if a pointer is null; otherwise as launch()
  template <class T, class I, class = chorale::detail::Side>
  void run(const GatherPermuteCall<T, I>& call, LaunchStream on = {}) {
    const uint64_t row_bytes = uint64_t(call.cols) * sizeof(T);
    check(call.rows, call.cols, sizeof(T),
          (call.in || call.rows == 0) && ((call.out && call.index) || call.out_rows == 0),
          row_bytes % unit_bytes != 0 && static_cast<const void*>(call.in) == window_memory());
    if (call.cols == 0) return;
    const Form chosen = form(call.rows, row_bytes);
    const LaunchConfig launched = shape(chosen, call.rows, row_bytes);
    const LaunchName name{"GatherPermute"};
    if (chosen == Form::packets) {
      launch(transport(), GatherPermutePackets<T, I>{transport().table(), {call}}, launched, on, name);
    } else {
      launch(transport(), GatherPermuteWindow<T, I>{window(), {call}}, launched, on, name);
    }
  }

 private:
  void check(uint64_t rows, uint64_t cols, uint64_t element_bytes, bool pointers, bool ragged_input) const;
  LaunchConfig shape(Form form, uint64_t rows, uint64_t row_bytes) const;
};

}  // namespace chorale::fused
