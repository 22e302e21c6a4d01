/// \file
/// Checks what a host's control relay sends and does, in the rare orders. The test acts as the other hosts.

#include "executor/world/control_relay.hpp"

#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <thread>

#include "executor/world/group.hpp"
#include "executor/world/process.hpp"
#include "tests/free_port.hpp"

namespace chorale::test {
namespace {

using namespace std::chrono_literals;
using system::Descriptor;
using world::Collective;
using world::Control;
using world::ControlRelay;
using world::Presence;
using Event = ControlRelay::Event;
using What = ControlRelay::What;

/// Acts as one end of a connection, as the other host does.
class Far {
 public:
  explicit Far(int socket) : socket_(socket) {}

  void say(const Event& event) {
    ASSERT_EQ(::send(socket_.get(), &event, sizeof event, MSG_NOSIGNAL), ssize_t(sizeof event));
  }

  /// Waits until everything that was sent has been read.
  void await_read() {
    for (int left = 1; left != 0; std::this_thread::sleep_for(1ms)) ioctl(socket_.get(), SIOCOUTQ, &left);
  }

  /// Returns the next event that arrives; nothing within a minute is a failure.
  Event hear() {
    Event event{};
    pollfd polled{socket_.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&polled, 1, 60000), 1);
    EXPECT_EQ(::recv(socket_.get(), &event, sizeof event, MSG_WAITALL), ssize_t(sizeof event));
    std::vector<char> text(event.bytes);
    if (text.empty()) return event;
    EXPECT_EQ(::recv(socket_.get(), text.data(), text.size(), MSG_WAITALL), ssize_t(text.size()));
    return event;
  }

  void close() { socket_ = Descriptor(); }

 private:
  Descriptor socket_;
};

/// Sets up a host with its control memory. Its ranks do only what the test writes there.
class ControlRelays : public testing::Test {
 protected:
  /// \param hosts  by rank; this host is 0, so it forwards
  void set_up(const std::vector<uint32_t>& hosts) {
    const uint64_t bytes = Control::bytes(int(hosts.size()));
    const Descriptor memory = system::create_shared(bytes);
    ours_ = system::Mapping(memory, bytes);
    given_ = system::Mapping(memory, bytes);
    control().ranks = uint32_t(hosts.size());
    for (size_t rank = 0; rank < hosts.size(); ++rank) {
      control().seats()[rank].host = hosts[rank];
      control().seats()[rank].presence = Presence::joined;
      if (hosts[rank] == 0) control().seats()[rank].process = world::this_process();
      hosts_ = std::max(hosts_, hosts[rank] + 1);
    }
  }

  void start(bool by_tcp = false) {
    world::Hosts hosts;
    for (uint32_t host = 0; host < hosts_; ++host) {
      hosts.names.push_back(std::to_string(host));
      int ends[2] = {-1, -1};
      if (host != 0 && by_tcp) {
        connect_by_tcp(ends);
      } else if (host != 0) {
        ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
      }
      hosts.links.emplace_back(ends[0]);
      far.emplace_back(ends[1]);
    }
    group_.emplace(std::move(given_), 0, world::Group::Options{0, {}, 60s}, std::move(hosts));
  }

  Control& control() { return *reinterpret_cast<Control*>(ours_.data()); }
  world::Seat& seat(int rank) { return control().seats()[rank]; }

  void ring() {
    control().bell.fetch_add(1);
    world::wake_all(control().bell);
  }

  static Event event(What what, uint32_t rank, uint64_t number, uint64_t resets = 0) {
    Event made{};
    made.what = what;
    made.rank = rank;
    made.number = number;
    made.resets = resets;
    return made;
  }

  /// Waits until everything that `host` has sent before has been handled, unless it has to wait. `rank` is of
  /// another host.
  void settle(int host, int other_host, int rank) {
    far[size_t(host)].await_read();
    const uint64_t number = ++launches_;
    far[size_t(other_host)].say(event(What::launches, uint32_t(rank), number));
    while (seat(rank).launches != number) std::this_thread::sleep_for(1ms);
  }

  void stop_here(Stop stop) {
    control().abort.claimed = 1;
    store_release(&control().abort.stop, uint32_t(stop));
    ring();
  }

  /// Puts each rank of this host into an exchange, with data to send in it.
  void speak_at_once() {
    for (uint32_t rank = 0; rank < control().ranks; ++rank) {
      if (seat(int(rank)).host != 0) continue;
      seat(int(rank)).collective[1] = Collective::allgather;
      seat(int(rank)).total_bytes[1] = world::Seat::chunk_bytes;
      seat(int(rank)).arrived = 1;
    }
  }

  void leave() { group_.reset(); }

