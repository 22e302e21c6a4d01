/// \file
/// Makes copies as a device may do them: they take time, and few of them may run at once.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>

#include "executor/remote/copies.hpp"

namespace chorale::test {

/// Does a copy when the endpoint asks for the third time whether it has ended.
class SlowCopies final : public remote::Copies {
 public:
  static constexpr size_t piece = 1 << 10;

  /// \param most  the number of copies that may run in each direction
  explicit SlowCopies(size_t most) : most_(most) {}

  size_t piece_bytes() const override { return piece; }

  ucx::Payload copy_out(const char* from, size_t bytes) override {
    if (out_.waiting.size() == most_) return {};
    ucx::Payload payload(bytes);
    std::memset(payload.data.get(), 0x55, bytes);
    out_.waiting.push_back({reinterpret_cast<char*>(payload.data.get()), from, bytes, payload});
    return payload;
  }
  bool copy_in(char* to, const ucx::Payload& payload, bool) override {
    if (in_.waiting.size() == most_) return false;
    in_.waiting.push_back({to, reinterpret_cast<const char*>(payload.data.get()), payload.bytes, payload});
    return true;
  }
  uint64_t ended_out() override { return out_.ask(); }
  uint64_t ended_in() override { return in_.ask(); }
  void finish() override {
    while (!out_.waiting.empty()) out_.carry_out();
    while (!in_.waiting.empty()) in_.carry_out();
  }

 private:
  struct Copy {
    char* to;
    const char* from;
    size_t bytes;
    ucx::Payload kept;
  };
  struct Direction {
    std::deque<Copy> waiting;
    uint64_t ended = 0;
    int asked = 0;

    uint64_t ask() {
      if (!waiting.empty() && ++asked % 3 == 0) carry_out();
      return ended;
    }
    void carry_out() {
      std::memcpy(waiting.front().to, waiting.front().from, waiting.front().bytes);
      waiting.pop_front();
      ++ended;
    }
  };

  const size_t most_;
  Direction out_, in_;
};

}  // namespace chorale::test
