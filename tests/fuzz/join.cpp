// This libFuzzer target feeds arbitrary bytes to ranks that connect over TCP. Both ends of a greeting must
// hold few bytes and end or wait, and no peer may be accepted as a rank that it is not. The input is a script
// for an attacker between a rank and rank 0, who passes on their messages, changes or repeats them, or sends
// something else. Without the secret no attacker gets further than the greeting. The frames after it, and
// their contents, are read from the same bytes.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "executor/bootstrap/frames.hpp"
#include "executor/bootstrap/greeting.hpp"
#include "executor/bootstrap/hello.hpp"
#include "executor/bootstrap/membership.hpp"
#include "executor/bootstrap/secret.hpp"

namespace {

using chorale::bootstrap::Challenge;
using chorale::bootstrap::ClientsGreeting;
using chorale::bootstrap::Greeting;
using chorale::bootstrap::Secret;
using chorale::bootstrap::ServersGreeting;

void require(bool right, const char* what) {
  if (right) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

/// Takes numbers and bytes from the input, and zeros after its end.
struct Script {
  std::string_view left;

  uint8_t number() {
    if (left.empty()) return 0;
    const uint8_t first = uint8_t(left[0]);
    left.remove_prefix(1);
    return first;
  }
  std::string_view bytes(size_t count) {
    const std::string_view taken = left.substr(0, count);
    left.remove_prefix(taken.size());
    return taken;
  }
};

/// Returns the same challenges for the same input, so that a run can be repeated.
Challenge challenge_of(uint8_t seed) {
  Challenge challenge;
  challenge.fill(seed);
  return challenge;
}

/// Describes one direction between the two ends.
struct Way {
  std::string waiting;  ///< sent, and not passed on yet
  std::string passed;   ///< everything that was passed on, which may be repeated
  std::string said;     ///< everything that the end has sent
};

class Between {
 public:
  explicit Between(Script script)
      : script_(script),
        options_(script_.number()),
        one_secret_(options_ & 2 ? (options_ & 5) == 5 : (options_ & 4) == 0),
        rank_(secret(options_ & 2 ? "one secret" : "none"), {options_ / 16u, 16, 29500}, challenge_of(1)),
        leader_(secret(options_ & 4 ? (options_ & 1 ? "one secret" : "another one") : "none"),
                options_ & 8 ? 29501 : 29500, challenge_of(2)) {
    say(from_rank_, rank_.begin());
  }

  void run() {
    while (!script_.left.empty()) {
      const uint8_t what = script_.number();
      const bool to_leader = what & 1;
      Way& way = to_leader ? from_rank_ : from_leader_;
      const size_t count = script_.number();
      std::string bytes;
      switch (what / 2 % 5) {
        case 0:  // the next bytes, unchanged
          bytes = take(way, count);
          break;
        case 1:  // with one byte changed
          bytes = take(way, count);
          if (!bytes.empty()) bytes[script_.number() % bytes.size()] ^= char(1 | script_.number());
          break;
        case 2:  // bytes that were sent before
          bytes = way.passed.substr(std::min(count, way.passed.size()), script_.number());
          break;
        case 3:  // bytes of the other direction
          bytes = (to_leader ? from_leader_ : from_rank_).said.substr(0, count);
          break;
        default:
          bytes = std::string(script_.bytes(count));
      }
      way.passed += bytes;
      deliver(to_leader, bytes);
    }
    check();
  }

 private:
  static Secret secret(const char* text) { return Secret::read(text); }

  static void say(Way& way, const std::string& bytes) {
    way.waiting += bytes;
    way.said += bytes;
  }

  static std::string take(Way& way, size_t count) {
    const std::string bytes = way.waiting.substr(0, count);
    way.waiting.erase(0, bytes.size());
    return bytes;
  }

  void deliver(bool to_leader, std::string_view bytes) {
    Greeting& to = to_leader ? static_cast<Greeting&>(leader_) : rank_;
    std::string& heard = to_leader ? heard_by_leader_ : heard_by_rank_;
    const bool open = to.state() == Greeting::State::open;
    const size_t before = bytes.size();
    const std::string_view all = bytes;
    const std::string answer = to.take(bytes);
    require(open || (bytes.size() == before && answer.empty()),
            "an end that has ended takes or says something");
    require(answer.size() < 400, "an end says too much");
    heard += all.substr(0, before - bytes.size());
    require(heard.size() <= 300, "an end takes more than a greeting has");
    say(to_leader ? from_leader_ : from_rank_, answer);
  }

  /// Checks that an end that was accepted has sent and received exactly what the other end has received and
  /// sent.
  void check() const {
    if (leader_.state() == Greeting::State::done) {
      require(heard_by_leader_ == from_rank_.said, "rank 0 accepts what the rank has not said");
      require(leader_.claim().rank == rank_.claim().rank, "rank 0 takes one rank for another");
      require(one_secret_, "rank 0 accepts another secret");
      require((options_ & 8) == 0, "rank 0 accepts what was said to another port");
    }
    if (rank_.state() == Greeting::State::done) {
      require(heard_by_rank_ == from_leader_.said, "the rank accepts what rank 0 has not said");
      require(leader_.state() == Greeting::State::done, "the rank is done, and rank 0 is not");
    }
  }

  Script script_;
  const uint8_t options_;
  const bool one_secret_;
  ClientsGreeting rank_;
  ServersGreeting leader_;
  Way from_rank_, from_leader_;
  std::string heard_by_leader_, heard_by_rank_;
};

/// Reads the frames after a greeting, in pieces.
void read_frames(Script script) {
  chorale::bootstrap::FrameReader reader;
  const size_t limit = script.number() * 32u;
  reader.limit(limit);
  while (!script.left.empty() && !reader.broken()) {
    reader.add(script.bytes(1u + script.number()));
    while (const auto frame = reader.next()) {
      require(frame->text.size() < limit, "a frame is longer than it may be");
      require(chorale::bootstrap::encode(*frame).size() ==
                  frame->text.size() + chorale::bootstrap::head_bytes + 1,
              "encode");
      if (const auto hello = chorale::bootstrap::decode_hello(frame->text)) {
        const std::string shown = hello->process_text() + hello->version;
        require(std::all_of(shown.begin(), shown.end(),
                            [](char letter) { return letter >= ' ' && letter <= '~'; }),
                "a hello shows what does not print");
      }
      if (const auto membership = chorale::bootstrap::Membership::decode(frame->text)) {
        for (const uint32_t host : membership->hosts)
          require(host < membership->host_names.size(), "a host has no name");
      }
    }
    require(reader.held_bytes() <= limit + 300 || reader.broken(), "more is held than a frame has");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Script script{{reinterpret_cast<const char*>(data), size}};
  if (script.number() % 4 == 3)
    read_frames(script);
  else
    Between(script).run();
  return 0;
}
