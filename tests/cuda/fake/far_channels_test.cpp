// Tests port channels between hosts. The test pushes what blocks would push, and reads what they would wait
// for.

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "chorale/device/atomics.hpp"
#include "chorale/plan.hpp"
#include "executor/cuda/device/device_memory.hpp"
#include "executor/cuda/proxy/proxy.hpp"
#include "executor/ucx/ucx_link.hpp"
#include "state.hpp"
#include "tests/cuda/ranks.hpp"
#include "tests/free_port.hpp"

namespace chorale::test {
namespace {

/// Runs each rank as a separate host. Returns each rank's result: "good", or the error.
std::vector<std::string> on_hosts(int ranks, const RankBody& body) {
  gpus();  // before the fork
  const std::string address = free_address();
  Processes all(ranks, [&](int rank) {
    JoinOptions options;
    options.host = std::to_string(rank);
    options.timeout = std::chrono::seconds(30);
    World world = World::join(address, rank, ranks, options);
    return run_on_gpu(world, body);
  });
  std::vector<std::string> said;
  for (int rank = 0; rank < ranks; ++rank) said.push_back(all.said(rank));
  return said;
}

void expect_good(int ranks, const RankBody& body) {
  if (const std::string missing = ucx::UcxLink::missing(); !missing.empty()) GTEST_SKIP() << missing;
  for (const std::string& one : on_hosts(ranks, body)) EXPECT_EQ(one, "good");
}

bool comes(const uint64_t* word, uint64_t value) {
  for (int looks = 0; looks < 20000; ++looks) {
    if (load_acquire(word) >= value) return load_acquire(word) == value;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

/// Holds one rank of a plan. Each rank has one channel to every other rank, in the order of ranks.
class End {
 public:
  End(World& world, cuda::Proxy& proxy, size_t room)
      : ranks_(world.ranks()),
        rank_(world.rank()),
        room_(room),
        output_(room * size_t(ranks_), "an output"),
        signals_(sizeof(Signal) * size_t(ranks_), "signals"),
        completed_(sizeof(Signal) * size_t(ranks_), "progress") {
    std::memset(output_.data(), 0, room * size_t(ranks_));
    std::memset(signals_.data(), 0, sizeof(Signal) * size_t(ranks_));
    std::memset(completed_.data(), 0, sizeof(Signal) * size_t(ranks_));
    remote::RemoteEndpoint::Memory memory;
    memory.buffers[size_t(BufferKind::output)] = {output_.data(), room * size_t(ranks_)};
    memory.signals = reinterpret_cast<Signal*>(signals_.data());
    memory.n_signals = uint32_t(ranks_);
    std::vector<int> peers;
    for (int peer = 0; peer < ranks_; ++peer) {
      if (peer != rank_) peers.push_back(peer);
    }
    proxy.endpoint().connect();
    binding_ = proxy.endpoint().register_binding(memory, peers);
    std::vector<remote::RemoteEndpoint::FarEnd> far;
    far.resize(size_t(ranks_));
    for (int peer = 0; peer < ranks_; ++peer) {
      if (peer != rank_) far[size_t(peer)] = {peer, uint32_t(rank_)};
    }
    client_.emplace(proxy, std::vector<Signal*>(size_t(ranks_)), completed(),
                    std::vector<int>(size_t(ranks_)), far, binding_);
    world.barrier();
  }

  /// Pushes as a block does: `bytes` bytes to byte `at` of this rank's part of a peer's output, and then the
  /// signal if `signal` is set.
  void push(int peer, const char* from, uint64_t at, uint64_t bytes, bool signal) {
    cuda::PortFifo fifo = client_->fifo();
    cuda::PortTrigger& slot = fifo.slots[pushed_ & fifo.mask];
    slot.from = from;
    slot.to =
        remote::FarPlace::base(uint32_t(peer), uint32_t(BufferKind::output)) + size_t(rank_) * room_ + at;
    slot.bytes = bytes;
    slot.client = fifo.client;
    slot.channel = uint32_t(peer);
    slot.signal = signal;
    store_release(&slot.turn, ++pushed_);
  }

  const char* of(int peer) const { return output_.data() + size_t(peer) * room_; }
  const uint64_t* signal_of(int peer) const {
    return &reinterpret_cast<Signal*>(signals_.data())[peer].value;
  }
  const uint64_t* completed_to(int peer) const { return &completed()[peer].value; }
  Signal* completed() const { return reinterpret_cast<Signal*>(completed_.data()); }
  void go() { client_.reset(); }

 private:
  const int ranks_, rank_;
  const size_t room_;
  const cuda::DeviceMemory output_, signals_, completed_;
  uint64_t binding_ = 0, pushed_ = 0;
  std::optional<cuda::Proxy::Client> client_;
};

std::vector<char> data_of(int rank, size_t bytes, int turn) {
  std::vector<char> data(bytes);
  for (size_t at = 0; at < bytes; ++at)
    data[at] = char(at * 7 + size_t(rank) * 31 + size_t(turn) * 13 + at / 4099);
  return data;
}

/// Message sizes go from small to several pieces, and back. The signal comes after all of the data.
TEST(FarChannels, DataThenTheSignalThenThatItIsDone) {
  expect_good(3, [](World& world) -> std::string {
    constexpr size_t most = 3 << 20;
    cuda::Proxy proxy(world, 0);
    End end(world, proxy, most);
    uint64_t turn = 0;
    const cuda::DeviceMemory source(most, "an input");
    for (const size_t bytes :
         {size_t{1}, size_t{4096}, size_t{(512 << 10) - 1}, size_t{(512 << 10) + 1}, most, size_t{17}}) {
      ++turn;
      const std::vector<char> mine = data_of(world.rank(), bytes, int(turn));
      std::memcpy(source.data(), mine.data(), bytes);
      for (int peer = 0; peer < world.ranks(); ++peer) {
        if (peer == world.rank()) continue;
        end.push(peer, source.data(), 0, bytes, false);
        end.push(peer, nullptr, 0, 0, true);
      }
      for (int peer = 0; peer < world.ranks(); ++peer) {
        if (peer == world.rank()) continue;
        if (!comes(end.signal_of(peer), turn)) return "no signal";
        if (std::memcmp(end.of(peer), data_of(peer, bytes, int(turn)).data(), bytes) != 0)
          return "wrong data behind signal " + std::to_string(turn);
        if (!comes(end.completed_to(peer), 2 * turn)) return "it is not told that it is done";
      }
      world.barrier();
    }
    return "good";
  });
}

/// There are more orders and more bytes than fit at once, some with data and some without.
TEST(FarChannels, ManyAtOnce) {
  expect_good(2, [](World& world) -> std::string {
    constexpr size_t part = 300 << 10, parts = 500;
    cuda::Proxy proxy(world, 0);
    End end(world, proxy, part * parts);
    const int peer = 1 - world.rank();
    const cuda::DeviceMemory source(part * parts, "an input");
    const std::vector<char> mine = data_of(world.rank(), part * parts, 0);
    std::memcpy(source.data(), mine.data(), part * parts);
    for (size_t at = 0; at < parts; ++at)
      end.push(peer, source.data() + at * part, at * part, part, at % 3 == 0);
    if (!comes(end.signal_of(peer), (parts + 2) / 3)) return "not all signals";
    if (!comes(end.completed_to(peer), parts)) return "not all is done";
    world.barrier();
    if (std::memcmp(end.of(peer), data_of(peer, part * parts, 0).data(), part * parts) != 0)
      return "wrong data";
    return "good";
  });
}

/// A transfer is done when the peer has received it, not when it was sent. Copies at the peer are slow here.
TEST(FarChannels, DoneIsWhatThePeerHas) {
  expect_good(2, [](World& world) -> std::string {
    fake::state().copies_are_slow = world.rank() == 1;
    constexpr size_t bytes = 1 << 20;
    cuda::Proxy proxy(world, 0);
    End end(world, proxy, bytes);
    const std::vector<char> mine = data_of(0, bytes, 0);
    if (world.rank() == 0) {
      end.push(1, mine.data(), 0, bytes, false);
      if (!comes(end.completed_to(1), 1)) return "it is not done";
    }
    world.barrier();
    return world.rank() == 0 || std::memcmp(end.of(0), mine.data(), bytes) == 0 ? "good" : "it was not there";
  });
}

/// A launch does not wait for a signal without data. An endpoint that is destroyed afterwards still sends it.
TEST(FarChannels, ALastSignalIsSentByWhoGoes) {
  expect_good(2, [](World& world) -> std::string {
    for (int round = 0; round < 6; ++round) {
      cuda::Proxy proxy(world, 0);
      End end(world, proxy, 64);
      if (world.rank() == 0) {
        end.push(1, nullptr, 0, 0, true);
        end.go();
      } else if (!comes(end.signal_of(0), 1)) {
        return "no signal in round " + std::to_string(round);
      }
      if (world.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(round));
    }
    return "good";
  });
}

/// Data sent before a reset are dropped, and data sent after it arrive.
TEST(FarChannels, AResetForgets) {
  expect_good(2, [](World& world) -> std::string {
    constexpr size_t bytes = 8 << 20;
    cuda::Proxy proxy(world, 0);
    const std::vector<char> old = data_of(world.rank(), bytes, 1), fresh = data_of(world.rank(), bytes, 2);
    for (int round = 0; round < 5; ++round) {
      {
        End end(world, proxy, bytes);
        end.push(1 - world.rank(), old.data(), 0, bytes, true);
        std::this_thread::sleep_for(std::chrono::milliseconds(round));
        if (world.rank() == round % 2) world.abort("enough");
        try {
          for (int looks = 0; looks < 20000; ++looks) {
            world.check();
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          }
          return "no stop";
        } catch (const RunError&) {
        }
        proxy.drop();
        world.reset();
      }
      End end(world, proxy, bytes);
      const int peer = 1 - world.rank();
      if (load_acquire(end.signal_of(peer)) != 0 || end.of(peer)[1] != 0) return "old data";
      world.barrier();
      end.push(peer, fresh.data(), 0, bytes, true);
      if (!comes(end.signal_of(peer), 1)) return "no signal behind the reset";
      if (std::memcmp(end.of(peer), data_of(peer, bytes, 2).data(), bytes) != 0) return "wrong data";
      if (!comes(end.completed_to(peer), 1)) return "it is not done";
      world.barrier();
    }
    return "good";
  });
}

/// Nothing is written outside the memory that a binding exposes to peers.
TEST(FarChannels, WhatIsOutsideIsRefused) {
  expect_good(2, [](World& world) -> std::string {
    cuda::Proxy proxy(world, 0);
    End end(world, proxy, 4096);
    const std::vector<char> mine(4096);
    if (world.rank() == 0)
      end.push(1, mine.data(), 8192 - 4096 + 1, 4096, false);  // a byte too far, for rank 0
    try {
      for (int looks = 0; looks < 20000; ++looks) {
        world.check();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    } catch (const RunError& stopped) {
      const std::string text = stopped.what();
      const std::string wanted = "rank 0 puts 4096 bytes at byte 4097 of a buffer of rank 1 that has 8192";
      return text.find(wanted) != std::string::npos ? "good" : text;
    }
    return "it is not refused";
  });
}

/// Nothing can arrive after the failed copy, although blocks here and at peers wait for it.
TEST(FarChannels, ACopyThatFailsStopsTheWorld) {
  expect_good(2, [](World& world) -> std::string {
    cuda::Proxy proxy(world, 0);
    End end(world, proxy, 4096);
    fake::state().copies_fail = true;
    const std::vector<char> mine(4096);
    if (world.rank() == 1) end.push(0, mine.data(), 0, 4096, true);
    try {
      for (int looks = 0; looks < 20000; ++looks) {
        world.check();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    } catch (const RunError& stopped) {
      const std::string text = stopped.what();
      return text.find("the proxy of port channels: a copy to another host: ") != std::string::npos ? "good"
                                                                                                    : text;
    }
    return "nothing";
  });
}

}  // namespace
}  // namespace chorale::test