  void TearDown() override {
    far.clear();  // no wait for any host is needed
    leave();
  }

  std::vector<Far> far;  ///< by host; [0] is unused

 private:
  /// Connects two ends with such small buffers that they fill soon if the second end does not read.
  static void connect_by_tcp(int (&ends)[2]) {
    const uint16_t port = free_port();
    const int listening = bound_socket(port), little = 4096;
    ASSERT_EQ(listen(listening, 1), 0);
    ends[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(ends[1], SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(connect(ends[1], reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ends[0] = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
    close(listening);
  }

  uint32_t hosts_ = 0;
  uint64_t launches_ = 0;
  system::Mapping ours_, given_;
  std::optional<world::Group> group_;
};

std::vector<std::pair<What, uint64_t>> heard_of(Far& far, int n, std::vector<uint32_t>* ranks = nullptr) {
  std::vector<std::pair<What, uint64_t>> all;
  for (int at = 0; at < n; ++at) {
    const Event event = far.hear();
    all.push_back({event.what, event.number});
    if (ranks) ranks->push_back(event.rank);
  }
  return all;
}

/// Rank 0 is in its second barrier because rank 1 has been in the first one.
TEST_F(ControlRelays, TellsOfABarrierBehindTheOneBefore) {
  set_up({0, 0, 1});
  seat(0).arrived = 2;
  seat(1).arrived = 1;
  control().barrier.passed = 1;
  start();
  std::vector<uint32_t> ranks;
  EXPECT_EQ(heard_of(far[1], 3, &ranks), (std::vector<std::pair<What, uint64_t>>{
                                             {What::arrived, 1}, {What::arrived, 1}, {What::arrived, 2}}));
  EXPECT_EQ(ranks, (std::vector<uint32_t>{0, 1, 0}));
}

/// The rank that stopped the world had passed the barriers with all others.
TEST_F(ControlRelays, TellsOfAStopBehindTheBarriers) {
  set_up({0, 0, 1});
  seat(0).arrived = seat(1).arrived = 1;
  control().barrier.passed = 1;
  control().abort.claimed = 1;
  control().abort.stop = uint32_t(Stop::aborted);
  start();
  EXPECT_EQ(heard_of(far[1], 3),
            (std::vector<std::pair<What, uint64_t>>{
                {What::arrived, 1}, {What::arrived, 1}, {What::stop, uint64_t(Stop::aborted)}}));
}

/// Others may still wait for the barrier that a rank in a reset has passed.
TEST_F(ControlRelays, TellsOfAResetBehindBarriersAndStops) {
  set_up({0, 0, 1});
  seat(0).arrived = seat(1).arrived = 1;
  seat(0).resets = 1;
  control().barrier.passed = 1;
  control().abort.claimed = 1;
  control().abort.stop = uint32_t(Stop::aborted);
  start();
  EXPECT_EQ(
      heard_of(far[1], 4),
      (std::vector<std::pair<What, uint64_t>>{
          {What::arrived, 1}, {What::arrived, 1}, {What::stop, uint64_t(Stop::aborted)}, {What::reset, 1}}));
}

TEST_F(ControlRelays, TellsOfEveryStopOnce) {
  set_up({0, 1});
  start();
  for (uint64_t round = 0; round < 3; ++round) {
    stop_here(Stop::aborted);
    const Event told = far[1].hear();
    EXPECT_EQ(told.what, What::stop);
    EXPECT_EQ(told.resets, round);
    seat(0).resets = round + 1;
    ring();
    EXPECT_EQ(far[1].hear().what, What::reset);
    store_release(&control().abort.stop, 0u);
    store_release(&control().abort.claimed, 0u);
    control().reset.passed = round + 1;
  }
}

/// A rank of this host may be seen in a barrier before it has counted itself there.
TEST_F(ControlRelays, ABarrierWaitsForTheOneBeforeIt) {
  set_up({0, 1, 2});
  start();
  far[1].say(event(What::arrived, 1, 1));
  far[1].say(event(What::arrived, 1, 2));
  settle(1, 2, 2);
  EXPECT_EQ(seat(1).arrived, 1u);
  EXPECT_EQ(control().barrier.arrived, 1u);
  control().barrier.arrived = 0;
  control().barrier.passed = 1;
  ring();
  while (seat(1).arrived != 2) std::this_thread::sleep_for(1ms);
}

TEST_F(ControlRelays, AResetWaitsForTheOneBeforeIt) {
  set_up({0, 1, 2});
  start();
  far[1].say(event(What::reset, 1, 1));
  far[1].say(event(What::reset, 1, 2));
  settle(1, 2, 2);
  EXPECT_EQ(seat(1).resets, 1u);
  control().reset.arrived = 0;
  control().reset.passed = 1;
  ring();
  while (seat(1).resets != 2) std::this_thread::sleep_for(1ms);
}

/// The events are of a world that this host has not reset yet.
TEST_F(ControlRelays, WhatComesBehindAResetWaitsForIt) {
  for (const What what : {What::arrived, What::stop}) {
    set_up({0, 1, 2});
    far.clear();
    start();
    far[1].say(event(what, 1, 1, 1));
    settle(1, 2, 2);
    EXPECT_EQ(seat(1).arrived, 0u);
    EXPECT_EQ(load_acquire(&control().abort.stop), 0u);
    control().reset.passed = 1;
    ring();
    while (seat(1).arrived == 0 && load_acquire(&control().abort.stop) == 0) std::this_thread::sleep_for(1ms);
    TearDown();
  }
}

TEST_F(ControlRelays, WhatWasBeforeAResetIsOver) {
  set_up({0, 1, 2});
  control().reset.passed = 1;
  start();
  far[1].say(event(What::stop, 1, uint64_t(Stop::aborted), 0));
  far[1].say(event(What::arrived, 1, 1, 0));
  settle(1, 2, 2);
  EXPECT_EQ(load_acquire(&control().abort.stop), 0u);
  EXPECT_EQ(seat(1).arrived, 0u);
}

TEST_F(ControlRelays, PassesOnToAllOthers) {
  set_up({0, 1, 2, 3});
  start();
  far[2].say(event(What::arrived, 2, 1));
  for (const int host : {1, 3}) {
    const Event told = far[size_t(host)].hear();
    EXPECT_EQ(told.what, What::arrived);
    EXPECT_EQ(told.rank, 2u);
  }
}

/// The rank had announced that it leaves, after an event that waits.
TEST_F(ControlRelays, WhoHasLeftIsNotLost) {
  set_up({0, 1, 2});
  start();
  far[1].say(event(What::arrived, 1, 2));
  far[1].say(event(What::left, 1, 0));
  far[1].await_read();
  far[1].close();
  settle(2, 2, 2);
  std::this_thread::sleep_for(50ms);  // long enough for a wrong relay to find that the connection has ended
  EXPECT_EQ(load_acquire(&control().abort.stop), 0u);
  control().barrier.passed = 1;
  ring();
  while (seat(1).presence.load() != Presence::left) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(load_acquire(&control().abort.stop), 0u);
}

/// Both hosts have many ranks and more to send than a connection holds. Neither waits for the other to read
/// first.
TEST_F(ControlRelays, HostsThatSpeakAtOnceHearEachOther) {
  std::vector<uint32_t> hosts(128, 0);
  hosts.push_back(1);
  set_up(hosts);
  speak_at_once();
  start();
  constexpr uint64_t launches = 50000;
  for (uint64_t number = 1; number <= launches; ++number) {
    far[1].say(event(What::launches, 128, number));
    if (HasFatalFailure()) return;
  }
  for (const auto& [what, number] : heard_of(far[1], 128)) EXPECT_EQ(what, What::arrived);
  while (seat(128).launches != launches) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(load_acquire(&control().abort.stop), 0u);
}

/// A rank that leaves has still passed the barriers with the others. Their hosts may have much to read, and
/// send something meanwhile.
TEST_F(ControlRelays, WhatWasToldLastComes) {
  for (const bool by_tcp : {false, true}) {
    std::vector<uint32_t> hosts(128, 0);
    hosts.push_back(1);
    set_up(hosts);
    far.clear();
    speak_at_once();
    for (int rank = 0; rank < 128; ++rank) seat(rank).presence = Presence::left;
    start(by_tcp);
    std::this_thread::sleep_for(50ms);  // until the buffers are full
    std::thread leaving([&] { leave(); });
    std::this_thread::sleep_for(50ms);
    far[1].say(event(What::launches, 128, 1));  // which the other end no longer reads
    std::map<What, int> heard;
    for (const auto& [what, number] : heard_of(far[1], 256)) ++heard[what];
    EXPECT_EQ(heard, (std::map<What, int>{{What::arrived, 128}, {What::left, 128}})) << by_tcp;
    leaving.join();
    if (HasFailure()) return;
  }
}

TEST_F(ControlRelays, WhoEndsWithoutAWordIsLost) {
  set_up({0, 1, 2});
  start();
  far[1].close();
  while (load_acquire(&control().abort.stop) == 0) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(Stop(control().abort.stop), Stop::peer_lost);
  EXPECT_EQ(control().abort.rank, 1u);
  const Event told = far[2].hear();
  EXPECT_EQ(told.what, What::stop);
  EXPECT_EQ(told.number, uint64_t(Stop::peer_lost));
}

}  // namespace
}  // namespace chorale::test
