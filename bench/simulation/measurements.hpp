/// \file
/// Measured calls, and what the simulator says of them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "chorale/simulate.hpp"

namespace chorale::bench {

/// One line of a table of measurements.
struct Measurement {
  uint32_t ranks = 0;
  std::string plan;  ///< as it is shipped, without the number of ranks
  PacketForm packet = PacketForm::ll16;
  uint64_t bytes = 0;
  bool eager = false;
  double us = 0;
  std::string from;

  /// Parameters are fitted to others.
  bool held_out() const;
};

/// \throws std::runtime_error with the line that cannot be read
std::vector<Measurement> read_measurements(const std::string& path);

/// Shipped plans, each read and played once.
class Plans {
 public:
  explicit Plans(std::string folder) : folder_(std::move(folder)) {}

  double us(uint32_t ranks, const std::string& plan, PacketForm, uint64_t bytes, bool eager, const Machine&);
  double us(const Measurement& of, const Machine& machine) {
    return us(of.ranks, of.plan, of.packet, of.bytes, of.eager, machine);
  }
  std::string path(const std::string& plan, uint32_t ranks) const;
  /// All that are shipped for a collective.
  std::vector<std::string> names(const std::string& collective, uint32_t ranks) const;

 private:
  struct Known {
    Plan plan;
    std::unique_ptr<Simulator> simulator;
  };
  std::string folder_;
  std::map<std::pair<std::string, uint32_t>, Known> known_;
};

/// Moves the machine's parameters, one after the other, until the measurements that are not held out are
/// predicted as well as can be: the mean of |log(predicted / measured)| is least.
Machine fit(Machine, const std::vector<Measurement>&, Plans&, const std::vector<std::string>& fixed);

}  // namespace chorale::bench
