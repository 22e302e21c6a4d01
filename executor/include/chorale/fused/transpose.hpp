/// \file
/// An all-to-all that transposes. Every rank has a matrix of `rows` x (ranks * cols) elements. Rank p gets
/// columns p * cols and on of every rank, transposed: its result is `ranks` matrices of cols x rows.
///
///     fused::TransposeAllToAll turn(world, 64 << 20, {.space = Space::device});
///     turn.run(in, out, rows, cols, {stream});
///
/// Forms: packets, window, and tiles, which Form::by_size does not choose.
#pragma once

#include <cstdint>

#include "chorale/device.hpp"
#include "chorale/fused/buffers.hpp"

namespace chorale::fused {

/// Describes a call. All ranks pass the same shape.
template <class T>
struct TransposeCall {
  const T* in;
  T* out;
  uint32_t rows, cols;

  CHORALE_FN uint64_t row_elements(int32_t ranks) const { return uint64_t(cols) * uint32_t(ranks); }
  /// Returns the bytes that one rank sends to another.
  CHORALE_HD uint64_t shard_bytes() const { return uint64_t(rows) * cols * sizeof(T); }
};

namespace detail {
/// Describes a group's part in the exchange with one peer.
struct WorkForPeer {
  int32_t peer;
  Group group;
  Leg leg;
};

/// Splits groups evenly among the peers, so that no peer waits for another.
template <class T>
CHORALE_FN WorkForPeer work_for_peer(const Group& group, const EndpointTable& table,
                                     const TransposeCall<T>& call) {
  const Split part = group.split(uint32_t(table.ranks));
  const int32_t peer = (table.self + int32_t(part.part)) % table.ranks;
  Leg leg;
  leg.bytes = call.shard_bytes();
  leg.in = call.in + uint64_t(peer) * call.cols;
  leg.out = call.out + uint64_t(peer) * call.rows * call.cols;
  leg.elem = sizeof(T);
  leg.shard = uint32_t(peer);
  leg.rows = call.rows;
  leg.cols = call.cols;
  leg.in_strides = {call.row_elements(table.ranks), 1};
  return {peer, part.group, leg};
}
}  // namespace detail

/// Sends long messages through rings: half of a peer's blocks send, the other half receive. It needs a
/// multiple of 2 * ranks blocks.
template <class T>
struct TransposeTilesByPeer {
  EndpointTable table;
  TransposeCall<T> call;
  uint32_t tile_cols;  ///< columns of `in` in a tile, which fit in a slot

  CHORALE_FN Stop operator()(const Group& group, const Deadline& deadline) const {
    detail::WorkForPeer work = detail::work_for_peer(group, table, call);
    work.leg.tile_bytes = uint64_t(tile_cols) * call.rows * sizeof(T);
    const Split role = work.group.split_interleaved(2);
    const Leg share = share_of(work.leg, role.group.id, role.group.count);
    const Endpoint& e = table.at(work.peer, role.group.id);
    return with_link(e, [&](auto fabric) {
      if (role.part != 0)
        return recv_tiles<T, decltype(fabric)>(role.group, e, share, CopyConsume{}, deadline);
      const Stop stop = send_tiles<T, decltype(fabric)>(role.group, e, share, TransposeTiles<T>{}, deadline);
      return stop != Stop::none ? stop : decltype(fabric)::drain(role.group, e, deadline);
    });
  }
};

/// Sends short messages, as packets. It needs a multiple of `ranks` blocks.
template <class T, class P = LL16>
struct TransposePackets {
  EndpointTable table;
  TransposeCall<T> call;

  CHORALE_FN Stop operator()(const Group& group, const Deadline& deadline) const {
    const detail::WorkForPeer work = detail::work_for_peer(group, table, call);
    const Leg share = share_of(work.leg, work.group.id, work.group.count);
    const Endpoint& e = table.at(work.peer, work.group.id);
    const Stop stop = send_packets<P, T>(work.group, e, share, TransposeProduce<T>{}, deadline);
    if (stop != Stop::none) return stop;
    return recv_packets<P, T>(work.group, e, share, CopyConsume{}, deadline);
  }
};

/// Writes results directly to their places in the peers' windows. It uses barriers 2 * group and
/// 2 * group + 1.
template <class T>
struct TransposeIntoWindow {
  WindowView window;      ///< a rank's result: rows * cols elements of each rank
  TransposeCall<T> call;  ///< `out` gets a copy of the result, unless it is null
  uint32_t tall, wide;    ///< rows and columns of `in` that a group transposes at a time

  CHORALE_FN Stop operator()(const Group& group, const Deadline& deadline) const {
    const uint32_t writable = 2 * group.id, written = writable + 1;
    Stop stop = barrier(group, window, writable, deadline);
    if (stop != Stop::none) return stop;
    for (int32_t step = 1; step < window.ranks; ++step)
      turn_share(group, (window.self + step) % window.ranks);
    // All peers are signalled together, because each signal waits until all stores have landed. Meanwhile the
    // group transposes this rank's own share.
    arrive_all(group, window, written);
    turn_share(group, window.self);
    stop = wait_all(group, window, written, deadline);
    for (int32_t peer = 0; peer < window.ranks && call.out && stop == Stop::none; ++peer)
      copy_out(group, peer);
    return stop;
  }

