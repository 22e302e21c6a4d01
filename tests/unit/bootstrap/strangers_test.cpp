// These tests check what a process that is not a rank can do to ranks that connect over TCP.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "../world/processes.hpp"
#include "by_hand.hpp"
#include "chorale/world.hpp"
#include "rendezvous.hpp"

namespace chorale::test {
namespace {

using namespace std::chrono_literals;
using bootstrap::hello_of;

const std::string secret = "0123456789abcdef of this test", another = "0123456789abcdef of another";

class Strangers : public Rendezvous {
 protected:
  /// Starts rank 0 of two, to which the test talks before rank 1 comes.
  Processes leader(const std::string& known = secret, std::chrono::nanoseconds timeout = 60s) {
    return Processes(1, [this, known, timeout](int) { return join(hello_of(0, 2), timeout, known); });
  }

  /// Starts rank 1, after which both ranks must report the world's name.
  void expect_world(Processes& ranks, const std::string& known = secret) {
    ranks.spawn(1, [&](int) { return join(hello_of(1, 2), 60s, known); });
    const std::string name = ranks.said(0);
    EXPECT_TRUE(name.starts_with("tcp-")) << name;
    EXPECT_EQ(ranks.said(1), name);
  }

  /// Closes the connections that the test keeps open.
  ~Strangers() override {
    for (const int file : open_) close(file);
  }
  int kept(int file) { return open_.emplace_back(file); }

  /// Returns whether rank 0 has kept one of them open.
  bool any_open() const {
    return std::any_of(open_.begin(), open_.end(), [](int file) {
      pollfd polled{file, POLLRDHUP, 0};
      return poll(&polled, 1, 1) == 0;
    });
  }

