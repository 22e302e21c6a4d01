// These tests check faults between ranks, and how ranks can continue afterwards.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "support.hpp"
#include "tests/unit/world/processes.hpp"

namespace chorale {
namespace {

using namespace test;

/// Returns each rank's error when sizes differ, `sent` and `received`, in rings of `options`.
std::vector<std::string> of_other_sizes(uint64_t sent, uint64_t received, const ExchangeOptions& options,
                                        std::optional<uint64_t> seed = {}) {
  std::vector<std::string> said(3);
  run_local(3,
            [&](World& world) {
              Exchange exchange(world, options, on_cpu());
              std::vector<uint8_t> data(std::max(sent, received));
              said[size_t(world.rank())] = message_of_error<RunError>([&] {
                if (world.rank() == 0) exchange.send(data.data(), sent, 1);
                if (world.rank() == 1) exchange.recv(data.data(), received, 0);
                world.barrier();
              });
              world.reset();
              exchange.reset();
              EXPECT_EQ(make_call(world, exchange, 3, 3, 500), "");
            },
            {.seed = seed});
  return said;
}

TEST(ExchangeFaults, SizesThatDifferAreNamedOnAllRanks) {
  const ExchangeOptions options{.slot_bytes = 64, .slots = 2, .blocks_per_peer = 3};
  for (const auto& [sent, received] : std::vector<std::pair<uint64_t, uint64_t>>{
           {5, 6}, {6, 5}, {0, 1}, {1, 0}, {5000, 5001}, {5000, 40}, {40, 5000}}) {
    for (const auto seed : {std::optional<uint64_t>{}, std::optional<uint64_t>{7}}) {
      const std::string wanted = fmt::format(
          "aborted by rank 1: rank 1 in an exchange: rank 0 sends {} bytes to rank 1, which receives {}: "
          "messages between two ranks match in order, and both ranks must name the same size",
          sent, received);
      for (const std::string& said : of_other_sizes(sent, received, options, seed)) EXPECT_EQ(said, wanted);
    }
  }
}

TEST(ExchangeFaults, APeerThatDoesNotComeIsADeadlock) {
  std::string said;
  run_local(2, [&](World& world) {
    Exchange exchange(world, {.slot_bytes = 64}, on_cpu());
    std::vector<uint8_t> data(5000);
    const std::string mine =
        message_of_error<RunError>([&] { exchange.recv(data.data(), data.size(), 1 - world.rank()); });
    if (world.rank() == 0) said = mine;
    world.reset();
    EXPECT_NE(message_of_error<UsageError>([&] {
                exchange.send(data.data(), 1, 1 - world.rank());
              }).find("call Exchange::reset() on all ranks"),
              std::string::npos);
    exchange.reset();
    EXPECT_EQ(make_call(world, exchange, 3, 3, 500), "");
  });
  EXPECT_NE(said.find("deadlock"), std::string::npos) << said;
  EXPECT_NE(
      said.find(
          "rank 0 block 0 of an exchange receiving from rank 1, channel 0: the peer's data has arrived up to "
          "byte 0"),
      std::string::npos)
      << said;
}

/// A rank is busy elsewhere for longer than the others wait.
TEST(ExchangeFaults, APeerThatIsLateIsTheDeadlinesError) {
  const std::string address = fresh_address();
  Processes all(2, [&](int rank) -> std::string {
    World world = World::join(address, rank, 2, {.timeout = std::chrono::seconds(2)});
    Exchange exchange(world, {.slot_bytes = 64}, on_cpu());
    std::vector<uint8_t> data(5000);
    std::string said;
    if (rank == 0) said = message_of_error<RunError>([&] { exchange.send(data.data(), data.size(), 1); });
    while (rank == 1 && said.empty()) {
      usleep(10000);
      said = message_of_error<RunError>([&] { world.check(); });
    }
    world.reset();
    exchange.reset();
    const std::string wrong = make_call(world, exchange, 3, 3, 500);
    world.barrier();
    return wrong.empty() ? said : wrong;
  });
  for (int rank = 0; rank < 2; ++rank) {
    const std::string said = all.said(rank);
    EXPECT_EQ(said.find("timed out"), 0u) << said;
    EXPECT_NE(said.find("sending to rank 1, channel 0"), std::string::npos) << said;
  }
}

TEST(ExchangeFaults, ADeadPeerIsAnErrorOfTheOthers) {
  const std::string address = fresh_address();
  Processes all(3, [&](int rank) -> std::string {
    World world = World::join(address, rank, 3);
    Exchange exchange(world, {.slot_bytes = 64}, on_cpu());
    std::vector<uint8_t> data(5000);
    if (rank == 2) std::_Exit(0);
    try {
      exchange.recv(data.data(), data.size(), 2);
    } catch (const RunError& error) {
      return name(error.reason);
    }
    return "nothing";
  });
  EXPECT_EQ(all.said(0), "peer_lost");
  EXPECT_EQ(all.said(1), "peer_lost");
}

/// A second thread's messages would come between those of the first.
TEST(ExchangeFaults, ASecondThreadIsRefused) {
  std::atomic<bool> over{false};
  run_local(2, [&](World& world) {
    Exchange exchange(world, {}, on_cpu());
    std::vector<uint8_t> data(100, uint8_t(world.rank()));
    if (world.rank() == 1) {
      over.wait(false);
      return exchange.send(data.data(), data.size(), 0);
    }
    std::thread first([&] {
      const auto receive = [&] { exchange.recv(data.data(), data.size(), 1); };
      while (!message_of_error<UsageError>(receive).empty()) continue;  // the other call may come first
    });
    // A call is refused only after the first one has begun. The loop runs out of time only if it is never
    // refused.
    std::string said;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (said.empty() && std::chrono::steady_clock::now() < end)
      said = message_of_error<UsageError>([&] { exchange.exchange({}, {}); });
    EXPECT_EQ(said.find("an exchange takes one call at a time, and another thread is in one"), 0u) << said;
    over = true;
    over.notify_one();
    first.join();
    EXPECT_EQ(data, std::vector<uint8_t>(100, 1));
  });
}

TEST(ExchangeFaults, WrongCallsAreRefusedAndHarmNothing) {
  run_local(2, [](World& world) {
    Exchange exchange(world, {}, on_cpu());
    const int self = world.rank();
    std::vector<uint8_t> data(100);
    const auto refused = [&](SendTo send, RecvFrom recv) {
      return message_of_error<UsageError>([&] { exchange.exchange({&send, 1}, {&recv, 1}); });
    };
    EXPECT_EQ(message_of_error<UsageError>([&] { exchange.send(data.data(), 5, 2); }),
              "a send of 5 bytes: there is no rank 2: there are 2");
    EXPECT_EQ(message_of_error<UsageError>([&] { exchange.recv(data.data(), 6, -1); }),
              "a receive of 6 bytes: there is no rank -1: there are 2");
    EXPECT_EQ(message_of_error<UsageError>([&] { exchange.recv(nullptr, 6, 1); }),
              "a receive of 6 bytes, peer 1: the pointer is null");
    EXPECT_EQ(message_of_error<UsageError>([&] { exchange.send(data.data(), ~uint64_t{0}, 1); }),
              "a send of 18446744073709551615 bytes: that is more than any memory holds");
    EXPECT_EQ(
        message_of_error<UsageError>([&] { exchange.send(data.data(), 5, self); }),
        fmt::format(
            "rank {} sends 1 messages to itself and receives 0: a call must receive the messages that a "
            "rank sends to itself in this call",
            self));
    EXPECT_EQ(
        refused({data.data(), 5, self}, {data.data() + 50, 6, self}),
        fmt::format("rank {} sends 5 bytes to itself and receives 6, as message 0: give both the same size",
                    self));
    // The memory of a receive overlaps that of a send, or of another receive in the same call.
    const auto at = [&](size_t byte) { return reinterpret_cast<uintptr_t>(data.data() + byte); };
    EXPECT_EQ(refused({data.data(), 50, 1 - self}, {data.data() + 49, 20, 1 - self}),
              fmt::format(
                  "the memory received from rank {}, [{:#x}, {:#x}), overlaps memory sent to rank {} in the "
                  "same call, [{:#x}, {:#x}): use separate memory",
                  1 - self, at(49), at(69), 1 - self, at(0), at(50)));
    const RecvFrom twice[] = {{data.data() + 60, 20, 1 - self}, {data.data(), 61, 1 - self}};
    EXPECT_EQ(
        message_of_error<UsageError>([&] { exchange.exchange({}, twice); }),
        fmt::format(
            "the memory received from rank {}, [{:#x}, {:#x}), overlaps memory received from rank {} in "
            "the same call, [{:#x}, {:#x}): use separate memory",
            1 - self, at(60), at(80), 1 - self, at(0), at(61)));
    // Messages may be adjacent, sent twice, empty, or sent to the rank itself and back.
    const SendTo sends[] = {{data.data(), 10, 1 - self},
                            {data.data() + 60, 0, 1 - self},
                            {data.data() + 5, 10, 1 - self},
                            {data.data() + 80, 20, self}};
    const RecvFrom recvs[] = {{data.data() + 15, 10, 1 - self},
                              {data.data() + 5, 0, 1 - self},
                              {data.data() + 25, 10, 1 - self},
                              {data.data() + 80, 20, self}};
    exchange.exchange(sends, recvs);
    EXPECT_EQ(make_call(world, exchange, 9, 3, 500), "");
  });
}

TEST(ExchangeFaults, OptionsThatCannotBe) {
  const auto made = [](const ExchangeOptions& options, const std::string& backend) {
    std::string said;
    run_local(2, [&](World& world) {
      Config config;
      config.backend = backend;
      const std::string mine =
          message_of_error<UsageError>([&] { Exchange exchange(world, options, config); });
      if (world.rank() == 0) said = mine;
    });
    return said;
  };
  EXPECT_EQ(made({.slot_bytes = 15}, "cpu"),
            "an exchange: slot_bytes is 15: it must be from 16 to 2 GiB, or 0");
  EXPECT_EQ(made({.slots = 257}, "cpu"), "an exchange: slots is 257: it must be from 1 to 256, or 0");
  EXPECT_EQ(made({.blocks_per_peer = 1025}, "cpu"),
            "an exchange: blocks_per_peer is 1025: with 2 ranks it must be from 1 to 1024, or 0");
  EXPECT_EQ(made({}, "tpu"), "an exchange: backend 'tpu': it must be 'cpu' or 'cuda'");
}

TEST(ExchangeFaults, OptionsThatDiffer) {
  run_local(2, [](World& world) {
    EXPECT_EQ(
        message_of_error<RunError>(
            [&] { Exchange exchange(world, {.slots = 2 + uint32_t(world.rank())}, on_cpu()); }),
        "the ranks make different exchanges: rank 0 2 slots of 0 bytes, 0 blocks per peer, backend cpu, rank "
        "1 3 slots of 0 bytes, 0 blocks per peer, backend cpu (0: the default); they must be the same");
  });
}

}  // namespace
}  // namespace chorale
