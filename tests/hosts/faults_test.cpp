/// \file
/// Checks that a failure between hosts ends every wait with a named error, and that the world can be used
/// afterwards.

#include <dirent.h>
#include <dlfcn.h>
#include <sys/socket.h>

#include <algorithm>
#include <csignal>
#include <set>
#include <thread>

#include "tests/hosts/harness.hpp"

namespace chorale::test {
namespace {

/// Gives the timeout of worlds in which a timeout passes. Everything before and after must be done within it
/// as well, also on a busy machine.
constexpr auto brief = std::chrono::seconds(5);

using HostsInTrouble = Hosts;
using Reason = RunError::Reason;

/// Returns what a call throws, as "reason: text"; "nothing" if it throws nothing.
template <class F>
std::string failure(const F& call) {
  try {
    call();
  } catch (const RunError& error) {
    return std::string(name(error.reason)) + ": " + error.what();
  } catch (const UsageError& error) {
    return std::string("usage: ") + error.what();
  }
  return "nothing";
}

/// Returns "" if `text` has each of `parts`.
std::string lacking(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    if (text.find(part) == std::string::npos) return "'" + part + "' is not in: " + text;
  }
  return "";
}

/// Waits for the stop on a rank that has no launch. If the stop never comes, later checks fail.
void await_stop(World& world) {
  for (int look = 0; look < 2000 && failure([&] { world.check(); }) == "nothing"; ++look)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

std::string once(World& world, Executor& executor, const Plan& plan, uint64_t elements = 5001) {
  return run_rank(world, executor, plan, {.bytes = some_sizes(plan, {elements})[0], .launches = 1});
}

/// Returns the connections of this process.
std::set<int> connections() {
  std::set<int> found;
  DIR* const folder = opendir("/proc/self/fd");
  while (const dirent* const entry = readdir(folder)) {
    const int fd = std::atoi(entry->d_name);
    sockaddr_storage other;
    socklen_t size = sizeof other;
    if (fd > 2 && getpeername(fd, reinterpret_cast<sockaddr*>(&other), &size) == 0) found.insert(fd);
  }
  closedir(folder);
  return found;
}

/// Cuts this process off as a network failure does: its connections except `kept` end, and the process lives
/// on.
void cut_connections(const std::set<int>& kept) {
  for (const int fd : connections()) {
    if (!kept.contains(fd)) shutdown(fd, SHUT_RDWR);
  }
}

TEST_P(HostsInTrouble, a_rank_dies) {
  const HostsOfRanks hosts = {0, 0, 1, 1};
  const Plan plan = make_plan("allreduce_two_level", 4);
  const std::vector<int> codes = on_hosts(hosts, [&](World& world) {
    Executor executor(world);
    for (int launch = 0; launch < 3; ++launch) {
      if (const std::string wrong = once(world, executor, plan); !wrong.empty()) return verdict(wrong);
    }
    // The others may learn of the death before they learn that all ranks have come.
    const std::string said = failure([&] {
      world.barrier();
      if (world.rank() == 3) raise(SIGKILL);
      once(world, executor, plan);
    });
    return verdict(lacking(said, {"peer_lost: rank 3", "died"}));
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0, 0, -SIGKILL}));
}

TEST_P(HostsInTrouble, a_connection_breaks) {
  if (std::string(GetParam()) != "tcp") GTEST_SKIP() << "only TCP's connections are known here";
  const HostsOfRanks hosts = {0, 1};
  const Plan plan = make_plan("hosts_put_signal_flush", 2);
  const std::vector<int> codes = on_hosts(hosts, [&](World& world) {
    const std::set<int> of_world = connections();
    Executor executor(world);
    if (const std::string wrong = once(world, executor, plan); !wrong.empty()) return verdict(wrong);
    const std::string said = failure([&] {
      world.barrier();
      if (world.rank() == 1) cut_connections(of_world);
      for (int launch = 0; launch < 1000; ++launch) once(world, executor, plan);
    });
    return verdict(lacking(said, {"peer_lost: rank ", ", on host ", "can no longer be reached", "UCX"}));
  });
  EXPECT_EQ(codes, all_well(hosts));
}

TEST_P(HostsInTrouble, an_abort_and_a_reset) {
  const HostsOfRanks hosts = {0, 0, 1, 1};
  const Plan plan = make_plan("allreduce_two_level", 4), packets = make_plan("hosts_put_packets", 4);
  const std::vector<int> codes = on_hosts(hosts, [&](World& world) {
    Executor executor(world);
    for (int round = 0; round < 6; ++round) {
      for (const Plan* const of : {&plan, &packets}) {
        if (const std::string wrong = once(world, executor, *of); !wrong.empty())
          return verdict("round " + std::to_string(round) + ": " + wrong);
      }
      world.barrier();
      // Each rank pauses in turn while the others have sent data that it does not receive.
      if (world.rank() == round % 4) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20 * (round % 2)));
        world.abort("enough");
      } else {
        const std::string said = failure([&] { once(world, executor, round % 2 ? plan : packets, 300001); });
        if (const std::string wrong = lacking(said, {"aborted", "enough"}); !wrong.empty())
          return verdict(wrong);
      }
      world.reset();
    }
    return 0;
  });
  EXPECT_EQ(codes, all_well(hosts));
}

