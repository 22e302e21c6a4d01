// These tests check how messages are divided into launches, for kernels that take a limited number.

#include <gtest/gtest.h>

#include <set>

#include "executor/exchange/carrier.hpp"
#include "messages.hpp"

namespace chorale::exchange {
namespace {

using test::TestMessage;

Links links_of(int ranks, uint32_t channels) {
  Links links;
  links.table.ranks = ranks;
  links.table.channels = channels;
  links.share_bytes = 100;
  return links;
}

std::vector<Launch> launches(const std::vector<TestMessage>& all, int self, const Links& links, size_t most) {
  std::vector<SendTo> sends;
  std::vector<RecvFrom> recvs;
  for (const TestMessage& message : all) {
    if (message.from == self) sends.push_back({nullptr, message.bytes, message.to});
    if (message.to == self) recvs.push_back({nullptr, message.bytes, message.from});
  }
  return launches_of(sends, recvs, links, most);
}

TEST(ExchangeLaunches, KeepTheOrderAndHaveBlocksOfTheirOwn) {
  const Links links = links_of(3, 4);
  const auto all = test::messages_of(5, 3, 6, 900);
  for (int self = 0; self < 3; ++self) {
    for (const size_t most : {6u, 12u, 1000u}) {
      std::vector<std::vector<uint64_t>> got(6), wanted(6);
      for (const TestMessage& message : all) {
        if (message.from == self) wanted[size_t(message.to)].push_back(message.bytes);
        if (message.to == self) wanted[size_t(3 + message.from)].push_back(message.bytes);
      }
      for (const Launch& launch : launches(all, self, links, most)) {
        EXPECT_LE(launch.messages.size(), most);
        std::vector<int> taken(launch.blocks, -1);
        for (const Message& message : launch.messages) {
          const int line = message.receives * 3 + message.peer;
          got[size_t(line)].push_back(message.bytes);
          EXPECT_GE(message.blocks, channels_of(message.bytes, 100, 4));
          for (uint32_t block = message.block; block < uint32_t(message.block) + message.blocks; ++block) {
            EXPECT_TRUE(taken[block] < 0 || taken[block] == line) << "block " << block;
            taken[block] = line;
          }
        }
        for (const int line : taken) EXPECT_GE(line, 0) << "a block has nothing to do";
      }
      EXPECT_EQ(got, wanted);
    }
  }
}

/// Message k of a peer and direction is in the same launch at both ends, if both have to divide.
TEST(ExchangeLaunches, AreCutAlikeAtBothEnds) {
  const Links links = links_of(2, 1);
  std::vector<TestMessage> all;
  for (int k = 0; k < 40; ++k) {
    all.push_back({0, 1, uint64_t(2 * k), 0, 0, 0});
    if (k < 25) all.push_back({1, 0, uint64_t(2 * k + 1), 0, 0, 0});
    if (k < 10) all.push_back({0, 0, uint64_t(1000 + k), 0, 0, 0});  // only rank 0 has more messages
  }
  const auto first = launches(all, 0, links, 12), second = launches(all, 1, links, 12);
  ASSERT_EQ(first.size(), second.size());
  EXPECT_GT(first.size(), 1u);
  const auto between = [](const Launch& launch, bool receives, int peer) {
    std::set<uint64_t> bytes;
    for (const Message& message : launch.messages)
      if (message.receives == receives && message.peer == peer) bytes.insert(message.bytes);
    return bytes;
  };
  for (size_t at = 0; at < first.size(); ++at) {
    EXPECT_EQ(between(first[at], false, 1), between(second[at], true, 0)) << "launch " << at;
    EXPECT_EQ(between(second[at], false, 0), between(first[at], true, 1)) << "launch " << at;
  }
}

}  // namespace
}  // namespace chorale::exchange
