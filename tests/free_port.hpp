/// \file
/// Finds TCP ports on which ranks can connect.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <random>
#include <string>

namespace chorale::test {

/// Returns a socket bound to a port of 127.0.0.1, or -1 if the port is taken.
inline int bound_socket(uint16_t port) {
  const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
  setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(file, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return file;
  close(file);
  return -1;
}

/// Returns a port that is free now, outside the range from which the system assigns ports to connections.
inline uint16_t free_port() {
  static std::random_device random;
  for (;;) {
    const uint16_t port = uint16_t(10000 + random() % 20000);
    if (const int file = bound_socket(port); file >= 0) return close(file), port;
  }
}

inline std::string free_address() { return "tcp://127.0.0.1:" + std::to_string(free_port()); }

}  // namespace chorale::test