TEST_P(HostsInTrouble, a_rank_never_launches) {
  const HostsOfRanks hosts = {0, 1};
  const Plan plan = make_plan("hosts_put_signal_flush", 2);
  const std::vector<int> codes = on_hosts(
      hosts,
      [&](World& world) {
        Executor executor(world);
        for (int round = 0; round < 2; ++round) {
          if (const std::string wrong = once(world, executor, plan); !wrong.empty()) return verdict(wrong);
          if (world.rank() == 0) {
            const std::string said = failure([&] { once(world, executor, plan); });
            if (const std::string wrong = lacking(said, {"timed_out", "port channel 0 from rank 1"});
                !wrong.empty())
              return verdict(wrong);
          } else {
            await_stop(world);
          }
          world.reset();
        }
        return verdict(once(world, executor, plan));
      },
      brief);
  EXPECT_EQ(codes, all_well(hosts));
}

/// A put into an output waits at the receiver until the receiver has launched.
TEST_P(HostsInTrouble, nobody_takes_what_was_sent) {
  const HostsOfRanks hosts = {0, 1};
  const Plan plan = unproved("hosts_put_unasked", 2), other = make_plan("hosts_put_packets", 2);
  const std::vector<int> codes = on_hosts(
      hosts,
      [&](World& world) {
        Executor executor(world);
        Ints data(5000, 3), out(5000);
        const Arguments arguments{.in = data.data(), .out = out.data(), .bytes = 20000, .dtype = DType::i32};
        executor.prepare(plan, arguments);
        if (world.rank() == 0) {
          const std::string said = failure([&] { executor.execute(plan, arguments); });
          const std::string wrong =
              lacking(said, {"timed_out", "rank 1 has launched 0 calls, and rank 0 1", "rank 0 block 0 op 0",
                             "put on port channel 0 to rank 1: expected 1, seen 0"});
          if (!wrong.empty()) return verdict(wrong);
        }
        await_stop(world);
        world.reset();
        return verdict(once(world, executor, other));
      },
      brief);
  EXPECT_EQ(codes, all_well(hosts));
}

TEST_P(HostsInTrouble, data_comes_when_the_launch_is_over) {
  const HostsOfRanks hosts = {0, 1};
  const Plan plan = unproved("hosts_put_unasked", 2);
  const std::vector<int> codes = on_hosts(hosts, [&](World& world) {
    Executor executor(world);
    Ints data(5000, 3), out(5000);
    const Arguments arguments{.in = data.data(), .out = out.data(), .bytes = 20000, .dtype = DType::i32};
    executor.prepare(plan, arguments);
    const std::string said = failure([&] {
      if (world.rank() == 1) executor.execute(plan, arguments);
      world.barrier();
      if (world.rank() == 0) executor.execute(plan, arguments);
      world.barrier();
      // The rank may learn that the transfer is done before it learns of the stop.
      await_stop(world);
      world.check();
    });
    return verdict(
        lacking(said, {"aborted by rank 1: rank 0 has put into the output of rank 1 after the launch "
                       "there had ended: the plan does not make it wait; chorale check shows where"}));
  });
  EXPECT_EQ(codes, all_well(hosts));
}

TEST_P(HostsInTrouble, there_is_no_such_transport) {
  if (std::string(GetParam()) != "tcp") GTEST_SKIP() << "once is enough";
  setenv("UCX_TLS", "nonsense", 1);
  const HostsOfRanks hosts = {0, 1};
  const Plan plan = make_plan("hosts_put_signal_flush", 2);
  const std::vector<int> codes = on_hosts(hosts, [&](World& world) {
    Executor executor(world);
    const std::string said = failure([&] { once(world, executor, plan); });
    world.barrier();
    return verdict(
        lacking(said, {"other: ", "UCX cannot connect this host with others: a context: ", "see UCX_TLS"}));
  });
  EXPECT_EQ(codes, all_well(hosts));
}

