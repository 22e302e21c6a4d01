#include "address.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string_view>
#include <system_error>

#include "chorale/error.hpp"

namespace chorale::bootstrap {

std::string Address::text() const {
  return host.find(':') == host.npos ? fmt::format("tcp://{}:{}", host, port)
                                     : fmt::format("tcp://[{}]:{}", host, port);
}

uint16_t parse_port(const std::string& text, const std::string& what) {
  unsigned port = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, port);
  if (error != std::errc() || stop != end || port == 0 || port > 65535) {
    throw UsageError(fmt::format("{}: '{}' is no port: a number from 1 to 65535", what, text));
  }
  return uint16_t(port);
}

Address parse_address(const std::string& text) {
  constexpr std::string_view tcp = "tcp://";
  const auto refuse = [&](const char* why) {
    return UsageError(fmt::format(
        "'{}' is no address: {}; it should be tcp://host:port or tcp://[IPv6 address]:port", text, why));
  };
  if (!text.starts_with(tcp)) throw refuse("it does not begin with tcp://");
  const std::string rest = text.substr(tcp.size());
  std::string host;
  size_t colon = 0;  // the position of the colon before the port
  if (rest.starts_with('[')) {
    const size_t close = rest.find(']');
    if (close == rest.npos) throw refuse("its '[' has no ']'");
    host = rest.substr(1, close - 1);
    colon = close + 1;
  } else {
    colon = std::min(rest.find(':'), rest.size());
    host = rest.substr(0, colon);
    if (rest.find(':', colon + 1) != rest.npos) throw refuse("an IPv6 address needs brackets");
  }
  if (host.empty()) throw refuse("it has no host");
  if (host.find('/') != host.npos) throw refuse("a host has no '/'");
  if (colon >= rest.size() || rest[colon] != ':') throw refuse("it has no port");
  return {host, parse_port(rest.substr(colon + 1), "'" + text + "'")};
}

}  // namespace chorale::bootstrap
