#include "team.hpp"

#include <poll.h>
#include <regex.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

#include "device.hpp"

namespace chorale::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::minutes watchdog{5};  ///< per case; it only decides whether the case hangs

/// Describes an order to a member. The members are forks of this process, so a function has the same address
/// there.
struct Order {
  Case what{};
  int serial = 0;
};

Config config_of(const Case& of, int rank) {
  Config config = Config::load();
  config.backend = device().name();
  config.timeout = rank == 0 && of.deadline_of_rank_0 ? *of.deadline_of_rank_0 : of.deadline;
  return config;
}

/// Returns "" or the error.
std::string run_body(const Case& of, Rank& rank) {
  std::string wrong;
  try {
    of.body(rank);
    return "";
  } catch (const RunError& error) {
    wrong = std::string(name(error.reason)) + ": " + error.what();
  } catch (const std::exception& error) {
    wrong = error.what();
  }
  // The aborts keep the others from waiting for a rank that does not come.
  rank.world.abort("the test has failed: " + wrong);
  rank.second.abort("the test has failed");
  return "rank " + std::to_string(rank.rank()) + ": " + wrong + "\n";
}

std::string run_process(const Order& order, int number, int ranks) {
  if (number >= ranks) return "";
  const Config config = config_of(order.what, number);
  JoinOptions options = config.join();
  options.timeout = device().join_deadline(options.timeout);
  const std::string fresh = "faults-" + std::to_string(getppid()) + "-" + std::to_string(order.serial);
  Rank rank{World::join("shm://" + fresh, number, ranks, options),
            World::join("shm://" + fresh + "-second", number, ranks, options), config, fresh};
  return run_body(order.what, rank);
}

std::string run_threads(const Order& order, int ranks) {
  const Config config = config_of(order.what, -1);
  LocalOptions options = config.local();
  options.timeout = device().join_deadline(options.timeout);
  std::vector<World> worlds = World::local(ranks, options), seconds = World::local(ranks, options);
  std::vector<std::string> wrong(size_t(ranks), "a rank did not end\n");
  {
    std::vector<std::jthread> threads;
    for (size_t at = 0; at < worlds.size(); ++at) {
      threads.emplace_back([&, at] {
        device().use(int(at));
        Rank rank{std::move(worlds[at]), std::move(seconds[at]), config, {}};
        wrong[at] = run_body(order.what, rank);
      });
    }
  }
  std::string all;
  for (const std::string& one : wrong) all += one;
  return all;
}

/// Holds a process, and the end of a socket to talk with it.
struct Member {
  pid_t pid = -1;
  int socket = -1;
};

[[noreturn]] void serve(Ranks how, int number, int socket) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto say = [socket](const std::string& text) {
    [[maybe_unused]] const ssize_t sent = send(socket, text.c_str(), text.size() + 1, MSG_NOSIGNAL);
  };
  try {
    device().use(number);
    say("");
    Order order;
    while (recv(socket, &order, sizeof order, MSG_WAITALL) == ssize_t(sizeof order)) {
      const int ranks = order.what.ranks ? order.what.ranks : device().ranks();
      std::string said;
      try {
        said = how == Ranks::processes ? run_process(order, number, ranks) : run_threads(order, ranks);
      } catch (const std::exception& error) {
        said = "process " + std::to_string(number) + ": " + error.what() + "\n";
      }
      std::fflush(stdout);
      say(said);
    }
    std::exit(0);  // runs what sanitizers do at exit
  } catch (const std::exception& error) {
    say(std::string("process ") + std::to_string(number) + ": " + error.what());
    _exit(1);
  }
}

/// Reads until a 0. Returns the text, and sets `ended` if the member has closed its end.
std::string hear(const Member& member, Clock::time_point until, bool& ended) {
  std::string text;
  for (char part = 1;;) {
    pollfd polled{.fd = member.socket, .events = POLLIN, .revents = 0};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0 || poll(&polled, 1, int(left)) == 0) {
      ended = true;
      return text + "still running when the watchdog looked: it hangs\n";
    }
    if (recv(member.socket, &part, 1, 0) != 1) {
      ended = true;
      return text;
    }
    if (part == 0) return text;
    text += part;
  }
}

