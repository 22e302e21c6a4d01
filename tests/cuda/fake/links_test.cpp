// Tests links and windows in the memory of GPUs. This fake CUDA has its memory on the host, so kernels
// can run there. Without a GPU, the tests show what the transports set up, and what the proxy does with the
// copy engine. cuda_tiles runs the same on GPUs.

#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "chorale/device.hpp"
#include "chorale/one_sided_window.hpp"
#include "state.hpp"
#include "streams.hpp"
#include "tests/cuda/ranks.hpp"
#include "tests/unit/tiles/support.hpp"

namespace chorale::test {
namespace {

using Words = std::vector<uint32_t>;

RendezvousOptions on_device(uint32_t channels, uint32_t depth, uint64_t slot) {
  RendezvousOptions options = rings(channels, depth, slot);
  options.space = Space::device;
  return options;
}

/// Runs a kernel of `blocks` blocks of one thread. Returns "good", or why one of the blocks ended early.
template <class Kernel>
std::string run(const Transport& transport, const Kernel& kernel, uint32_t blocks,
                std::chrono::nanoseconds limit = std::chrono::minutes(5)) {
  ++fake::state().kernels;
  std::vector<std::string> ends(blocks, "good");
  std::vector<std::thread> threads;
  for (uint32_t block = 0; block < blocks; ++block) {
    threads.emplace_back([&, block] {
      const Deadline deadline{transport.device_abort_word(), uint64_t(limit.count()), 0};
      try {
        const Stop stop = kernel(block_group(block, blocks), deadline);
        if (stop != Stop::none) ends[block] = "stopped for reason " + std::to_string(uint32_t(stop));
      } catch (const std::exception& refused) {
        ends[block] = refused.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  --fake::state().kernels;
  for (const std::string& end : ends) {
    if (end != "good") return end;
  }
  return "good";
}

/// Exchanges `n` words between all ranks, with a separate message from every rank to every rank.
std::string exchange(const Transport& transport, uint64_t n, uint32_t blocks, uint64_t message,
                     std::chrono::nanoseconds limit = std::chrono::minutes(5)) {
  const uint64_t ranks = uint64_t(transport.world_size()), self = uint64_t(transport.rank());
  const Words in = message_of<uint32_t>(message * 100 + self, n * ranks);
  Words out(n * ranks), expected;
  Leg leg;
  leg.in = in.data();
  leg.out = out.data();
  leg.bytes = n * 4;
  leg.elem = 4;
  const std::string ended = run(
      transport,
      [&](const Group& group, const Deadline& deadline) {
        return all_to_all<uint32_t>(group, transport.table(), leg, {n * 4, n * 4}, CopyProduce{},
                                    CopyConsume{}, deadline);
      },
      blocks, limit);
  if (ended != "good") return ended;
  for (uint64_t from = 0; from < ranks; ++from) {
    const Words sent = message_of<uint32_t>(message * 100 + from, n * ranks);
    expected.insert(expected.end(), sent.begin() + long(self * n), sent.begin() + long(self * n + n));
  }
  const uint64_t wrong = first_difference(out.data(), expected.data(), expected.size());
  return wrong == expected.size() ? "good" : "word " + std::to_string(wrong) + " is wrong";
}

using MakeLinks = std::function<std::shared_ptr<Transport>(World&, const RendezvousOptions&)>;

std::shared_ptr<Transport> by_copy_engine(World& world, const RendezvousOptions& options) {
  return port_rendezvous(world, options, ProxyKind::copy_engine);
}

/// Exchanges several messages in a row, of every size, over rings of every depth.
void expect_exchanges(const MakeLinks& make, LinkKind to_far, int ranks = 4) {
  const RankBody body = [&](World& world) -> std::string {
    uint32_t depth = 0;
    for (const uint64_t n : {0, 1, 3, 1000, 4096, 7001}) {
      for (const uint32_t blocks : {1u, 3u}) {
        const auto transport = make(world, on_device(blocks, 2 + depth++ % 4, 1024));
        if (transport->link_kind((world.rank() + world.ranks() / 2) % world.ranks()) != to_far)
          return "other links";
        for (uint64_t message = 0; message < 3; ++message) {
          const std::string said = exchange(*transport, n, blocks, message);
          if (said != "good")
            return std::to_string(n) + " words, " + std::to_string(blocks) + " blocks: " + said;
        }
        world.barrier();  // no ring is destroyed while a credit for it is in transit
      }
    }
    return "good";
  };
  const std::vector<std::string> good(size_t(ranks), "good");
  EXPECT_EQ(on_processes(ranks, body), good);
  EXPECT_EQ(on_threads(ranks, body), good);
}

TEST(LinksInDeviceMemory, Direct) { expect_exchanges(direct_rendezvous, LinkKind::direct); }

TEST(LinksInDeviceMemory, OverTheCopyEngine) { expect_exchanges(by_copy_engine, LinkKind::port); }

TEST(LinksInDeviceMemory, BothInOneKernel) {
  const MakeLinks both = [](World& world, const RendezvousOptions& options) -> std::shared_ptr<Transport> {
    return mesh(direct_rendezvous(world, options), by_copy_engine(world, options), world.ranks() / 2);
  };
  expect_exchanges(both, LinkKind::port);
}

/// Kernels wait for the proxy's words, so these words must not be queued behind a kernel.
TEST(LinksInDeviceMemory, AProxyTellsWhileKernelsFillTheQueues) {
  const RankBody body = [](World& world) -> std::string {
    fake::state().one_queue = true;
    const auto transport = by_copy_engine(world, on_device(2, 2, 1024));
    for (uint64_t message = 0; message < 3; ++message) {
      const std::string said = exchange(*transport, 7001, 2, message, std::chrono::seconds(30));
      if (said != "good") return said;
    }
    world.barrier();
    return "good";
  };
  EXPECT_EQ(on_processes(2, body), std::vector<std::string>(2, "good"));
}

/// The last slot of a message is short.
TEST(LinksInDeviceMemory, OverTheCopyEngineInLongSlots) {
  const RankBody body = [](World& world) -> std::string {
    fake::state().copies_are_slow = true;
    const auto transport = by_copy_engine(world, on_device(2, 3, 256 << 10));
    for (uint64_t message = 0; message < 3; ++message) {
      const std::string said = exchange(*transport, (1 << 20) + 77, 2, message);
      if (said != "good") return said;
    }
    world.barrier();
    return "good";
  };
  EXPECT_EQ(on_processes(2, body), std::vector<std::string>(2, "good"));
}

TEST(LinksInDeviceMemory, AreNewAfterAReset) {
  for (const MakeLinks& make : {MakeLinks(direct_rendezvous), MakeLinks(by_copy_engine)}) {
    const auto said = on_processes(2, [&](World& world) {
      const auto transport = make(world, on_device(2, 2, 256));
      if (exchange(*transport, 500, 2, 0) != "good") return std::string("the first is wrong");
      // All ranks send more than the rings hold, and no rank receives.
      const Words in(5000, 7);
      Leg leg;
      leg.in = in.data();
      leg.bytes = in.size() * 4;
      leg.elem = 4;
      const std::string ended = run(
          *transport,
          [&](const Group& group, const Deadline& deadline) {
            const Endpoint& e = transport->table().at(1 - world.rank(), group.id);
            const Leg share = share_of(leg, group.id, group.count);
            return with_link(e, [&](auto link) {
              return send_tiles<uint32_t, decltype(link)>(group, e, share, CopyProduce{}, deadline);
            });
          },
          2, std::chrono::milliseconds(20));
      if (ended == "good") return std::string("it was sent though nobody took it");
      // Kernels that stopped while they waited for a free order left tickets that nothing uses.
      const PortQueue* const orders = transport->endpoint(1 - world.rank()).port;
      if (orders) add_relaxed(orders->head, uint64_t{3});
      transport->reset();
      for (uint64_t message = 1; message < 4; ++message) {
        const std::string again = exchange(*transport, 500, 2, message);
        if (again != "good") return "after the reset: " + again;
      }
      const Deadline deadline{nullptr, uint64_t(300e9), 0};
      const Endpoint& e = transport->table().at(1 - world.rank(), 0);
      if (orders && Port::drain(block_group(), e, deadline) != Stop::none) {
        return std::string("what has left is counted wrongly");
      }
      world.barrier();
      return std::string("good");
    });
    EXPECT_EQ(said, std::vector<std::string>(2, "good"));
  }
}

std::string drained(World& world, uint64_t slot, uint64_t n) {
  fake::state().copies_are_slow = true;
  const auto transport = by_copy_engine(world, on_device(1, 4, slot));
  const Endpoint& e = transport->table().at(1 - world.rank(), 0);
  Words data = message_of<uint32_t>(uint64_t(world.rank()), n);
  Leg leg;
  leg.in = data.data();
  leg.bytes = data.size() * 4;
  leg.elem = 4;
  const std::string sent = run(
      *transport,
      [&](const Group& group, const Deadline& deadline) {
        const Stop stop = send_tiles<uint32_t, Port>(group, e, leg, CopyProduce{}, deadline);
        return stop != Stop::none ? stop : Port::drain(group, e, deadline);
      },
      1);
  if (sent != "good") return sent;
  // The staged data have been read, so the memory may change.
  std::memset(e.send_dst, 0xee, e.window);
  world.barrier();
  Words got(data.size());
  leg.out = got.data();
  const std::string received = run(
      *transport,
      [&](const Group& group, const Deadline& deadline) {
        return recv_tiles<uint32_t, Port>(group, e, leg, CopyConsume{}, deadline);
      },
      1);
  world.barrier();
  if (received != "good") return received;
  return got == message_of<uint32_t>(uint64_t(1 - world.rank()), n) ? "good" : "wrong words";
}

TEST(LinksInDeviceMemory, ADrainEndsWhenTheCopiesHave) {
  const std::vector<std::string> good(2, "good");
  EXPECT_EQ(on_processes(2, [](World& world) { return drained(world, 1024, 900); }), good);
  EXPECT_EQ(on_processes(2, [](World& world) { return drained(world, 1 << 20, 900 << 10); }), good);
}

/// The receiver's transport may be destroyed before its proxy was notified of the credit's order.
TEST(LinksInDeviceMemory, TheLastCreditComesThoughTheReceiverIsGone) {
  const auto said = on_processes(2, [](World& world) -> std::string {
    for (int time = 0; time < 50; ++time) {
      const auto transport = by_copy_engine(world, on_device(1, 1, 1024));
      const Endpoint& e = transport->table().at(1 - world.rank(), 0);
      Words data(64, uint32_t(time));
      Leg leg;
      leg.in = leg.out = data.data();
      leg.bytes = data.size() * 4;
      leg.elem = 4;
      const std::string ended = run(
          *transport,
          [&](const Group& group, const Deadline& deadline) {
            if (world.rank() == 1) return recv_tiles<uint32_t, Port>(group, e, leg, CopyConsume{}, deadline);
            const Stop stop = send_tiles<uint32_t, Port>(group, e, leg, CopyProduce{}, deadline);
            return stop != Stop::none ? stop : Port::wait_free(group, e, leg.bytes, deadline);
          },
          1, std::chrono::seconds(20));
      if (ended != "good") return ended;
    }
    return "good";
  });
  EXPECT_EQ(said, std::vector<std::string>(2, "good"));
}

/// Ranks that were done when another one failed leave no stream either.
TEST(LinksInDeviceMemory, OfWhichOneRankHasNoMemoryLeaveNoStream) {
  const auto said = on_processes(2, [](World& world) -> std::string {
    const size_t before = fake::streams();
    fake::state().mallocs_fail = world.rank() == 1;
    try {
      by_copy_engine(world, on_device(1, 2, 256));
    } catch (const RunError& failed) {
      if (failed.reason != RunError::Reason::resources) return failed.what();
      return fake::streams() == before ? "good" : std::to_string(fake::streams() - before) + " streams";
    }
    return "they were made";
  });
  EXPECT_EQ(said, std::vector<std::string>(2, "good"));
}

TEST(WindowsInDeviceMemory, ArePutIntoAndSignalled) {
  const RankBody body = [](World& world) -> std::string {
    const uint64_t n = 777;
    const int ranks = world.ranks(), self = world.rank(), right = (self + 1) % ranks,
              left = (self + ranks - 1) % ranks;
    const auto transport = direct_rendezvous(world, on_device(1, 1, 16));  // for its abort word
    // Rank 0 has more memory, and all ranks know that.
    const auto room = [n](int rank) { return 64 + n * 4 + (rank == 0 ? 100 : 0); };
    const OneSidedWindow window = OneSidedWindow::create(world, room(self), 2, 1, Space::device);
    if (window.bytes(0) != room(0) || window.bytes(1) != room(1)) return "wrong sizes";
    for (uint64_t round = 1; round <= 5; ++round) {
      const Words in = message_of<uint32_t>(round * 100 + uint64_t(self), n);
      const std::string ended = run(
          *transport,
          [&](const Group& group, const Deadline& deadline) {
            const WindowView view = window.view();
            put_signal(group, view, right, 64, in.data(), n * 4, 1);
            const Stop stop = wait_signal_from(group, view, left, 1, Cmp::ge, round, deadline);
            return stop != Stop::none ? stop : barrier(group, view, 0, deadline);
          },
          1);
      if (ended != "good") return ended;
      const Words expected = message_of<uint32_t>(round * 100 + uint64_t(left), n);
      if (std::memcmp(window.local() + 64, expected.data(), n * 4) != 0) return "wrong words";
      world.barrier();  // the next round overwrites them
    }
    return "good";
  };
  EXPECT_EQ(on_processes(3, body), std::vector<std::string>(3, "good"));
  EXPECT_EQ(on_threads(3, body), std::vector<std::string>(3, "good"));
}

TEST(WindowsInDeviceMemory, ForgetReportsInAReset) {
  const RankBody body = [](World& world) -> std::string {
    const auto transport = direct_rendezvous(world, on_device(1, 1, 16));
    OneSidedWindow window = OneSidedWindow::create(world, 64, 1, 1, Space::device);
    const WindowView view = window.view();
    const int other = 1 - world.rank();
    const char word[] = "stays";
    const std::string ended = run(
        *transport,
        [&](const Group& group, const Deadline& deadline) {
          put(group, view, other, 0, word, sizeof word);
          arrive_all(group, view, 0);
          signal_all(group, view, 0);
          return wait_signal_from(group, view, other, 0, Cmp::ge, 1, deadline);
        },
        1);
    if (ended != "good") return ended;
    const auto reported = [&] {
      return load_relaxed(&view.signal_at(view.self, other, 0)->value) +
             load_relaxed(&view.barrier_at(view.self, 0)->arrived.value);
    };
    if (reported() != 2) return "nothing came";
    window.reset();
    if (reported() != 0) return "reports are left";
    return window.local() == nullptr ? "no memory" : reinterpret_cast<const char*>(window.local());
  };
  EXPECT_EQ(on_processes(2, body), std::vector<std::string>(2, "stays"));
}

TEST(WindowsInDeviceMemory, AreOfOneSpace) {
  const auto said = on_processes(2, [](World& world) {
    return message_of_error<RunError>(
        [&] { OneSidedWindow::create(world, 64, 2, 1, world.rank() == 1 ? Space::device : Space::host); });
  });
  for (const std::string& one : said) {
    EXPECT_EQ(
        one,
        "the ranks make different windows: 2 signals and 1 barriers at rank 0, 2 signals and 1 barriers in "
        "device memory at rank 1");
  }
}

/// The host is not notified whether a launch was stopped.
TEST(LinksInDeviceMemory, AreNotUsedAfterAResetOfTheWorldUntilTheyAreNew) {
  const auto said = on_processes(2, [](World& world) {
    for (const bool proxied : {false, true}) {
      const RendezvousOptions options = on_device(1, 2, 256);
      const std::shared_ptr<Transport> made =
          proxied ? by_copy_engine(world, options)
                  : std::shared_ptr<Transport>(direct_rendezvous(world, options));
      const auto use = [&] { const Transport::Use one(*made, nullptr); };
      world.reset();
      use();  // nothing had been launched
      world.reset();
      if (message_of_error<UsageError>(use).find("Transport::reset()") == std::string::npos) return "used";
      made->reset();
      use();
    }
    return "good";
  });
  EXPECT_EQ(said, std::vector<std::string>(2, "good"));
}

/// Each rank's tables are copies that no other rank has.
TEST(LinksInDeviceMemory, TablesThatOneRankCannotHaveAreAnErrorOfAll) {
  const auto said = on_processes(2, [](World& world) -> std::string {
    const std::shared_ptr<Transport> links = direct_rendezvous(world, on_device(1, 2, 256));
    fake::state().mallocs_fail = world.rank() == 1;
    for (const bool window : {false, true}) {
      const std::string failed = message_of_error<RunError>([&] {
        window ? void(OneSidedWindow::create(world, 64, 2, 1, Space::device)) : void(mesh(links, links, 1));
      });
      if (!failed.starts_with("rank 1: ")) return "it was made, or said " + failed;
    }
    return "good";
  });
  EXPECT_EQ(said, std::vector<std::string>(2, "good"));
}

TEST(LinksInDeviceMemory, ThatCannotBeAreRefused) {
  const auto said = on_processes(2, [](World& world) {
    const auto refused = [](const auto& call) {
      return !message_of_error<UsageError>([&] { call(); }).empty();
    };
    RendezvousOptions options = on_device(1, 2, 256);
    if (!refused([&] { port_rendezvous(world, options, ProxyKind::shared_memory); }))
      return "a proxy of the host";
    const std::shared_ptr<Transport> device = direct_rendezvous(world, options);
    const std::shared_ptr<Transport> host = direct_rendezvous(world, rings(1, 2, 256));
    if (!refused([&] { mesh(device, host, 1); })) return "a mesh of two spaces";
    options.packet_bytes = 64;
    if (!refused([&] { by_copy_engine(world, options); })) return "packets over a proxy";
    return "good";
  });
  EXPECT_EQ(said, std::vector<std::string>(2, "good"));
}

}  // namespace
}  // namespace chorale::test
