/// \file
/// An Address is the address "tcp://host:port" of a rendezvous server.
#pragma once

#include <cstdint>
#include <string>

namespace chorale::bootstrap {

struct Address {
  std::string host;  ///< a name, or an IP address without the brackets of IPv6
  uint16_t port = 0;

  std::string text() const;  ///< "tcp://host:port", which parse_address() can read
};

/// Parses an address.
/// \throws UsageError if `text` is not "tcp://host:port" with a port from 1 to 65535
Address parse_address(const std::string& text);

/// Parses a port.
/// \param what  the name of the value in the error
/// \throws UsageError if `text` is not a port
uint16_t parse_port(const std::string& text, const std::string& what);

}  // namespace chorale::bootstrap