 private:
  std::vector<int> open_;
};

// --- strangers without a seat have no say ---

TEST_F(Strangers, CannotEndAWorldWithAFrame) {
  Processes ranks = leader();
  write_text(kept(connected_socket(port)), frame('g', "the text of a stranger"));
  expect_world(ranks);
}

/// Even a stranger that has greeted cannot do this, because it has no seat to give up.
TEST_F(Strangers, CannotEndAWorldThatHasNoSecret) {
  Processes ranks = leader("none");
  write_text(kept(greeted_socket(port, 1, 2)), frame('g', "the text of a stranger"));
  expect_world(ranks, "none");
}

TEST_F(Strangers, CannotTakeTheSeatOfARank) {
  Processes ranks = leader();
  const int file = kept(connected_socket(port));
  write_text(file, frame('h', bootstrap::encode(hello_of(1, 2))));
  EXPECT_TRUE(has(read_some(file), "start all ranks with the same version"));
  expect_world(ranks);
}

/// A member of the world takes only the seat that its greeting has proved.
TEST_F(Strangers, ARankTakesOnlyTheSeatOfItsGreeting) {
  Processes ranks = leader();
  write_text(kept(greeted_socket(port, 0, 2, secret)), frame('h', bootstrap::encode(hello_of(1, 2))));
  expect_world(ranks);
}

TEST_F(Strangers, AGreetingThatIsRepeatedProvesNothing) {
  // The text is what a rank of another rendezvous on the same port has sent, with the same secret.
  std::string said;
  {
    const int listener = bound_socket(port);
    ASSERT_EQ(listen(listener, 8), 0);
    Processes rank(1, [&](int) { return join(hello_of(1, 2), 60s, secret); });
    const int file = kept(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    bootstrap::ServersGreeting greeting(bootstrap::Secret::read(secret), port);
    while (greeting.state() == bootstrap::Greeting::State::open) {
      const std::string heard = read_some(file);
      ASSERT_FALSE(heard.empty());
      said += heard;
      std::string_view bytes = heard;
      write_text(file, greeting.take(bytes));
    }
    EXPECT_EQ(greeting.state(), bootstrap::Greeting::State::done);
    rank.kill(0);
    close(listener);
  }
  Processes ranks = leader();
  const int file = kept(connected_socket(port));
  write_text(file, said);
  write_text(file, frame('h', bootstrap::encode(hello_of(1, 2))));
  EXPECT_EQ(read_until(file, "wrank").find("wrank"), std::string::npos);
  expect_world(ranks);
}

// --- secrets that differ ---

TEST_F(Strangers, AWrongSecretIsNamedAndTheRightOneStillJoins) {
  Processes ranks = leader();
  Processes wrong(1, [&](int) { return join(hello_of(1, 2), 60s, another); });
  EXPECT_TRUE(has(wrong.said(0), "mismatch: the secret of rank 1 differs from the secret of rank 0 of '" +
                                     address +
                                     "'; give all ranks one CHORALE_SECRET: export it on every host"));
  expect_world(ranks);
}

TEST_F(Strangers, AMissingSecretIsNamedOnEitherSide) {
  {
    Processes ranks = leader();
    Processes wrong(1, [&](int) { return join(hello_of(1, 2)); });
    EXPECT_TRUE(
        has(wrong.said(0), "mismatch: rank 0 of '" + address + "' has a secret, and rank 1 has none; give"));
    expect_world(ranks);
  }
  Processes ranks = leader("none");
  Processes wrong(1, [&](int) { return join(hello_of(1, 2), 60s, secret); });
  EXPECT_TRUE(
      has(wrong.said(0), "mismatch: rank 1 has a secret, and rank 0 of '" + address + "' has none; give"));
  expect_world(ranks, "none");
}

/// Rank 0 reports the last rank that it refused when its own timeout has passed.
TEST_F(Strangers, ARefusedRankIsSaidToBeMissing) {
  Processes ranks = leader(secret, 5s);
  Processes wrong(1, [&](int) { return join(hello_of(1, 2), 60s, another); });
  wrong.said(0);
  const std::string said = ranks.said(0);
  EXPECT_TRUE(has(said, "timed_out: rank 1 did not join '" + address + "' within 5 s")) << said;
  EXPECT_TRUE(
      has(said, "; somebody at 127.0.0.1 failed to authenticate for '" + address +
                    "': its secret differs from the secret of rank 0; if that is a rank of this world, "
                    "start it with the secret of rank 0"))
      << said;
}

TEST_F(Strangers, RanksOfAnotherPortAreToldSo) {
  Processes ranks = leader();
  const int file = kept(connected_socket(port));
  bootstrap::ClientsGreeting greeting(bootstrap::Secret::read(secret), {1, 2, uint16_t(port + 1)});
  greet(file, greeting);
  EXPECT_EQ(greeting.refusal(), bootstrap::Refusal::wrong_port);
  expect_world(ranks);
}

/// World::join() takes the secret of its options, or otherwise that of the environment.
TEST_F(Strangers, WorldsHaveTheSecretOfOptionsOrEnvironment) {
  Processes ranks(2, [&](int rank) -> std::string {
    unsetenv("CHORALE_SECRET");
    JoinOptions options;
    rank == 0 ? void(options.secret = secret) : void(setenv("CHORALE_SECRET", secret.c_str(), 1));
    World::join(address, rank, 2, options).barrier();
    return "good";
  });
  EXPECT_EQ(ranks.said(0), "good");
  EXPECT_EQ(ranks.said(1), "good");
}

// --- strangers that cost time or memory ---

/// Returns the bytes that a process holds.
size_t resident_bytes(pid_t process) {
  long pages = 0, resident = 0;
  if (FILE* const file = std::fopen(("/proc/" + std::to_string(process) + "/statm").c_str(), "r")) {
    if (std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return size_t(resident) * size_t(sysconf(_SC_PAGESIZE));
}

/// Writes as many bytes as possible without waiting.
void pour(int file, const std::string& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t sent = send(file, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EAGAIN) std::this_thread::sleep_for(1ms);
    if (sent < 0 && errno != EAGAIN) return;
    if (sent > 0) done += size_t(sent);
  }
}

TEST_F(Strangers, UnfinishedFramesAreNotKept) {
  Processes ranks = leader("none");
  close(connected_socket(port));  // when this succeeds, it listens
  const size_t before = resident_bytes(ranks.pid(0));
  for (int count = 0; count < 40; ++count) {
    const int file = count % 2 ? greeted_socket(port, 1, 2) : connected_socket(port);
    // One of these bytes never comes.
    pour(kept(file), "chorale/000fffffh" + std::string((1 << 20) - 3, 'x'));
  }
  // Rank 0 has read as much as it will when it has closed all of them.
  size_t most = before;
  while (any_open()) most = std::max(most, resident_bytes(ranks.pid(0)));
  EXPECT_LT(most, before + (8 << 20));
  expect_world(ranks, "none");
}

/// There are more connections than rank 0 keeps, and the ranks' connections come among them.
TEST_F(Strangers, AFloodDoesNotKeepRanksOut) {
  Processes ranks(1, [&](int rank) { return join(hello_of(rank, 4), 60s, secret); });
  for (int count = 0; count < 200; ++count) {
    if (count % 50 == 49 && count < 100) {
      const int rank = count / 50 + 1;
      ranks.spawn(rank, [&](int) { return join(hello_of(rank, 4), 60s, secret); });
    }
    kept(connected_socket(port, count % 2 ? "127.0.0.1" : "127.0.0.9"));
  }
  ranks.spawn(3, [&](int rank) { return join(hello_of(rank, 4), 60s, secret); });
  const std::string name = ranks.said(0);
  EXPECT_TRUE(name.starts_with("tcp-")) << name;
  for (int rank = 1; rank < 4; ++rank) EXPECT_EQ(ranks.said(rank), name);
}

/// The address with the most connections loses one, but not the oldest one.
TEST_F(Strangers, AFloodFromOneAddressDoesNotPushOutAnother) {
  Processes ranks = leader();
  const int patient = kept(connected_socket(port, "127.0.0.9"));
  for (int count = 0; count < 100; ++count) kept(connected_socket(port));
  bootstrap::ClientsGreeting greeting(bootstrap::Secret::read(secret), {1, 2, port});
  greet(patient, greeting);
  EXPECT_EQ(greeting.state(), bootstrap::Greeting::State::done);
  expect_world(ranks);
}

/// A stranger that sends a byte now and then gets as much time as a silent one.
TEST_F(Strangers, ASlowSenderIsHungUpOn) {
  Processes ranks = leader();
  const int file = kept(connected_socket(port)), silent = kept(connected_socket(port));
  bootstrap::ClientsGreeting greeting(bootstrap::Secret::read(secret), {1, 2, port});
  const std::string opener = greeting.begin();
  size_t sent = 0;
  for (; sent < opener.size() && send(file, &opener[sent], 1, MSG_NOSIGNAL) == 1; ++sent)
    std::this_thread::sleep_for(200ms);
  EXPECT_LT(sent, opener.size());
  EXPECT_EQ(read_some(silent), "");  // it is closed
  expect_world(ranks);
}

TEST_F(Strangers, GarbageIsHungUpOn) {
  Processes ranks = leader();
  unsigned state = 7;
  for (int count = 0; count < 50; ++count) {
    std::string garbage = count % 2 ? "chorale/" : "";
    for (int byte = 0; byte < 300; ++byte) garbage += char((state = state * 1664525 + 1013904223) >> 24);
    const int file = kept(connected_socket(port));
    pour(file, garbage);
  }
  expect_world(ranks);
}

// --- warnings ---

/// Returns what rank 0 of one rank prints to standard error when it joins at `where`.
std::string warnings_of(const std::string& where, const std::string& known) {
  testing::internal::CaptureStderr();
  bootstrap::rendezvous(bootstrap::parse_address(where), hello_of(0, 1), 60s, bootstrap::Secret::read(known));
  return testing::internal::GetCapturedStderr();
}

TEST_F(Strangers, AnOpenAddressWithoutASecretIsWarnedOf) {
  const std::string end = ":" + std::to_string(port);
  Processes process(1, [&](int) -> std::string {
    const std::string open = warnings_of("tcp://0.0.0.0" + end, "none");
    if (!has(open, "rank 0 listens on 'tcp://0.0.0.0" + end + "' and there is no secret") ||
        !has(open, "export CHORALE_SECRET=$(openssl rand -hex 32)"))
      return "no warning: " + open;
    if (const std::string said = warnings_of("tcp://127.0.0.1" + end, "none"); !said.empty()) return said;
    if (const std::string said = warnings_of("tcp://0.0.0.0" + end, secret); !said.empty()) return said;
    const std::string weak = warnings_of("tcp://0.0.0.0" + end, "hunter2");
    if (!has(weak, "has fewer than 16 letters") || has(weak, "hunter2")) return "weak: " + weak;
    return "good";
  });
  EXPECT_EQ(process.said(0), "good");
}

/// Each address is reported once.
TEST_F(Strangers, AreWarnedOfOnceAndNeverQuoted) {
  Processes ranks(1, [&](int) -> std::string {
    testing::internal::CaptureStderr();
    join(hello_of(0, 2), 60s, secret);
    return testing::internal::GetCapturedStderr();
  });
  for (int count = 0; count < 20; ++count) {
    const int file = connected_socket(port);
    write_text(file, "GET /quoted HTTP/1.1\r\n");
    EXPECT_EQ(read_some(file), "");
    close(file);
  }
  ranks.spawn(1, [&](int) { return join(hello_of(1, 2), 60s, secret); });
  ranks.said(1);
  const std::string said = ranks.said(0);
  EXPECT_TRUE(has(said, "somebody at 127.0.0.1 failed to authenticate")) << said;
  EXPECT_EQ(said.find("somebody"), said.rfind("somebody")) << said;
  EXPECT_FALSE(has(said, "quoted")) << said;
}

}  // namespace
}  // namespace chorale::test
