#include "host_copies.hpp"

#include <algorithm>
#include <cstring>

#include "chorale/device/packet.hpp"

namespace chorale::remote {
namespace {

/// Copies packets of any form while the receiver may already read some of them. It writes the flag of an
/// LL128 line after the line's other words. Other forms have a flag in each word.
void copy_packets(char* to, const char* from, size_t bytes) {
  constexpr size_t flag_at = offsetof(LL128, flag);
  const auto copy_word = [&](size_t at, bool flag) {
    uint64_t word;
    std::memcpy(&word, from + at, sizeof word);
    uint64_t* const there = reinterpret_cast<uint64_t*>(to + at);
    if (flag) {
      store_release(there, word);
    } else {
      store_relaxed(there, word);
    }
  };
  const size_t in_line = reinterpret_cast<uintptr_t>(to) % sizeof(LL128);
  for (size_t at = 0; at < bytes;) {
    // This is the part of a line that this copy covers.
    const size_t begin = (in_line + at) % sizeof(LL128), end = std::min(bytes, at + sizeof(LL128) - begin);
    const size_t flag = at + flag_at - begin;
    const bool has_flag = begin <= flag_at && flag < end;
    for (size_t word = at; word < end; word += sizeof(uint64_t)) {
      if (!has_flag || word != flag) copy_word(word, false);
    }
    if (has_flag) copy_word(flag, true);
    at = end;
  }
}

}  // namespace

ucx::Payload HostCopies::copy_out(const char* from, size_t bytes) {
  ucx::Payload payload(bytes);
  std::memcpy(payload.data.get(), from, bytes);
  ++out_;
  return payload;
}

bool HostCopies::copy_in(char* to, const ucx::Payload& payload, bool packets) {
  if (packets) {
    copy_packets(to, reinterpret_cast<const char*>(payload.data.get()), payload.bytes);
  } else {
    std::memcpy(to, payload.data.get(), payload.bytes);
  }
  ++in_;
  return true;
}

}  // namespace chorale::remote
