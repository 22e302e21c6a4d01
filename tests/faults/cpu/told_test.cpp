/// \file
/// Checks that whatever fails on one rank, at whatever step, the others receive the cause and do not wait for
/// a deadline.

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chorale/executor.hpp>
#include <chorale/make_plan.hpp>
#include <chrono>
#include <cstring>
#include <fstream>
#include <list>
#include <memory>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

#include "executor/fibers/sanitizers.hpp"
#include "executor/world/steps.hpp"
#include "tests/free_port.hpp"
#include "tests/has.hpp"
#include "tests/unit/world/processes.hpp"
#include "tools/shared.hpp"

namespace chorale::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using world::CollectiveStep;

constexpr int ranks = 3;
constexpr auto deadline = 60s;  // the timeout of every wait
constexpr auto soon = 20s;      // all of a step's cases run at once

enum class Fault { read_only, full, file_limit, no_files, killed };
constexpr Fault all_faults[] = {Fault::read_only, Fault::full, Fault::file_limit, Fault::no_files,
                                Fault::killed};

std::string name_of(Fault fault) {
  static const char* const names[] = {"a read-only /dev/shm", "a full /dev/shm", "RLIMIT_FSIZE",
                                      "no descriptors left", "kill -9"};
  return names[size_t(fault)];
}

// -- What fails