class Team {
 public:
  explicit Team(Ranks how) {
    device().ranks();  // this may fork
    std::fflush(nullptr);
    const int count = how == Ranks::threads ? 1 : device().ranks();
    for (int number = 0; number < count; ++number) {
      int ends[2];
      if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        throw std::runtime_error("socketpair");
      const pid_t pid = fork();
      if (pid == 0) {
        close(ends[0]);
        for (const Member& sibling : members_) close(sibling.socket);
        serve(how, number, ends[1]);
      }
      close(ends[1]);
      members_.push_back({pid, ends[0]});
    }
    for (const Member& member : members_) {
      bool ended = false;
      start_ += hear(member, Clock::now() + watchdog, ended);
    }
  }

  /// Runs a case and returns the error. `whole` says whether the team can run another case.
  std::string run(const Case& of, bool& whole) {
    static int serial = 0;
    if (!start_.empty()) return whole = false, start_;
    const Order order{of, ++serial};
    for (const Member& member : members_) send(member.socket, &order, sizeof order, MSG_NOSIGNAL);
    const auto until = Clock::now() + watchdog;
    std::string wrong;
    for (size_t number = 0; number < members_.size(); ++number) {
      bool ended = false;
      wrong += hear(members_[number], until, ended);
      whole &= !ended;
      if (!ended && int(number) != of.killed) continue;
      if (ended && int(number) == of.killed) continue;
      wrong += "process " + std::to_string(number) + (ended ? " has gone\n" : " should have been killed\n");
    }
    whole &= wrong.empty();
    return wrong;
  }

  void kill() {
    for (const Member& member : members_) {
      ::kill(member.pid, SIGKILL);
      waitpid(member.pid, nullptr, 0);
      close(member.socket);
    }
  }

  /// Lets the processes exit, because their exit codes also carry what a sanitizer reports.
  bool dismiss() {
    bool good = true;
    for (const Member& member : members_) shutdown(member.socket, SHUT_RDWR);
    for (const Member& member : members_) {
      int status = 0;
      waitpid(member.pid, &status, 0);
      close(member.socket);
      good &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    return good;
  }

 private:
  std::vector<Member> members_;
  std::string start_;
};

// The teams are indexed by Ranks. They are plain pointers, because a member has copies and must not destroy
// them.
Team* teams[2] = {};

void end_team(Team*& team, bool by_force) {
  if (!team) return;
  if (by_force) {
    team->kill();
  } else {
    EXPECT_TRUE(team->dismiss()) << "a process of the ranks ended badly, see above";
  }
  delete team;
  team = nullptr;
}

class EndOfTeams : public testing::Environment {
 public:
  void TearDown() override {
    for (Team*& team : teams) end_team(team, false);
  }
};

[[maybe_unused]] testing::Environment* const end_of_teams = testing::AddGlobalTestEnvironment(new EndOfTeams);

void skip_where_impossible() {
  if (const std::string why = device().why_not(); !why.empty()) GTEST_SKIP() << why;
}

}  // namespace

void expect_good(Ranks how, const Case& of) {
  Team*& team = teams[int(how)];
  if (!team) team = new Team(how);
  bool whole = true;
  const std::string wrong = team->run(of, whole);
  EXPECT_EQ(wrong, "");
  if (!whole) end_team(team, true);
}

void must(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("does not hold: " + what);
}

void must_have(const std::string& text, const std::string& part) {
  if (text.find(part) == std::string::npos) throw std::runtime_error("'" + part + "' is not in: " + text);
}

void must_match(const std::string& text, const std::string& regex) {
  // std::regex is not used. With the address sanitizer gcc 12 warns about its code, and the thread sanitizer
  // warns about its table.
  regex_t compiled;
  if (regcomp(&compiled, regex.c_str(), REG_EXTENDED | REG_NOSUB) != 0)
    throw std::runtime_error("no regular expression: " + regex);
  const int unlike = regexec(&compiled, text.c_str(), 0, nullptr, 0);
  regfree(&compiled);
  if (unlike != 0) throw std::runtime_error("nothing matches '" + regex + "' in: " + text);
}

void Faults::SetUp() { skip_where_impossible(); }
void FaultsOfProcesses::SetUp() { skip_where_impossible(); }

}  // namespace chorale::test
