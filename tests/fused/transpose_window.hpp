#pragma once
#include <chorale/device.hpp>
#include <cstdint>

/// Does the work of TransposeAllToAll without a ring. It writes results directly to their places in the
/// peers' windows. It uses barriers 2 * group and 2 * group + 1.
template <class T>
struct TransposeIntoWindow {
  chorale::WindowView window;  ///< a rank's result: rows * cols elements of each rank
  const T* in;
  uint32_t rows, cols;
  uint32_t tall, wide;  ///< rows and columns of `in` that a group transposes at a time

  CHORALE_FN chorale::Stop operator()(const chorale::Group& group, const chorale::Deadline& deadline) const {
    using namespace chorale;
    const uint32_t writable = 2 * group.id, written = writable + 1;
    const Stop stop = barrier(group, window, writable, deadline);
    if (stop != Stop::none) return stop;
    for (int32_t step = 1; step < window.ranks; ++step)
      turn_share(group, (window.self + step) % window.ranks);
    // All peers are signalled together, because each signal waits until all stores have landed. Meanwhile the
    // group transposes this rank's own share.
    arrive_all(group, window, written);
    turn_share(group, window.self);
    return wait_all(group, window, written, deadline);
  }

  CHORALE_FN void turn_share(const chorale::Group& group, int32_t peer) const {
    const uint64_t row_elements = uint64_t(cols) * uint32_t(window.ranks);
    const T* const from = in + uint64_t(peer) * cols;
    T* const to =
        reinterpret_cast<T*>(chorale::address(window, peer, uint64_t(window.self) * rows * cols * sizeof(T)));
    const uint32_t down = (rows + tall - 1) / tall, across = (cols + wide - 1) / wide;
    group.each_strided(uint64_t(down) * across, [&](uint64_t piece) {
      const uint32_t row = uint32_t(piece % down) * tall, col = uint32_t(piece / down) * wide;
      chorale::TransposeTiles<T>::turn(
          group, from + row * row_elements + col, {row_elements, 1}, rows - row < tall ? rows - row : tall,
          cols - col < wide ? cols - col : wide, to + uint64_t(col) * rows + row, rows);
    });
  }
};