/// Mounts a /dev/shm that all calls of a rank's process see until the process ends.
void mount_shm(Fault fault) {
  const auto need = [](bool done, const char* what) {
    if (!done) throw std::runtime_error(std::string("cannot ") + what + ": " + std::strerror(errno));
  };
  need(unshare(CLONE_NEWNS) == 0, "have mounts of its own");
  need(mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "keep mounts to itself");
  if (fault == Fault::read_only) {
    need(mount("/dev/shm", "/dev/shm", nullptr, MS_BIND, nullptr) == 0, "mount /dev/shm");
    need(mount("none", "/dev/shm", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) == 0,
         "make it read-only");
  } else {
    need(mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=4096") == 0, "mount a small /dev/shm");
    std::ofstream("/dev/shm/full") << std::string(4096, 'x') << std::flush;
  }
}

void leave_no_files(int room = 0) {
  const int next = ::open("/dev/null", O_RDONLY);
  close(next);
  const rlimit none_more{rlim_t(next + room), rlim_t(next + room)};
  setrlimit(RLIMIT_NOFILE, &none_more);
}

void happen(Fault fault) {
  const rlimit small{512, 512};
  switch (fault) {
    case Fault::read_only:
    case Fault::full:
      return mount_shm(fault);
    case Fault::file_limit:
      setrlimit(RLIMIT_FSIZE, &small);
      return;
    case Fault::no_files:
      return leave_no_files();
    case Fault::killed:
      ::kill(getpid(), SIGKILL);
  }
}

/// Makes a fault happen to this process at a step of its next call.
struct Armed {
  CollectiveStep step;
  Fault fault;
};
std::optional<Armed> armed;

/// Counts the ranks of a case that have begun to join. Null: not counted.
std::atomic<int>* begun = nullptr;

void reach(CollectiveStep step) {
  if (step == CollectiveStep::memory && begun) ++*begun;
  if (!armed || armed->step != step) return;
  const Fault fault = std::exchange(armed, std::nullopt)->fault;
  // A rank that dies before any other has come would never have joined.
  while (fault == Fault::killed && begun && *begun < ranks) std::this_thread::sleep_for(1ms);
  happen(fault);
}

bool mounts_are_permitted() {
  Processes one(1, [](int) { return mount_shm(Fault::read_only), "yes"; });
  return one.said(0) == "yes";
}

// -- Where it fails

/// Returns the reason why a fault cannot occur at this step; "" if it can.
std::string why_not(CollectiveStep step, Fault fault, int rank) {
  if (fault == Fault::killed) return "";
  const bool memory = fault == Fault::full || fault == Fault::file_limit;
  switch (step) {
    case CollectiveStep::memory:
      return memory && rank != 0 ? "rank 0 alone makes memory" : "";
    case CollectiveStep::seat:
      return "a rank that waits makes nothing, and takes whom it cannot look at for alive";
    case CollectiveStep::group:
      return fault == Fault::no_files ? "" : "nothing is made in /dev/shm";
    case CollectiveStep::window:
      return "";
    case CollectiveStep::reset:
      return "a reset makes and opens nothing";
    case CollectiveStep::survivors:
      return fault == Fault::no_files || rank == 0 ? ""
                                                   : "the others open what rank 0 has made by its number";
    case CollectiveStep::split:
      return fault == Fault::no_files || rank == 0 ? "" : "the others open what rank 0 has made";
  }
  return "no such step";
}

std::string text_of(const std::vector<int>& left) {
  std::string text = "goes on with";
  for (const int rank : left) text += " " + std::to_string(rank);
  return text;
}

/// Makes the survivors' world. A rank that dies in survivors() may still be in that world, which then has
/// survivors of its own.
std::string goes_on(World world) {
  std::vector<int> left;
  for (int rank = 0; rank < world.ranks(); ++rank) left.push_back(rank);
  for (;;) {
    World next = world.survivors();
    std::vector<int> still;
    for (const int former : next.former_ranks()) still.push_back(left.at(size_t(former)));
    left = still;
    try {
      next.barrier();
      return text_of(left);
    } catch (const RunError&) {
      world = std::move(next);
    }
  }
}

/// Returns the error that a rank of a case receives, or with which it fails. The world of survivors has one
/// rank more at first.
std::string call(const std::string& address, int rank, CollectiveStep step,
                 const std::optional<Armed>& fault) {
  const auto join = [&](int of) { return World::join(address, rank, of, {.timeout = deadline}); };
  if (step < CollectiveStep::window) {
    armed = fault;
    World world = join(ranks);
    return "joined";
  }
  World world = join(step == CollectiveStep::survivors ? ranks + 1 : ranks);
  Config config = Config::load();
  config.backend = "cpu";
  if (step == CollectiveStep::window) {
    const Plan plan = make_plan("allreduce_all_pairs", ranks);
    Executor executor(world, config);
    armed = fault;
    std::vector<float> in(1000), out(in.size());
    executor.execute(plan, {.in = in.data(), .out = out.data(), .bytes = in.size() * sizeof(float)});
    return "has bound";
  }
  if (step == CollectiveStep::reset) {
    world.barrier();
    armed = fault;
    world.reset();
    return "was reset";
  }
  if (step == CollectiveStep::split) {
    world.barrier();
    armed = fault;
    world.split(0, 0);
    return "has split";
  }
  if (rank == ranks) return "left";
  try {
    for (;;) world.barrier();
  } catch (const RunError&) {
    armed = fault;
  }
  return goes_on(std::move(world));
}

/// Returns the parts of the message that ranks must receive when a rank fails.
std::vector<std::string> cause(CollectiveStep step, Fault fault, int rank, int pid) {
  switch (fault) {
    case Fault::read_only:
      return {"resources: ", "/dev/shm", "Read-only file system"};
    case Fault::full:
      return {"resources: ", "bytes of shared memory needed, 0 free in /dev/shm"};
    case Fault::file_limit:
      return {"resources: ", "RLIMIT_FSIZE lets this process write files of at most 512 bytes", "(ulimit -f"};
    case Fault::no_files:
      return {"resources: ", "Too many open files; allow more open files (ulimit -n)"};
    case Fault::killed:
      break;
  }
  if (step != CollectiveStep::survivors)
    return {"peer_lost: ", "rank " + std::to_string(rank) + " (pid " + std::to_string(pid) + ") died"};
  // survivors() continues without a rank that dies, which is its purpose.
  std::vector<int> left;
  for (int other = 0; other < ranks; ++other) {
    if (other != rank) left.push_back(other);
  }
  return {text_of(left)};
}

/// Runs one rank of three that fails, and its processes.
struct Trial {
  Trial(Fault what, int who) : fault(what), rank(who) {}

  Fault fault;
  int rank;
  std::string address = fresh_address();
  tools::Shared<std::atomic<int>> joining{1};
  std::unique_ptr<Processes> processes;

  std::string name() const { return name_of(fault) + " on rank " + std::to_string(rank); }

  void start(CollectiveStep step) {
    processes =
        std::make_unique<Processes>(step == CollectiveStep::survivors ? ranks + 1 : ranks, [&](int mine) {
          begun = &joining[0];
          return call(address, mine, step, mine == rank ? std::optional(Armed{step, fault}) : std::nullopt);
        });
  }

  void expect_told(CollectiveStep step) {
    const int pid = processes->pid(rank);
    for (int other = 0; other < ranks; ++other) {
      if (other == rank && fault == Fault::killed) continue;
      const std::string said = processes->said(other);
      for (const std::string& part : cause(step, fault, rank, pid))
        EXPECT_TRUE(has(said, part)) << name() << ": rank " << other << " hears '" << said << "'";
      if (other != rank && fault != Fault::killed) {
        EXPECT_TRUE(has(said, "rank " + std::to_string(rank) + ": ")) << name() << ": " << said;
      }
    }
  }
};

/// Returns the segments of System V shared memory that child processes have made.
std::vector<std::string> segments() {
  std::vector<std::string> left;
  std::ifstream file("/proc/sysvipc/shm");
  std::string line;
  std::getline(file, line);
  for (long key, id, mode, bytes, creator; std::getline(file, line);) {
    std::istringstream fields(line);
    fields >> key >> id >> std::oct >> mode >> std::dec >> bytes >> creator;
    if (::kill(pid_t(creator), 0) != 0 && errno == ESRCH) left.push_back(line);
  }
  return left;
}

class FailuresAreTold : public testing::TestWithParam<CollectiveStep> {
 protected:
  void SetUp() override { before_ = segments(); }
  void TearDown() override {
    EXPECT_EQ(leftovers(), std::vector<std::string>());
    EXPECT_EQ(segments(), before_);
  }

 private:
  std::vector<std::string> before_;
};

TEST_P(FailuresAreTold, ToAllOthersWithTheCause) {
  const bool mounts = mounts_are_permitted();
  std::list<Trial> trials;
  for (const Fault fault : all_faults) {
    for (int rank = 0; rank < ranks; ++rank) {
      std::string reason = why_not(GetParam(), fault, rank);
      if (reason.empty() && fault <= Fault::full && !mounts) reason = "this process may mount nothing";
#if defined(CHORALE_ASAN)
      if (fault == Fault::no_files) reason = "the sanitizers open files to look whether memory is there";
#endif
      if (reason.empty()) {
        trials.emplace_back(fault, rank);
      } else {
        std::printf("    left out: %s on rank %d: %s\n", name_of(fault).c_str(), rank, reason.c_str());
      }
    }
  }
  const auto start = Clock::now();
  for (Trial& trial : trials) trial.start(GetParam());
  for (Trial& trial : trials) trial.expect_told(GetParam());
  EXPECT_LT(Clock::now() - start, soon) << "the deadline of every wait is later";
}

std::string step_name(const testing::TestParamInfo<CollectiveStep>& info) {
  static const char* const names[] = {"memory", "seat", "group", "bind", "reset", "survivors", "split"};
  return names[size_t(info.param)];
}

INSTANTIATE_TEST_SUITE_P(Steps, FailuresAreTold,
                         testing::Values(CollectiveStep::memory, CollectiveStep::seat, CollectiveStep::group,
                                         CollectiveStep::window, CollectiveStep::reset,
                                         CollectiveStep::survivors, CollectiveStep::split),
                         step_name);

/// The rank gets one more descriptor in each trial, until it joins.
TEST(FailuresWhileJoining, AreToldWhereverDescriptorsRunOut) {
#if defined(CHORALE_ASAN)
  GTEST_SKIP() << "the sanitizers open files to look whether memory is there";
#endif
  for (const int poor : {0, 1}) {
    std::string said;
    for (int room = 0; said != "joined"; ++room) {
      ASSERT_LT(room, 50) << said;
      const std::string address = fresh_address();
      Processes processes(ranks, [&](int rank) {
        if (rank == poor) leave_no_files(room);
        return World::join(address, rank, ranks, {.timeout = deadline}), "joined";
      });
      said = processes.said(poor);
      for (int rank = 0; rank < ranks; ++rank) {
        const std::string heard = rank == poor ? said : processes.said(rank);
        EXPECT_TRUE(said == "joined" ? heard == said : has(heard, "resources: ") && has(heard, "(ulimit -n)"))
            << "rank " << poor << " may open " << room << ", rank " << rank << " hears " << heard;
      }
    }
  }
}

/// Each rank fails in turn: the lowest rank of each host, and the other one.
TEST(FailuresWhileJoining, AreToldToOtherHosts) {
  const auto start = Clock::now();
  for (const CollectiveStep step : {CollectiveStep::memory, CollectiveStep::group}) {
    for (const Fault fault : {Fault::no_files, Fault::killed}) {
#if defined(CHORALE_ASAN)
      if (fault == Fault::no_files) continue;
#endif
      for (int failing = 0; failing < 4; ++failing) {
        const std::string address = "tcp://127.0.0.1:" + std::to_string(free_port());
        Processes processes(4, [&](int rank) {
          if (rank == failing) armed = Armed{step, fault};
          const JoinOptions options{.timeout = deadline, .host = rank < 2 ? "one" : "other"};
          return World::join(address, rank, 4, options), "joined";
        });
        for (int rank = 0; rank < 4; ++rank) {
          if (rank == failing && fault == Fault::killed) continue;
          const std::string said = processes.said(rank);
          const bool right =
              fault == Fault::killed
                  ? has(said, "peer_lost: rank " + std::to_string(failing) + " ") && has(said, " died")
                  : has(said, "resources: ") && has(said, "(ulimit -n)");
          EXPECT_TRUE(right) << name_of(fault) << " on rank " << failing << ", step " << int(step)
                             << ": rank " << rank << " hears " << said;
        }
      }
    }
  }
  EXPECT_LT(Clock::now() - start, soon) << "the deadline of every wait is later";
}

}  // namespace
}  // namespace chorale::test

extern "C" void chorale_world_step(chorale::world::CollectiveStep step) { chorale::test::reach(step); }
