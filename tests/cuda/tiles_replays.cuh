/// \file
/// Replays graphs of the launchers and of windows with other data each time: nothing that was captured
/// changes. Graphs of collectives, packets and counts are in the files of their other tests.
#pragma once

#include <chorale/one_sided_window.hpp>
#include <cstdint>

#include "tests/cuda/tiles_rank.cuh"

namespace tiles_test {

/// Passes data to the right. At the first barrier the rank on the right has read its old data. At the second
/// barrier all have written.
struct PassToTheRight {
  WindowView view;
  const uint32_t* in;
  uint32_t* out;
  uint64_t bytes;
  __device__ Stop operator()(const Group& group, const Deadline& deadline) const {
    Stop stop = barrier(group, view, 0, deadline);
    if (stop != Stop::none) return stop;
    put(group, view, (view.self + 1) % view.ranks, 64, in, bytes);
    stop = barrier(group, view, 0, deadline);
    if (stop == Stop::none) get(group, view, view.self, 64, out, bytes);
    return stop;
  }
};

/// Replays the work that enqueue() launches, and checks that it moves the data of `from`.
template <class Enqueue>
void test_replayed(const Rank& rank, const char* what, uint64_t replays, const Buffer& in, const Buffer& out,
                   uint64_t n, int from, const Enqueue& enqueue) {
  replay(
      rank, replays, enqueue,
      [&](uint64_t number) {
        in.fill(rank.stream, number * 100 + uint64_t(rank.self));
        out.clear(rank.stream);
      },
      [&](uint64_t number) {
        if (from >= 0) out.expect(what, rank.stream, n, Sent{number * 100 + uint64_t(from)});
      });
}

inline void test_replays_of_launchers(const Rank& rank, bool quick) {
  const uint64_t n = 5003, replays = quick ? 5 : 100;
  const LaunchConfig config{2, 128};
  const auto transport = direct_rendezvous(rank.world, Rank::rings(2, 3, 1024));
  const OneSidedWindow window = OneSidedWindow::create(rank.world, 64 + n * 4, 0, 1, Space::device);
  const Buffer in(n), out(n);
  test_replayed(rank, "sendrecv, replayed", replays, in, out, n, rank.left, [&] {
    sendrecv(*transport, in.data(), out.data(), n, rank.right, rank.left, CopyProduce{}, CopyConsume{},
             config, {rank.stream});
  });
  // The graphs of ranks after the second are empty.
  test_replayed(rank, "send and recv, replayed", replays, in, out, n, rank.self == 1 ? 0 : -1, [&] {
    if (rank.self == 0) send(*transport, in.data(), n, 1, CopyProduce{}, config, {rank.stream});
    if (rank.self == 1) recv(*transport, out.data(), n, 0, CopyConsume{}, config, {rank.stream});
  });
  test_replayed(rank, "windows, replayed", replays, in, out, n, rank.left, [&] {
    launch(*transport, PassToTheRight{window.view(), in.data(), out.data(), n * 4}, {1, 256}, {rank.stream});
  });
}

}  // namespace tiles_test
