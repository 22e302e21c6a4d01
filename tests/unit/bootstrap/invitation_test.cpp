#include "chorale/invitation.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sodium.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "../thrown.hpp"
#include "../world/maker.hpp"
#include "../world/processes.hpp"
#include "by_hand.hpp"
#include "chorale/world.hpp"
#include "executor/bootstrap/rendezvous.hpp"
#include "tests/has.hpp"

namespace chorale::test {
namespace {

using namespace std::chrono_literals;
using bootstrap::Hello;
using bootstrap::hello_of;
using Bytes = std::array<std::byte, Invitation::bytes>;

class InvitationTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(leftovers(), std::vector<std::string>()); }

  /// Returns the world's name, as a rank that has met the others.
  static std::string meet(const Invitation& invitation, const Hello& mine,
                          std::chrono::nanoseconds timeout = 60s) {
    return bootstrap::rendezvous(invitation, mine, timeout).membership.name;
  }
};

/// Returns bytes with the checksum that fits them.
Bytes with_checksum(Bytes bytes) {
  unsigned char hash[crypto_generichash_BYTES_MIN];
  crypto_generichash(hash, sizeof hash, reinterpret_cast<const unsigned char*>(bytes.data()), 88, nullptr, 0);
  std::memcpy(bytes.data() + 88, hash, 8);
  return bytes;
}

TEST_F(InvitationTest, ItsBytesAreReadAgain) {
  const Maker one, other;
  EXPECT_EQ(one.invitation().encode(), one.bytes());
  EXPECT_EQ(one.invitation(), one.invitation());
  EXPECT_FALSE(one.invitation() == other.invitation());
  EXPECT_NE(one.secret(), other.secret());
  EXPECT_EQ(with_checksum(one.bytes()), one.bytes());
}

TEST_F(InvitationTest, OtherBytesAreNone) {
  const Maker maker;
  const Bytes bytes = maker.bytes();
  EXPECT_FALSE(Invitation::decode({}));
  EXPECT_FALSE(Invitation::decode(Bytes{}));
  EXPECT_FALSE(Invitation::decode(with_checksum(Bytes{})));
  EXPECT_FALSE(Invitation::decode(std::span(bytes).first(bytes.size() - 1)));
  std::vector<std::byte> longer(bytes.begin(), bytes.end());
  longer.push_back({});
  EXPECT_FALSE(Invitation::decode(longer));
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const int bit : {1, 128}) {
      Bytes wrong = bytes;
      wrong[at] ^= std::byte(bit);
      EXPECT_FALSE(Invitation::decode(wrong)) << "byte " << at;
    }
  }
}

TEST_F(InvitationTest, ARankOnAnotherMachineIsRefusedAtOnce) {
  const Maker maker;
  Bytes bytes = maker.bytes();
  bytes[40] ^= std::byte(1);  // of the machine
  std::memcpy(bytes.data() + 56, "node7", 6);
  const auto invitation = Invitation::decode(with_checksum(bytes));
  ASSERT_TRUE(invitation);
  const Hello mine = hello_of(1, 2);
  EXPECT_EQ(thrown([&] { meet(*invitation, mine, 0ns); }),
            "mismatch: the invitation was made on host node7, and rank 1 runs on host " + mine.host.name +
                ": an invitation makes a world of one host; ranks of several hosts join at tcp://host:port");
}

TEST_F(InvitationTest, ARankInAnotherNetworkNamespaceIsRefusedAtOnce) {
  const Maker maker;
  Processes ranks(1, [&](int) -> std::string {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return "not permitted";
    return meet(maker.invitation(), hello_of(0, 2), 0ns);
  });
  const std::string said = ranks.said(0);
  if (said == "not permitted") GTEST_SKIP() << "this process may make no network namespace";
  EXPECT_TRUE(has(said, "mismatch: the invitation was made on ") &&
              has(said, "in another network namespace: run them in one container"))
      << said;
}

TEST_F(InvitationTest, StrangersDoNotMatter) {
  const Maker maker;
  std::vector<int> files;
  for (int times = 0; times < 3; ++times) {
    files.push_back(connected_socket(maker.port()));  // says nothing
    write_text(files.emplace_back(connected_socket(maker.port())), "GET / HTTP/1.1\r\n\r\n");
    write_text(files.emplace_back(connected_socket(maker.port())), std::string(100000, '\xff'));
    close(connected_socket(maker.port()));
  }
  // This one looks like a rank, but does not know the secret.
  files.push_back(connected_socket(maker.port()));
  bootstrap::ClientsGreeting greeting(bootstrap::Secret::read("another secret"), {0, 2, maker.port()});
  greet(files.back(), greeting);
  EXPECT_EQ(greeting.state(), bootstrap::Greeting::State::failed);
  Processes ranks(2, [&](int rank) { return meet(maker.invitation(), hello_of(rank, 2)); });
  const std::string name = ranks.said(0);
  EXPECT_TRUE(name.starts_with("tcp-")) << name;
  EXPECT_EQ(ranks.said(1), name);
  for (const int file : files) close(file);
}

