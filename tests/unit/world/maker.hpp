/// \file
/// Makes an invitation in a process that is no rank.
#pragma once

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <thread>

#include "chorale/invitation.hpp"
#include "processes.hpp"
#include "tools/shared.hpp"

namespace chorale::test {

/// Runs a process that makes an invitation and lives until this object is destroyed. This process stays
/// without further threads, so that its forks may start threads under the thread sanitizer.
class Maker {
 public:
  /// \param then  what the process does after it has made the invitation
  explicit Maker(const std::function<void()>& then = {})
      : made_(1), process_(1, [&](int) {
          const auto bytes = Invitation::make().encode();
          std::copy(bytes.begin(), bytes.end(), made_[0].bytes.begin());
          made_[0].ready = 1;
          if (then) then();
          for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
          return "";
        }) {
    while (made_[0].ready == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }

  /// Kills the process, and waits until it has ended.
  void kill() {
    process_.kill(0);
    siginfo_t ended;
    waitid(P_PID, id_t(process_.pid(0)), &ended, WEXITED | WNOWAIT);
  }

  const std::array<std::byte, Invitation::bytes>& bytes() const { return made_[0].bytes; }
  Invitation invitation() const { return *Invitation::decode(bytes()); }

  /// Returns the port on which the process listens.
  uint16_t port() const {
    uint16_t port = 0;
    std::memcpy(&port, bytes().data() + 86, sizeof port);
    return port;
  }

  /// Returns the secret of the greetings.
  std::string secret() const {
    std::string letters;
    for (int at = 8; at < 40; ++at) {
      for (const int digit : {int(bytes()[size_t(at)]) >> 4, int(bytes()[size_t(at)]) & 15})
        letters += "0123456789abcdef"[digit];
    }
    return letters;
  }

 private:
  struct Made {
    std::atomic<int> ready;
    std::array<std::byte, Invitation::bytes> bytes;
  };

  tools::Shared<Made> made_;
  Processes process_;
};

}  // namespace chorale::test
