/// \file
/// An address is "tcp://host:port".
#pragma once

#include <cstdint>
#include <string>

namespace chorale::net {

struct Address {
  std::string host;  ///< a name or a literal, without the brackets of IPv6
  uint16_t port = 0;

  std::string text() const;  ///< "tcp://host:port", as parse_address() takes it
};

/// Reads an address.
/// \throws UsageError if `text` is no "tcp://host:port" with a port from 1 to 65535
Address parse_address(const std::string& text);

/// Reads a port.
/// \param what  says whose value it is
/// \throws UsageError if `text` is no port
uint16_t parse_port(const std::string& text, const std::string& what);

}  // namespace chorale::net