/// Ranks that come after the error get it too.
TEST_F(InvitationTest, AnotherVersionIsRefused) {
  const Maker maker;
  Hello old = hello_of(0, 2);
  old.version = "0.0.1";
  const std::string wanted =
      "mismatch: a rank of the invitation's world is Chorale 0.0.1, but the process that "
      "made the invitation (pid ";
  Processes ranks(1, [&](int) { return meet(maker.invitation(), old); });
  EXPECT_TRUE(has(ranks.said(0), wanted)) << ranks.said(0);
  ranks.spawn(1, [&](int rank) { return meet(maker.invitation(), hello_of(rank, 2)); });
  const std::string said = ranks.said(1);
  EXPECT_TRUE(has(said, wanted) && has(said, "; start all ranks with the same version")) << said;
}

TEST_F(InvitationTest, ARankThatDiesIsNamed) {
  const Maker maker;
  Processes ranks(2, [&](int rank) { return meet(maker.invitation(), hello_of(rank, 4)); });
  const int file = greeted_socket(maker.port(), 2, 4, maker.secret());
  write_text(file, frame('h', bootstrap::encode(hello_of(2, 4))));
  const std::string heard = read_until(file, "wrank 3");
  ASSERT_TRUE(has(heard, "wrank 3")) << heard;
  close(file);
  ranks.spawn(3, [&](int rank) { return meet(maker.invitation(), hello_of(rank, 4)); });
  for (const int rank : {0, 1, 2}) {  // rank 3 is the third process
    const std::string said = ranks.said(rank);
    EXPECT_TRUE(has(said, "peer_lost: rank 2 (pid ") &&
                has(said, ") died while the invitation's world was being joined"))
        << said;
  }
}

TEST_F(InvitationTest, TheDeathOfItsMakerIsTold) {
  Maker maker;
  Processes ranks(2, [&](int rank) { return meet(maker.invitation(), hello_of(rank, 4)); });
  const int file = greeted_socket(maker.port(), 2, 4, maker.secret());
  write_text(file, frame('h', bootstrap::encode(hello_of(2, 4))));
  read_until(file, "wrank 3");
  maker.kill();
  for (const int rank : {0, 1}) {
    // A rank that the maker has counted, but not answered yet, cannot know that it was the first to come.
    const std::string said = ranks.said(rank);
    EXPECT_TRUE(said ==
                    "peer_lost: the process that made the invitation died while the invitation's world was "
                    "being joined; see what it said" ||
                has(said, ", or the process that made it has ended"))
        << said;
  }
  close(file);
}

/// A fork of the process that made the invitation does not keep the port open.
TEST_F(InvitationTest, ItEndsWithItsMaker) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  Maker maker([&] {
    if (fork() == 0) {
      close(ends[1]);
      char until_closed = 0;
      [[maybe_unused]] const ssize_t bytes = read(ends[0], &until_closed, 1);
      _exit(0);
    }
    [[maybe_unused]] const ssize_t bytes = write(ends[1], "f", 0);
  });
  std::this_thread::sleep_for(50ms);  // until the fork is there; it does not change the result
  maker.kill();
  EXPECT_EQ(
      thrown([&] { meet(maker.invitation(), hello_of(1, 2), 0ns); }),
      "mismatch: rank 1 cannot join by its invitation: the invitation has already been used, or the "
      "process that made it has ended; make an invitation for each world, in a process that lives until "
      "all ranks have joined");
  close(ends[0]);
  close(ends[1]);
}

/// Returns a hello of rank `rank` of 4, from a process of a host.
Hello hello_from(int rank, int pid, const std::string& host = "a") {
  Hello hello{"1.0", rank, 4, pid, {host, "boot", "shared", "user", host}};
  return hello;
}

TEST(WhyNoInvitation, OfProcessesAndThreads) {
  using bootstrap::in_one_process;
  using bootstrap::why_no_invitation;
  const auto all = [](std::vector<int> pids) {
    std::vector<Hello> hellos;
    for (const int pid : pids) hellos.push_back(hello_from(int(hellos.size()), pid));
    return hellos;
  };
  EXPECT_EQ(why_no_invitation(all({1, 2, 3, 4})), "");
  EXPECT_FALSE(in_one_process(all({1, 2, 3, 4})));
  EXPECT_EQ(why_no_invitation(all({7, 7, 7, 7})), "");
  EXPECT_TRUE(in_one_process(all({7, 7, 7, 7})));
  EXPECT_EQ(why_no_invitation(all({1, 2, 3, 2})),
            "pid 2 on a has ranks 1, 3 of 4: either all ranks are threads of one process, or each is a "
            "process of its own");
  // Processes of different hosts may have the same pid.
  const std::vector<Hello> apart = {hello_from(0, 7), hello_from(1, 7, "b")};
  EXPECT_FALSE(in_one_process(apart));
  EXPECT_EQ(
      why_no_invitation(apart),
      "rank 0 is on host a and rank 1 on host b: an invitation makes a world of one host; ranks of several "
      "hosts join at tcp://host:port");
}

}  // namespace
}  // namespace chorale::test
