#include "host_copies.hpp"

#include <cstring>

namespace chorale::remote {

net::Payload HostCopies::copy_out(const char* from, size_t bytes) {
  net::Payload payload(bytes);
  std::memcpy(payload.data.get(), from, bytes);
  ++out_;
  return payload;
}

bool HostCopies::copy_in(char* to, const net::Payload& payload) {
  std::memcpy(to, payload.data.get(), payload.bytes);
  ++in_;
  return true;
}

}  // namespace chorale::remote