/// The remaining ranks do not report a rank as dead that leaves properly.
TEST_P(HostsInTrouble, an_executor_goes_while_others_stay) {
  const HostsOfRanks hosts = {0, 1, 2};
  const Plan plan = make_plan("hosts_put_signal_flush", 3);
  const std::vector<int> codes = on_hosts(hosts, [&](World& world) {
    for (int round = 0; round < 5; ++round) {
      Executor executor(world);
      if (const std::string wrong = once(world, executor, plan); !wrong.empty()) return verdict(wrong);
      if (world.rank() == round % 3) std::this_thread::sleep_for(std::chrono::milliseconds(100));
      world.check();
    }
    // If no rank answered the goodbye, it would wait its full second each time.
    std::chrono::nanoseconds least = brief;
    for (int round = 0; round < 5; ++round) {
      const auto begin = std::chrono::steady_clock::now();
      {
        Executor executor(world);
        if (const std::string wrong = once(world, executor, plan); !wrong.empty()) return verdict(wrong);
      }
      world.barrier();
      least = std::min<std::chrono::nanoseconds>(least, std::chrono::steady_clock::now() - begin);
    }
    return verdict(least < std::chrono::milliseconds(900) ? "" : "a slow goodbye");
  });
  EXPECT_EQ(codes, all_well(hosts));
}

/// The same holds if it leaves before anything was sent to it.
TEST_P(HostsInTrouble, a_rank_leaves_before_it_is_sent_to) {
  const HostsOfRanks hosts = {0, 1, 1};
  const Plan plan = unproved("hosts_give", 3);
  const std::vector<int> codes = on_hosts(
      hosts,
      [&](World& world) {
        Executor executor(world);
        Ints data(5000, 3), out(5000);
        const Arguments arguments{.in = data.data(), .out = out.data(), .bytes = 20000, .dtype = DType::i32};
        executor.prepare(plan, arguments);
        if (world.rank() == 2) return 0;
        const std::string gone = failure([&] { world.barrier(); });
        if (const std::string wrong = lacking(gone, {"rank 2 left the world"}); !wrong.empty())
          return verdict(wrong);
        const std::string said = failure([&] { executor.execute(plan, arguments); });
        if (world.rank() == 1) return 0;  // it has received its data, or the stop
        return verdict(
            lacking(said, {"timed_out: ", "rank 2 has launched 0 calls, and rank 0 1", "left the world"}));
      },
      brief);
  EXPECT_EQ(codes, all_well(hosts));
}

/// A fork has none of the threads that its executor would wait for, and none of the peers.
TEST_P(HostsInTrouble, a_fork_assigns_to_an_executor) {
  const HostsOfRanks hosts = {0, 1};
  const Plan plan = make_plan("hosts_put_signal_flush", 2);
  const std::vector<int> codes = on_hosts(hosts, [&](World& world) {
    Executor executor(world), other(world);
    if (const std::string wrong = once(world, executor, plan); !wrong.empty()) return verdict(wrong);
    if (const pid_t child = fork(); child == 0) {
      alarm(60);  // in case it hangs
      executor = std::move(other);
      _exit(0);
    } else {
      int status = 0;
      waitpid(child, &status, 0);
      if (status != 0) return verdict("the fork ended with status " + std::to_string(status));
    }
    return verdict(once(world, executor, plan));
  });
  EXPECT_EQ(codes, all_well(hosts));
}

TEST_P(HostsInTrouble, the_application_keeps_its_signals) {
  const HostsOfRanks hosts = {0, 1};
  const Plan plan = make_plan("hosts_put_signal_flush", 2);
  const std::vector<int> codes = on_hosts(hosts, [&](World& world) {
    static const auto mine = [](int) { _exit(42); };
    std::signal(SIGSEGV, mine);
    struct sigaction bus_before, bus, segv;
    sigaction(SIGBUS, nullptr, &bus_before);
    Executor executor(world);
    if (const std::string wrong = once(world, executor, plan); !wrong.empty()) return verdict(wrong);
    sigaction(SIGBUS, nullptr, &bus);
    sigaction(SIGSEGV, nullptr, &segv);
    if (bus.sa_handler != bus_before.sa_handler) return verdict("SIGBUS is handled");
    return verdict(segv.sa_handler == +mine ? "" : "SIGSEGV is handled by another");
  });
  EXPECT_EQ(codes, all_well(hosts));
}

