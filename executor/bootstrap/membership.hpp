/// \file
/// A Membership says which rank is on which host. A rendezvous makes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hello.hpp"

namespace chorale::net {

struct Membership {
  std::string name;                     ///< the name under which ranks of one host meet
  std::vector<uint32_t> hosts;          ///< by rank; numbered in the order of their lowest ranks
  std::vector<std::string> host_names;  ///< by host, for people

  /// Makes a membership of hellos, one a rank.
  static Membership of(std::string name, const std::vector<Hello>& ranks);
  /// Makes a membership with all ranks on one host.
  static Membership of_one_host(std::string name, int ranks);

  /// Returns the rank that speaks for a host.
  int lowest_rank(uint32_t host) const;

  std::string encode() const;
  /// Reads a membership. Returns none if `text` is no membership, or one with a host that has no name.
  static std::optional<Membership> decode(const std::string& text);
};

}  // namespace chorale::net
