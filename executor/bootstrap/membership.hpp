/// \file
/// A membership tells which rank is on which host. A rendezvous makes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hello.hpp"

namespace chorale::bootstrap {

struct Membership {
  std::string name;                     ///< the name under which ranks of one host join
  std::vector<uint32_t> hosts;          ///< the host of each rank; hosts are numbered in the order of their
                                        ///< lowest ranks
  std::vector<std::string> host_names;  ///< by host, for messages
  bool one_process = false;             ///< all ranks are threads of one process, and get a local world

  /// Makes a membership from hellos, one per rank.
  static Membership of(std::string name, const std::vector<Hello>& ranks);
  /// Makes a membership with all ranks on one host.
  static Membership of_one_host(std::string name, int ranks);

  /// Returns the lowest rank of a host, which exchanges control messages for it.
  int lowest_rank(uint32_t host) const;

  std::string encode() const;
  /// Decodes a membership. Returns none if `text` is not a membership, or if a host has no name.
  static std::optional<Membership> decode(const std::string& text);
};

}  // namespace chorale::bootstrap
