// These tests check how the ends of a connection authenticate each other, as bytes without sockets.

#include "executor/bootstrap/greeting.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/bootstrap/frames.hpp"
#include "tests/has.hpp"

namespace chorale::test {
namespace {

using bootstrap::Challenge;
using bootstrap::Claim;
using bootstrap::ClientsGreeting;
using bootstrap::Greeting;
using bootstrap::Refusal;
using bootstrap::Secret;
using bootstrap::ServersGreeting;
using State = Greeting::State;

constexpr uint16_t port = 29500;
const Claim rank_1{1, 4, port};

Secret secret(const std::string& text) { return Secret::read(text); }

/// Returns one end's answer to bytes, and expects that it consumes all of them.
std::string answer(Greeting& to, std::string_view bytes) {
  const std::string said = to.take(bytes);
  EXPECT_EQ(bytes, "");
  return said;
}

/// Holds everything that two ends have sent, message by message: the rank's, rank 0's, and so on.
struct Talk {
  std::vector<std::string> messages;

  Talk(ClientsGreeting& rank, ServersGreeting& leader) {
    messages.push_back(rank.begin());
    for (Greeting* to = &leader; !messages.back().empty();
         to = to == &leader ? static_cast<Greeting*>(&rank) : &leader) {
      std::string_view bytes = messages.back();
      messages.push_back(to->take(bytes));
    }
    messages.pop_back();
  }
};

struct Ends {
  Refusal rank, leader;
  bool operator==(const Ends&) const = default;
};

/// Returns how a greeting with these secrets fails on both sides.
Ends refusals(const std::string& of_rank, const std::string& of_leader) {
  ClientsGreeting rank(secret(of_rank), rank_1);
  ServersGreeting leader(secret(of_leader), port);
  const Talk talk(rank, leader);
  EXPECT_EQ(rank.state() == State::done, rank.refusal() == Refusal::none);
  EXPECT_EQ(leader.state() == State::done, leader.refusal() == Refusal::none);
  return {rank.refusal(), leader.refusal()};
}

TEST(Greeting, EndsThatKnowTheSecretMeet) {
  EXPECT_EQ(refusals("a long secret", "a long secret"), (Ends{Refusal::none, Refusal::none}));
  EXPECT_EQ(refusals("none", "none"), (Ends{Refusal::none, Refusal::none}));
}

TEST(Greeting, BothEndsSeeWhatIsWrongWithTheSecrets) {
  EXPECT_EQ(refusals("one", "another"), (Ends{Refusal::wrong_secret, Refusal::wrong_secret}));
  EXPECT_EQ(refusals("none", "one"), (Ends{Refusal::secret_wanted, Refusal::secret_missing}));
  EXPECT_EQ(refusals("one", "none"), (Ends{Refusal::secret_missing, Refusal::secret_wanted}));
}

TEST(Greeting, RankZeroKnowsWhichRankItIs) {
  ClientsGreeting rank(secret("s"), {3, 8, port});
  ServersGreeting leader(secret("s"), port);
  const Talk talk(rank, leader);
  ASSERT_EQ(leader.state(), State::done);
  EXPECT_EQ(leader.claim().rank, 3u);
  EXPECT_EQ(leader.claim().ranks, 8u);
  EXPECT_EQ(talk.messages.size(), 4u);
}

/// The greeting works however the bytes are split, and what follows them is not consumed.
TEST(Greeting, BytesMayComeOneByOne) {
  ClientsGreeting rank(secret("s"), rank_1);
  ServersGreeting leader(secret("s"), port);
  std::string to_leader = rank.begin(), to_rank;
  while (!to_leader.empty() || !to_rank.empty()) {
    for (const char byte : std::exchange(to_leader, {})) to_rank += answer(leader, {&byte, 1});
    for (const char byte : std::exchange(to_rank, {})) to_leader += answer(rank, {&byte, 1});
  }
  EXPECT_EQ(rank.state(), State::done);
  EXPECT_EQ(leader.state(), State::done);

  ClientsGreeting again(secret("s"), rank_1);
  ServersGreeting other(secret("s"), port);
  const std::string outcome = answer(other, answer(again, answer(other, again.begin()))) + "frames";
  std::string_view rest = outcome;
  EXPECT_EQ(again.take(rest), "");
  EXPECT_EQ(again.state(), State::done);
  EXPECT_EQ(rest, "frames");
}

/// A rank's recorded message proves nothing to a rank 0 that sends another challenge.
TEST(Greeting, AReplayProvesNothing) {
  ClientsGreeting rank(secret("s"), rank_1);
  ServersGreeting leader(secret("s"), port);
  const Talk talk(rank, leader);
  ServersGreeting next(secret("s"), port);
  answer(next, talk.messages[0]);
  answer(next, talk.messages[2]);
  EXPECT_EQ(next.refusal(), Refusal::wrong_secret);

  // Nor does rank 0's recorded message prove anything to a rank.
  ClientsGreeting next_rank(secret("s"), rank_1);
  answer(next_rank, talk.messages[1]);
  answer(next_rank, talk.messages[3]);
  EXPECT_EQ(next_rank.refusal(), Refusal::wrong_secret);
}

/// A proof is for one role: a rank's own proof, sent back to it, does not make the sender rank 0.
TEST(Greeting, AReflectionProvesNothing) {
  const Challenge same{7};
  ClientsGreeting rank(secret("s"), rank_1, same);
  ServersGreeting any(secret("s"), port, same);
  const std::string proof = answer(rank, answer(any, rank.begin()));
  const std::string digits = proof.substr(proof.size() - 32);
  answer(rank, bootstrap::head_of(1 + 1 + 32, 'o') + char(Refusal::none) + digits);
  EXPECT_EQ(rank.refusal(), Refusal::wrong_secret);
}

/// An attacker between them claims another rank, or changes anything else that they send.
TEST(Greeting, NothingThatIsSaidCanBeChangedOnTheWay) {
  ClientsGreeting model(secret("s"), rank_1);
  ServersGreeting model_leader(secret("s"), port);
  const Talk good(model, model_leader);
  for (size_t message = 0; message < 4; ++message) {
    for (size_t at = 0; at < good.messages[message].size(); ++at) {
      ClientsGreeting rank(secret("s"), rank_1);
      ServersGreeting leader(secret("s"), port);
      std::string said = rank.begin();
      for (size_t turn = 0; turn < 4 && !said.empty(); ++turn) {
        if (turn == message) said[at] = char(said[at] ^ 1);
        std::string_view taken = said;
        said = turn % 2 == 0 ? leader.take(taken) : rank.take(taken);
      }
      // The last message of rank 0 is only for the rank.
      EXPECT_NE((message < 3 ? leader : static_cast<Greeting&>(rank)).state(), State::done)
          << message << " " << at;
    }
  }
}

TEST(Greeting, AnotherPortIsAnotherWorld) {
  ClientsGreeting rank(secret("s"), {1, 4, 29501});
  ServersGreeting leader(secret("s"), port);
  const Talk talk(rank, leader);
  EXPECT_EQ(rank.refusal(), Refusal::wrong_port);
  EXPECT_EQ(leader.refusal(), Refusal::wrong_port);
}

TEST(Greeting, WhatIsForeignIsKnownFromItsFirstByteAndNotRepeated) {
  const std::pair<std::string, std::string> strangers[] = {{"GET / HTTP/1.1\r\n\r\n", "HTTP"},
                                                           {"SSH-2.0-x", "SSH"},
                                                           {"\x16\x03\x01\x02", "TLS"},
                                                           {"rm -rf /", "no protocol that is known here"}};
  for (const auto& [bytes, sounds] : strangers) {
    ServersGreeting leader(secret("s"), port);
    std::string_view rest = bytes;
    EXPECT_EQ(leader.take(rest), "");
    EXPECT_EQ(leader.refusal(), Refusal::foreign);
    EXPECT_EQ(leader.sounds_like(), sounds);
    ClientsGreeting rank(secret("s"), rank_1);
    rest = bytes;
    EXPECT_EQ(rank.take(rest), "");
    EXPECT_EQ(rank.refusal(), Refusal::foreign);
  }
  ServersGreeting leader(secret("s"), port);
  std::string_view one = "x";
  leader.take(one);
  EXPECT_EQ(leader.refusal(), Refusal::foreign);
}

/// The older version has no greetings: its hello is a frame, and it understands failed ones.
TEST(Greeting, AnOlderVersionIsToldSo) {
  ServersGreeting leader(secret("s"), port);
  const std::string hello =
      bootstrap::encode(bootstrap::Frame{bootstrap::FrameKind::hello, "0.1.0\n1\n4\n17\nnode\n"});
  std::string_view rest = hello;
  const std::string said = leader.take(rest);
  EXPECT_EQ(leader.refusal(), Refusal::other_protocol);
  bootstrap::FrameReader reader;
  reader.add(said);
  const auto frame = reader.next();
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->kind, bootstrap::FrameKind::failed);
  EXPECT_TRUE(has(frame->text, "rank 0 is Chorale ")) << frame->text;
  EXPECT_TRUE(has(frame->text, "start all ranks with the same version")) << frame->text;

