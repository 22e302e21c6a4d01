/// \file
/// Runs ranks that count as separate hosts, each with a remote endpoint, for tests.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "chorale/device/atomics.hpp"
#include "chorale/plan.hpp"
#include "chorale/world.hpp"
#include "executor/remote/endpoint.hpp"
#include "executor/remote/host_copies.hpp"
#include "executor/ucx/ucx_link.hpp"
#include "tests/free_port.hpp"
#include "tests/unit/world/processes.hpp"

namespace chorale::test {

using namespace std::chrono_literals;

/// Runs one rank of a test. Returns "good" or the error.
using RankBody = std::function<std::string(World&)>;

/// Runs each rank as a process that counts as a separate host. Expects each rank's result in `good`.
inline void expect_from_hosts(const std::vector<std::string>& good, const RankBody& body,
                              std::chrono::nanoseconds timeout = 60s) {
  if (const std::string missing = ucx::UcxLink::missing(); !missing.empty()) GTEST_SKIP() << missing;
  const std::string address = free_address();
  Processes all(int(good.size()), [&](int rank) {
    JoinOptions options;
    options.host = std::to_string(rank);
    options.timeout = timeout;
    World world = World::join(address, rank, int(good.size()), options);
    return body(world);
  });
  for (size_t rank = 0; rank < good.size(); ++rank) {
    const std::string said = all.said(int(rank));
    EXPECT_NE(said.find(good[rank]), std::string::npos) << "rank " << rank << " says: " << said;
  }
}

inline void expect_good(int ranks, const RankBody& body, std::chrono::nanoseconds timeout = 60s) {
  expect_from_hosts(std::vector<std::string>(size_t(ranks), "good"), body, timeout);
}

/// Waits until the world has stopped, and returns the reason.
inline std::string stop_of(World& world) {
  for (int looks = 0; looks < 20000; ++looks) {
    try {
      world.check();
    } catch (const RunError& stopped) {
      return stopped.what();
    }
    std::this_thread::sleep_for(1ms);
  }
  return "the world does not stop";
}

inline bool comes(const uint64_t* word, uint64_t value) {
  for (int looks = 0; looks < 20000 && load_acquire(word) < value; ++looks) std::this_thread::sleep_for(1ms);
  return load_acquire(word) == value;
}

inline std::vector<char> data_of(int rank, size_t bytes, int turn = 0) {
  std::vector<char> data(bytes);
  for (size_t at = 0; at < bytes; ++at)
    data[at] = char(at * 7 + size_t(rank) * 31 + size_t(turn) * 13 + at / 4099);
  return data;
}

/// Holds the memory of one binding. Each rank has a part in each buffer of the others, a signal at each of
/// them, and a counter of what it has sent to each.
class Bound {
 public:
  static constexpr uint32_t input = uint32_t(BufferKind::input), output = uint32_t(BufferKind::output),
                            scratch = uint32_t(BufferKind::scratch);

  Bound(World& world, size_t part, bool runs_name_buffers = false)
      : part_(part),
        ranks_(size_t(world.ranks())),
        output_(part * ranks_),
        scratch_(part * ranks_),
        signals_(ranks_),
        done_(ranks_) {
    memory.runs_name_buffers = runs_name_buffers;
    if (!runs_name_buffers) memory.buffers[output] = region();
    memory.buffers[scratch] = {scratch_.data(), scratch_.size()};
    memory.signals = signals_.data();
    memory.n_signals = uint32_t(ranks_);
  }

  remote::RemoteEndpoint::Region region() { return {output_.data(), output_.size()}; }
  const char* of(int peer, uint32_t buffer = output) const {
    return (buffer == output ? output_ : scratch_).data() + size_t(peer) * part_;
  }
  bool has(int peer, const std::vector<char>& data, uint32_t buffer = output) const {
    return std::memcmp(of(peer, buffer), data.data(), data.size()) == 0;
  }
  const uint64_t* signal_of(int peer) const { return &signals_[size_t(peer)].value; }
  const uint64_t* done_at(int peer) const { return &done_[size_t(peer)].value; }
  void note_done(uint32_t peer) { add_release(&done_[peer].value, uint64_t(1)); }
  size_t part() const { return part_; }

  remote::RemoteEndpoint::Memory memory;
  uint64_t number = 0;                  ///< from the endpoint
  std::map<int, uint64_t> posted = {};  ///< signals to each peer

 private:
  const size_t part_, ranks_;
  std::vector<char> output_, scratch_;
  std::vector<Signal> signals_, done_;
};

/// Holds one rank: an endpoint and a thread that works.
class End {
 public:
  explicit End(World& world, std::unique_ptr<remote::Copies> copies = std::make_unique<remote::HostCopies>())
      : world_(world),
        endpoint(world, std::move(copies),
                 {[this](uint32_t client, uint32_t channel) { bound_[client]->note_done(channel); },
                  [this] { moved.fetch_add(1); }}) {
    endpoint.connect();
    start();
  }
  ~End() { stop(); }

  void start() {
    quit_ = false;
    thread_ = std::thread([this] {
      while (!quit_) {
        if (!endpoint.work()) std::this_thread::sleep_for(100us);
      }
    });
  }
  /// Lets nothing happen here until start().
  void stop() {
    quit_ = true;
    if (thread_.joinable()) thread_.join();
  }

  void bind(Bound& bound) {
    std::vector<int> peers;
    for (int peer = 0; peer < world_.ranks(); ++peer) {
      if (peer != world_.rank()) peers.push_back(peer);
    }
    bound.number = endpoint.register_binding(bound.memory, peers);
    bound_.push_back(&bound);
  }

  /// Names one transfer to a peer: the offset in this rank's part of the peer's buffer, and the run.
  struct To {
    int peer;
    uint64_t run = 0;
    uint32_t buffer = Bound::output;
    uint64_t at = 0;
  };
  void send(Bound& bound, const To& to, const char* from, uint64_t bytes, bool signal) {
    remote::RemoteEndpoint::Order order;
    while (bound_[order.client] != &bound) ++order.client;
    order.channel = uint32_t(to.peer);
    order.peer = to.peer;
    order.binding = bound.number;
    order.run = to.run;
    order.from = from;
    order.to = {uint32_t(to.peer), to.buffer, size_t(world_.rank()) * bound.part() + to.at};
    order.bytes = bytes;
    if (signal) {
      order.signal = uint32_t(world_.rank());
      order.posted = ++bound.posted[to.peer];
    }
    endpoint.send(order);
  }

  /// Waits as the end of a launch does.
  void settle() {
    endpoint.start_clock();
    while (!endpoint.settled()) std::this_thread::sleep_for(100us);
  }

 private:
  World& world_;
  std::vector<Bound*> bound_;  ///< by client
  std::atomic<bool> quit_{false};
  std::thread thread_;

 public:
  std::atomic<int> moved{0};
  remote::RemoteEndpoint endpoint;
};

}  // namespace chorale::test
