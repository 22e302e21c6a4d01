/// \file
/// Tests launches that the host refuses with a message, and that leave the links unchanged.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "tests/cuda/tiles_rank.cuh"
#include "tests/cuda/tiles_shapes.cuh"

namespace tiles_test {

struct Idle {
  __device__ Stop operator()(const Group&, const Deadline&) const { return Stop::none; }
};

template <class Kernel = Idle>
void expect_refused(const char* what, Transport& transport, const Rank& rank, const LaunchConfig& config,
                    const std::string& words, const Kernel& kernel = {}) {
  try {
    launch(transport, kernel, config, {rank.stream});
    std::printf("%s: not refused\n", what);
  } catch (const UsageError& error) {
    if (std::string(error.what()).find(words) != std::string::npos) return;
    std::printf("%s: refused as \"%s\"\n", what, error.what());
  }
  ++failures;
}

inline void test_refusals(const Rank& rank) {
  const auto transport = direct_rendezvous(rank.world, Rank::rings(2, 2, 1024));
  RendezvousOptions there = Rank::rings(2, 2, 1024);
  there.space = Space::host;
  const auto of_host = direct_rendezvous(rank.world, there);
  expect_refused("more blocks than a GPU holds", *transport, rank, {1 << 20, 1024},
                 "1048576 blocks of 1024 threads wait for each other, and this GPU holds");
  // Its threads need more than the 64 registers that this many threads can have.
  expect_refused("a block that does not fit", *transport, rank, {1, 1024},
                 "a block of 1024 threads of this kernel does not fit on this GPU", AllReduce{});
  expect_refused("0 blocks", *transport, rank, {0, 32}, "the launch has 0 blocks, expected at least 1");
  expect_refused("a transport of the host", *of_host, rank, {1, 32}, "this transport is in host memory");
  int device = 0, gpus = 0;
  check(cudaGetDevice(&device));
  check(cudaGetDeviceCount(&gpus));
  if (gpus > 1) {
    check(cudaSetDevice((device + 1) % gpus));
    expect_refused("another GPU", *transport, rank, {1, 32}, "cudaSetDevice() before the launch");
    check(cudaSetDevice(device));
  }
  const uint64_t n = 1000;
  const Buffer in(n), out(n);
  rank.ready();
  in.fill(rank.stream, uint64_t(rank.self));
  out.clear(rank.stream);
  sendrecv(*transport, in.data(), out.data(), n, rank.right, rank.left, CopyProduce{}, CopyConsume{}, {2, 64},
           {rank.stream});
  rank.ended();
  out.expect("after refusals", rank.stream, n, Sent{uint64_t(rank.left)});
}

}  // namespace tiles_test
