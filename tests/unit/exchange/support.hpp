/// \file
/// Makes calls of Exchange on the CPU, and reports whether they are right.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "chorale/exchange.hpp"
#include "messages.hpp"
#include "tests/unit/message_of_error.hpp"

namespace chorale::test {

inline Config on_cpu() { return {}; }

/// Holds one rank's buffers of a call. Bytes around the received data must not change.
class Buffers {
 public:
  Buffers(const std::vector<TestMessage>& all, int self) {
    for (const TestMessage& message : all) {
      if (message.from == self) add(out_, sends, message, message.odd_from, message.to);
      if (message.to == self) add(in_, recvs, message, message.odd_to, message.from);
    }
  }

  /// Returns "" if all data has arrived, and nothing else was written.
  std::string wrong() const {
    for (const Held& held : in_) {
      const uint64_t begin = held.at, end = begin + held.message.bytes;
      for (uint64_t at = 0; at < held.memory.size(); ++at) {
        const bool inside = at >= begin && at < end;
        const uint8_t wanted = inside ? held.message.byte(at - begin) : outside;
        if (held.memory[at] == wanted) continue;
        return "byte " + std::to_string(int64_t(at) - int64_t(begin)) + " of the message of " +
               std::to_string(held.message.bytes) + " bytes from rank " + std::to_string(held.message.from) +
               " to rank " + std::to_string(held.message.to) + " is " + std::to_string(held.memory[at]) +
               ", not " + std::to_string(wanted);
      }
    }
    return "";
  }

  std::vector<SendTo> sends;
  std::vector<RecvFrom> recvs;

 private:
  static constexpr uint8_t outside = 0xee;
  struct Held {
    TestMessage message;
    uint64_t at;
    std::vector<uint8_t> memory;
  };

  template <class List>
  void add(std::vector<Held>& held, List& list, const TestMessage& message, uint64_t odd, int peer) {
    Held& one = held.emplace_back(Held{message, 16 + odd, {}});
    one.memory.assign(message.bytes + 48, outside);
    if (&held == &out_) {
      for (uint64_t at = 0; at < message.bytes; ++at) one.memory[one.at + at] = message.byte(at);
    }
    list.push_back({one.memory.data() + one.at, message.bytes, peer});
  }

  std::vector<Held> out_, in_;
};

/// Returns the messages that are number k of their peer.
template <class Message>
std::vector<Message> numbered(const std::vector<Message>& list, int k) {
  std::vector<Message> picked;
  std::map<int, int> seen;
  for (const Message& message : list)
    if (seen[message.peer]++ == k) picked.push_back(message);
  return picked;
}

/// Makes call `call` on this rank.
/// \return the error; "" if there is none
inline std::string make_call(World& world, Exchange& exchange, uint64_t call, int most, uint64_t longest) {
  Buffers buffers(messages_of(call, world.ranks(), most, longest), world.rank());
  exchange.exchange(buffers.sends, buffers.recvs);
  return buffers.wrong();
}

}  // namespace chorale::test
