/// \file
/// Reads measured calls, and compares them with the simulator's predictions.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "chorale/simulate.hpp"

namespace chorale::bench {

/// Holds one line of a table of measurements.
struct Measurement {
  uint32_t ranks = 0;
  std::string plan;  ///< the shipped plan's name, without the number of ranks
  PacketForm packet = PacketForm::ll16;
  uint64_t bytes = 0;
  bool eager = false;
  double us = 0;
  std::string from;

  /// Returns true if the fit of parameters does not use this measurement.
  bool held_out() const;
};

/// Reads a table of measurements.
/// \throws std::runtime_error that names a line that cannot be read
std::vector<Measurement> read_measurements(const std::string& path);

/// Holds shipped plans, each read and symbolically executed once.
class Plans {
 public:
  explicit Plans(std::string folder) : folder_(std::move(folder)) {}

  double us(uint32_t ranks, const std::string& plan, PacketForm, uint64_t bytes, bool eager, const Machine&);
  double us(const Measurement& of, const Machine& machine) {
    return us(of.ranks, of.plan, of.packet, of.bytes, of.eager, machine);
  }
  std::string path(const std::string& plan, uint32_t ranks) const;
  /// Returns the names of all plans that are shipped for a collective.
  std::vector<std::string> names(const std::string& collective, uint32_t ranks) const;

 private:
  struct Known {
    Plan plan;
    std::unique_ptr<Simulator> simulator;
  };
  std::string folder_;
  std::map<std::pair<std::string, uint32_t>, Known> known_;
};

/// Adjusts the machine's parameters, one after the other, so that the predictions fit the measurements that
/// are not held out as well as possible: the mean of |log(predicted / measured)| is least.
Machine fit(Machine, const std::vector<Measurement>&, Plans&, const std::vector<std::string>& fixed);

}  // namespace chorale::bench
