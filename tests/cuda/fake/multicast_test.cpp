// Tests switch channels by multicast, without the kernel. The tests check what is made, shared, bound, mapped
// and freed, in processes and threads, and what is refused. The driver is a fake (multicast.cpp), and there
// is no switch.

#include "executor/cuda/multicast/multicast.hpp"

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "chorale/executor.hpp"
#include "kernels.hpp"
#include "state.hpp"
#include "tests/cuda/ranks.hpp"
#include "tests/unit/compiler/helpers.hpp"

namespace chorale::test {
namespace {

using namespace cuda;

class Multicast : public OnRanks {
 protected:
  void SetUp() override { unsetenv("NCCL_NVLS_ENABLE"); }

  static void expect_good(const RankBody& body, int ranks = 4) { OnRanks::expect_good(body, ranks); }
};

CHORALE_FOR_ALL_RANKS(Cuda, Multicast);

/// Checks that nothing is left after all ranks, which may be threads of this process, have freed their parts.
std::string all_given_back(World& world) {
  world.barrier();
  const fake::State& all = fake::state();
  const std::string left = std::to_string(all.handles.size()) + " handles, " +
                           std::to_string(all.ranges.size()) + " mappings, " +
                           std::to_string(all.reservations.size()) + " reservations";
  world.barrier();
  return left == "0 handles, 0 mappings, 0 reservations" ? "good" : left + " are left";
}

const SwitchGroups overlapping = {{0, 1, 2, 3}, {0, 2}, {1, 3}, {2, 3}};

TEST_P(Multicast, EachGroupHasAnAddressAtItsMembers) {
  expect_good([](World& world) -> std::string {
    {
      Imports imports(world);
      MulticastMemory memory(world, imports, 5 << 20, overlapping);
      if (memory.bytes() != 2 * fake::multicast_unit) return "not whole units";
      for (size_t group = 0; group < overlapping.size(); ++group) {
        bool member = false;
        for (const uint32_t rank : overlapping[group]) member |= rank == uint32_t(world.rank());
        char* const at = memory.of_group(group);
        if (member != (at != nullptr))
          return "group " + std::to_string(group) + " at a rank that is no member";
        if (reinterpret_cast<uint64_t>(at) % fake::multicast_unit != 0) return "an odd address";
      }
      char* const mine = memory.at(world.rank());
      for (uint64_t at = 0; at < memory.bytes(); ++at)
        if (mine[at] != 0) return "not zero";
      world.barrier();
      mine[memory.bytes() - 1] = char(world.rank() + 1);
      world.barrier();
      for (int rank = 0; rank < world.ranks(); ++rank)
        if (memory.at(rank)[memory.bytes() - 1] != char(rank + 1)) return "a peer's memory is not seen";
      world.barrier();
    }
    return all_given_back(world);
  });
}

/// CUDA would wait without end for a device that was not added.
TEST_P(Multicast, ARankThatFailsIsHeardOfByAll) {
  expect_good([](World& world) -> std::string {
    {
      Imports imports(world);
      fake::state().adding_fails = world.rank() == 2 || GetParam() == Ranks::threads;
      world.barrier();
      try {
        const MulticastMemory memory(world, imports, 1000, overlapping);
        return "made";
      } catch (const RunError& error) {
        const std::string text = error.what();
        const char* const first = GetParam() == Ranks::threads ? "rank 0: " : "rank 2: ";
        if (text.find(first) == text.npos || text.find("cuMulticastAddDevice of device") == text.npos)
          return text;
      }
      world.barrier();
      fake::state().adding_fails = false;
      world.barrier();
      const MulticastMemory again(world, imports, 1000, overlapping);
    }
    return all_given_back(world);
  });
}

TEST_P(Multicast, TooMuchIsAnErrorOnAllRanks) {
  expect_good([](World& world) -> std::string {
    {
      Imports imports(world);
      try {
        const MulticastMemory memory(world, imports, 1ull << 46, {{0, 1}});
        return "made";
      } catch (const RunError& error) {
        if (error.reason != RunError::Reason::resources) return error.what();
      }
    }
    return all_given_back(world);
  });
}

TEST_P(Multicast, DevicesThatCannotAreNamed) {
  expect_good([](World& world) -> std::string {
    const Imports imports(world);
    const int device = world.rank();
    if (const std::string why = refuse_multicast_devices(imports.devices(), overlapping, device);
        !why.empty())
      return why;
    world.barrier();
    fake::state().no_multicast = true;
    world.barrier();
    const std::string why = refuse_multicast_devices(imports.devices(), overlapping, device);
    world.barrier();
    fake::state().no_multicast = false;
    const std::string expected = "device " + std::to_string(device) +
                                 " offers no multicast, which switch_channels = multicast needs: take "
                                 "switch_channels = peer";
    return why == expected ? "good" : why;
  });
}

TEST_P(Multicast, RanksThatShareADeviceAreNamed) {
  expect_good(
      [](World& world) -> std::string {
        const Imports imports(world);
        const std::string why =
            refuse_multicast_devices(imports.devices(), {{0, 1}, {1, 2, 4}, {0, 1, 4}}, 0);
        return why == "ranks 0 and 4 of a switch channel share Fake GPU 0000:00:00.0 (device 0), but a GPU "
                      "can "
                      "join multicast only once: give each rank its own GPU, or take switch_channels = peer"
                   ? "good"
                   : why;
      },
      5);
}

// -- By an executor

Config asking(const char* switches) {
  Config config;
  config.backend = "cuda";
  config.switch_channels = switches;
  return config;
}

/// Returns a plan in which two ranks add up all their inputs in place.
Plan sum(ReduceOp op = ReduceOp::sum) {
  Plan plan = two_ranks();
  plan.name = "sum";
  plan.collective = "allreduce";
  plan.inplace = true;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    add(block(plan, rank), Opcode::switch_reduce_broadcast, {at(0, 4 * rank, 4)}, {at(0, 4 * rank, 4)}, {},
        ChannelType::switched)
        .reduce_op = op;
  }
  return plan;
}

std::string failure(Executor& executor, const Plan& plan, const Arguments& arguments) {
  try {
    executor.prepare(plan, arguments);
    return "prepared";
  } catch (const UsageError& error) {
    return error.what();
  } catch (const RunError& error) {
    return std::string("RunError: ") + error.what();
  }
}

std::string unless(const std::string& said, const std::string& expected) {
  return said == expected ? "" : "\"" + said + "\", not \"" + expected + "\"";
}

TEST_P(Multicast, AnExecutorMakesItWhereTheSettingAsksForIt) {
  expect_good(
      [](World& world) -> std::string {
        const Plan plan = sum();
        for (const char* const way : {"peer", "multicast", "peer"}) {
          const int before = fake::state().multicast_objects;
          world.barrier();
          {
            Executor executor(world, asking(way));
            void* const data = executor.allocate(4096);
            std::memset(data, 7 + world.rank(), 4096);
            const Arguments arguments{.in = data, .out = data, .bytes = 4096};
            executor.execute(plan, arguments);
            executor.synchronize();
            const std::string launched = fake::last_kernel();
            world.barrier();
            const bool multicast = std::string(way) == "multicast";
            const int made = fake::state().multicast_objects - before;
            const bool maker = world.rank() == 0 || GetParam() == Ranks::threads;
            if (made != (multicast && maker))
              return std::string(way) + ": objects made: " + std::to_string(made);
            if (launched != (multicast ? "multicast interpreter" : "interpreter"))
              return std::string(way) + ": " + launched;
            // With multicast the kernel gets a copy of the message, in memory that the switch reaches. The
            // result is copied back.
            const bool staged = fake::last_launch().out != data;
            if (staged != multicast) return std::string(way) + ": the output is where it should not be";
            if (std::memcmp(fake::last_launch().out, data, 4096) != 0) return "the message was not copied";
            for (int byte = 0; byte < 4096; ++byte)
              if (static_cast<char*>(data)[byte] != 7 + world.rank()) return "the message did not come back";
            world.barrier();
          }
          const std::string left = all_given_back(world);
          if (left != "good") return std::string(way) + ": " + left;
        }
        return "good";
      },
      2);
}

TEST_P(Multicast, AnExecutorRefusesWhatASwitchCannotDo) {
  expect_good(
      [](World& world) -> std::string {
        Executor executor(world, asking("multicast"));
        void* const data = executor.allocate(4096);
        Arguments arguments{.in = data, .out = data, .bytes = 4096};
        std::string wrong = unless(
            failure(executor, sum(ReduceOp::max), arguments),
            "plan 'sum' combines f32 by max on a switch channel, which multicast does not "
            "offer (it has f32: sum; f16: sum min max; bf16: sum min max; f64: sum; i32: sum "
            "min max; u32: sum min max; i64: sum min max; u64: sum min max): take switch_channels = peer");
        if (!wrong.empty()) return wrong;
        arguments.packet = PacketForm::ll8;
        wrong = unless(failure(executor, sum(), arguments),
                       "plan 'sum': with switch_channels = multicast there is no kernel for f32 and packets "
                       "of form ll8: set packet = ll16, or switch_channels = peer");
        if (!wrong.empty()) return wrong;
        arguments.packet = {};
        world.barrier();
        fake::state().no_multicast = true;
        world.barrier();
        const std::string said = failure(executor, sum(), arguments);
        world.barrier();
        fake::state().no_multicast = false;
        if (said.find("offers no multicast, which switch_channels = multicast needs") == said.npos)
          return said;
        return unless(failure(executor, sum(), arguments), "prepared") + "good";
      },
      2);
}

TEST_P(Multicast, RanksThatAskForDifferentThingsAreNamed) {
  expect_good(
      [](World& world) -> std::string {
        Executor executor(world, asking(world.rank() == 0 ? "peer" : "multicast"));
        void* const data = executor.allocate(4096);
        const std::string wrong =
            unless(failure(executor, sum(), {.in = data, .out = data, .bytes = 4096}),
                   "RunError: ranks 0 and 1 disagree on switch_channels: peer and multicast");
        return wrong.empty() ? "good" : wrong;
      },
      2);
}

TEST_P(Multicast, NothingIsMadeWhereItIsTurnedOff) {
  setenv("NCCL_NVLS_ENABLE", "0", 1);  // before the ranks' threads
  expect_good(
      [](World& world) -> std::string {
        try {
          const Executor executor(world, asking("multicast"));
          return "made";
        } catch (const UsageError& error) {
          const std::string wrong = unless(
              error.what(),
              "switch_channels = multicast (code), but NCCL_NVLS_ENABLE=0 turns NVLink multicast off: take "
              "switch_channels = peer, or unset NCCL_NVLS_ENABLE if this machine may use multicast");
          if (!wrong.empty()) return wrong;
        }
        const Executor peer(world, asking("peer"));
        return fake::state().multicast_objects == 0 ? "good" : "objects were made";
      },
      2);
  unsetenv("NCCL_NVLS_ENABLE");
}

}  // namespace
}  // namespace chorale::test