/// UCX may put jumps to its own code at the beginning of these functions.
TEST_P(HostsInTrouble, the_application_keeps_its_memory_functions) {
  const HostsOfRanks hosts = {0, 1};
  const Plan plan = make_plan("hosts_put_signal_flush", 2);
  const std::vector<int> codes = on_hosts(hosts, [&](World& world) {
    const auto beginnings = [] {
      std::string all;
      for (const char* const name : {"mmap", "munmap", "mremap", "madvise", "sbrk", "brk"})
        all.append(static_cast<const char*>(dlsym(RTLD_DEFAULT, name)), 16);
      return all;
    };
    const std::string before = beginnings();
    Executor executor(world);
    if (const std::string wrong = once(world, executor, plan, 300001); !wrong.empty()) return verdict(wrong);
    return verdict(beginnings() == before ? "" : "a memory function was replaced");
  });
  EXPECT_EQ(codes, all_well(hosts));
}

/// All ranks refuse operations that cannot run between hosts, at the author's line.
TEST(HostsRefused, what_does_not_go_by_port_channels) {
  struct Wrong {
    const char* program;
    int ranks;
    HostsOfRanks hosts;
    std::vector<std::string> parts;
  };
  const std::vector<Wrong> all = {
      {"allgather_direct",
       2,
       {0, 1},
       {"usage: plan 'allgather_direct': rank ", "allgather_direct.cpp:", "memory channel 0 leads to rank ",
        "which is on host ", "connect ranks of different hosts by port channels"}},
      {"allgather_packets",
       2,
       {0, 1},
       {"usage: ", "allgather_packets.cpp:", "is the scratch of rank ", "which is on host "}},
      {"allreduce_two_level", 4, {0, 1, 0, 1}, {"usage: ", "rank ", ", but rank ", " is on host "}},
      {"hosts_by_switch",
       2,
       {0, 1},
       {"usage: ", "programs.cpp:", "'src' is switch channel 0, a member of which is the input of rank "}},
  };
  for (const Wrong& wrong : all) {
    const Plan plan = make_plan(wrong.program, wrong.ranks);
    const std::vector<int> codes = on_hosts(wrong.hosts, [&](World& world) {
      Executor executor(world);
      Ints in(65536), out(65536);
      const std::string said = failure([&] {
        executor.execute(plan, {.in = in.data(), .out = out.data(), .bytes = 1024, .dtype = DType::i32});
      });
      // The world is as before.
      world.barrier();
      return verdict(lacking(said, wrong.parts));
    });
    EXPECT_EQ(codes, all_well(wrong.hosts)) << wrong.program;
  }
}

#ifndef CHORALE_WITH_UCX
TEST(HostsRefused, port_channels_without_ucx) {
  const HostsOfRanks hosts = {0, 1};
  const Plan plan = make_plan("hosts_put_signal_flush", 2);
  const std::vector<int> codes = on_hosts(hosts, [&](World& world) {
    Executor executor(world);
    const std::string said = failure([&] { once(world, executor, plan); });
    return verdict(lacking(said, {"usage: ",
                                  "port channels connect ranks of different hosts, but this library was "
                                  "built without UCX: install libucx-dev and build again"}));
  });
  EXPECT_EQ(codes, all_well(hosts));
}
#endif

/// Ranks that are not connected need not reach each other.
TEST(HostsRefused, nothing_that_stays_within_hosts) {
  const HostsOfRanks hosts = {0, 0, 1, 1};
  const Plan plan = make_plan("hosts_within", 4);
  const std::vector<int> codes = on_hosts(hosts, [&](World& world) {
    Executor executor(world);
    Ints in(100, world.rank()), out(100);
    executor.execute(plan, {.in = in.data(), .out = out.data(), .bytes = 400, .dtype = DType::i32});
    return verdict(out == Ints(100, world.rank() ^ 1) ? "" : "not the neighbour's data");
  });
  EXPECT_EQ(codes, all_well(hosts));
}

INSTANTIATE_TEST_SUITE_P(Transports, HostsInTrouble, both_transports, transport_name);

}  // namespace
}  // namespace chorale::test
