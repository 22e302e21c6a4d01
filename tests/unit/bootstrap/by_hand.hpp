/// \file
/// Lets a test act as peers of a rendezvous, byte by byte.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include "executor/bootstrap/frames.hpp"
#include "executor/bootstrap/greeting.hpp"
#include "executor/bootstrap/hello.hpp"
#include "tests/has.hpp"

namespace chorale::test {

/// \param from  an address of this machine from which the connection comes
inline int connected_socket(uint16_t port, const char* from = "127.0.0.1") {
  // This is far longer than any rank needs to start listening. A rank that cannot, for want of a name for
  // example, never will.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (std::chrono::steady_clock::now() < end) {
    const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{}, own{};
    address.sin_family = own.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    inet_pton(AF_INET, from, &own.sin_addr);
    if (bind(file, reinterpret_cast<sockaddr*>(&own), sizeof own) == 0 &&
        connect(file, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
      return file;
    close(file);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  throw std::runtime_error("nobody listens on port " + std::to_string(port));
}

inline void write_text(int file, std::string_view text) {
  ASSERT_EQ(send(file, text.data(), text.size(), MSG_NOSIGNAL), ssize_t(text.size()));
}

inline std::string read_some(int file) {
  char part[512];
  const ssize_t bytes = read(file, part, sizeof part);
  return std::string(part, bytes > 0 ? size_t(bytes) : 0);
}

/// Reads until `wanted` has come, or the other side closes.
/// \return everything that was read
inline std::string read_until(int file, std::string_view wanted, std::string heard = {}) {
  while (!has(heard, std::string(wanted))) {
    const std::string more = read_some(file);
    if (more.empty()) break;
    heard += more;
  }
  return heard;
}

/// Acts as one end of a greeting until it is over.
/// \return the bytes that came after it
inline std::string greet(int file, bootstrap::Greeting& greeting) {
  write_text(file, greeting.begin());
  while (greeting.state() == bootstrap::Greeting::State::open) {
    const std::string heard = read_some(file);
    if (heard.empty()) break;
    std::string_view bytes = heard;
    const std::string answer = greeting.take(bytes);
    write_text(file, answer);
    if (greeting.state() != bootstrap::Greeting::State::open) return std::string(bytes);
  }
  return {};
}

inline std::string frame(char kind, const std::string& text) {
  return bootstrap::encode(bootstrap::Frame{bootstrap::FrameKind(kind), text});
}

/// Returns a connection on which `rank` of `ranks` has greeted rank 0.
inline int greeted_socket(uint16_t port, int rank, int ranks, const std::string& secret = {}) {
  const int file = connected_socket(port);
  bootstrap::ClientsGreeting greeting(bootstrap::Secret::read(secret),
                                      {uint32_t(rank), uint32_t(ranks), port});
  greet(file, greeting);
  EXPECT_EQ(greeting.state(), bootstrap::Greeting::State::done);
  return file;
}

}  // namespace chorale::test