 private:
  CHORALE_FN uint32_t down() const { return (call.rows + tall - 1) / tall; }
  CHORALE_FN uint32_t across() const { return (call.cols + wide - 1) / wide; }

  /// Calls f(row, col, rows, cols) for the pieces of a shard that are this group's, on all ranks the same.
  template <class F>
  CHORALE_FN void each_piece(const Group& group, const F& f) const {
    group.each_strided(uint64_t(down()) * across(), [&](uint64_t piece) {
      const uint32_t row = uint32_t(piece % down()) * tall, col = uint32_t(piece / down()) * wide;
      f(row, col, call.rows - row < tall ? call.rows - row : tall,
        call.cols - col < wide ? call.cols - col : wide);
    });
  }

  CHORALE_FN void turn_share(const Group& group, int32_t peer) const {
    const uint64_t row_elements = call.row_elements(window.ranks);
    const T* const from = call.in + uint64_t(peer) * call.cols;
    T* const to = reinterpret_cast<T*>(address(window, peer, uint64_t(window.self) * call.shard_bytes()));
    each_piece(group, [&](uint32_t row, uint32_t col, uint32_t rows, uint32_t cols) {
      TransposeTiles<T>::turn(group, from + row * row_elements + col, {row_elements, 1}, rows, cols,
                              to + uint64_t(col) * call.rows + row, call.rows);
    });
  }

  /// Copies what the group of `peer` with this group's number has written here.
  CHORALE_FN void copy_out(const Group& group, int32_t peer) const {
    constexpr uint32_t n = unit_bytes / sizeof(T);
    const uint64_t shard = uint64_t(peer) * call.rows * call.cols;
    const T* const from = reinterpret_cast<const T*>(window.base[window.self]) + shard;
    each_piece(group, [&](uint32_t row, uint32_t col, uint32_t rows, uint32_t cols) {
      const uint32_t in_run = (rows + n - 1) / n;
      for (uint32_t unit = group.rank; unit < in_run * cols; unit += group.size) {
        const uint32_t down = unit % in_run * n, valid = rows - down < n ? rows - down : n;
        const uint64_t at = uint64_t(col + unit / in_run) * call.rows + row + down;
        store_elements<T>(call.out + shard, at, load_elements<T>(from, at, valid), valid);
      }
    });
  }
};

/// Has the links and windows for transposing all-to-alls of a stated size.
class TransposeAllToAll : public Buffers {
 public:
  /// Makes it; collective. It takes `max_bytes` bytes of memory, and up to eight times the bytes that go as
  /// packets. In the form `tiles` it takes instead 64 KiB for each block.
  /// \param max_bytes  the bytes of a rank's whole matrix
  /// \throws as Buffers
  TransposeAllToAll(World& world, uint64_t max_bytes, const Setup& setup = {});

  /// Returns the form of a call with matrices of so many bytes. Every rank gets the same.
  Form form(uint64_t bytes) const;

  /// Returns the memory of the result in the form `window`. A call with a null `out` leaves its result there,
  /// and copies nothing; the next call overwrites it.
  template <class T>
  T* result() const {
    return reinterpret_cast<T*>(window_memory());
  }

  /// Makes a call, as launch() does. `in` and `out` must not overlap.
  /// \throws UsageError if the call is too long or a pointer is null; in the form `tiles` also if a column is
  ///         longer than 64 KiB; otherwise as launch()
  template <class T, class = chorale::detail::Side>
  void run(const T* in, T* out, uint32_t rows, uint32_t cols, LaunchStream on = {}) {
    check(rows, cols, sizeof(T), in != nullptr, out != nullptr);
    const TransposeCall<T> call{in, out, rows, cols};
    if (call.shard_bytes() == 0) return;
    const Form chosen = form(call.shard_bytes() * uint64_t(transport().world_size()));
    const LaunchName name{"TransposeAllToAll"};
    const uint32_t wide = 64 / sizeof(T) != 0 ? 64 / sizeof(T) : 1;
    const LaunchConfig launched = shape(chosen, rows, cols, sizeof(T), wide);
    if (chosen == Form::packets) {
      launch(transport(), TransposePackets<T>{transport().table(), call}, launched, on, name);
    } else if (chosen == Form::tiles) {
      const uint64_t fit = transport().slot_bytes() / (rows * sizeof(T));
      launch(transport(),
             TransposeTilesByPeer<T>{transport().table(), call, fit < wide ? uint32_t(fit) : wide}, launched,
             on, name);
    } else {
      launch(transport(), TransposeIntoWindow<T>{window(), call, tall, wide}, launched, on, name);
    }
  }

 private:
  static constexpr uint32_t tall = 256;  ///< rows of a piece; the columns are 64 bytes of a row
  void check(uint64_t rows, uint64_t cols, uint64_t element_bytes, bool in, bool out) const;
  LaunchConfig shape(Form form, uint64_t rows, uint64_t cols, uint64_t element_bytes, uint32_t wide) const;
};

}  // namespace chorale::fused