  // It reads an opener as a hello, whose first line is a version other than its own.
  ClientsGreeting rank(secret("s"), rank_1);
  reader.add(rank.begin());
  const auto opener = reader.next();
  ASSERT_TRUE(opener);
  EXPECT_EQ(opener->kind, bootstrap::FrameKind::hello);
  EXPECT_TRUE(has(opener->text.substr(0, opener->text.find('\n')), "(protocol 2)")) << opener->text;
  // It answers with a failed frame.
  rest = said;
  rank.take(rest);
  EXPECT_EQ(rank.refusal(), Refusal::other_protocol);
}

/// Only the number of the protocol differs, in messages of the same length.
TEST(Greeting, AnotherProtocolIsToldFromAnotherSecret) {
  ClientsGreeting rank(secret("s"), rank_1);
  std::string opener = rank.begin();
  opener[17 + 32] = 3;
  ServersGreeting leader(secret("s"), port);
  EXPECT_TRUE(has(answer(leader, opener), "start all ranks with the same version"));
  EXPECT_EQ(leader.refusal(), Refusal::other_protocol);
}

TEST(Greeting, ALongMessageIsNotWaitedFor) {
  ServersGreeting leader(secret("s"), port);
  const std::string head = "chorale/00100000h";
  std::string_view rest = head;
  leader.take(rest);
  EXPECT_EQ(leader.refusal(), Refusal::other_protocol);
}

TEST(Frames, AreRefusedByTheirLengthBeforeTheirBytesCome) {
  bootstrap::FrameReader reader;
  reader.limit(bootstrap::FrameReader::most_hello_bytes);
  reader.add("chorale/00001001h");
  EXPECT_FALSE(reader.next());
  EXPECT_TRUE(reader.broken());
  bootstrap::FrameReader just;
  just.limit(bootstrap::FrameReader::most_hello_bytes);
  just.add("chorale/00001000h");
  EXPECT_FALSE(just.next());
  EXPECT_FALSE(just.broken());
}

TEST(Frames, ComeInAnyPieces) {
  bootstrap::FrameReader reader;
  std::vector<std::string> texts;
  for (const char byte : bootstrap::encode(bootstrap::Frame{bootstrap::FrameKind::waiting, "rank 3"}) +
                             bootstrap::encode(bootstrap::Frame{bootstrap::FrameKind::ready, ""})) {
    reader.add({&byte, 1});
    while (const auto frame = reader.next()) texts.push_back(char(frame->kind) + frame->text);
  }
  EXPECT_EQ(texts, (std::vector<std::string>{"wrank 3", "r"}));
  EXPECT_EQ(reader.held_bytes(), 0u);
  reader.add("chorale/0000000gh");
  EXPECT_FALSE(reader.next());
  EXPECT_TRUE(reader.broken());
}

}  // namespace
}  // namespace chorale::test
