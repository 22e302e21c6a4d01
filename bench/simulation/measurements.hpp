/// \file
/// Reads measured calls, and compares them with the simulator's predictions.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "chorale/simulate.hpp"

namespace chorale::bench {

/// Holds one line of a table of measurements.
struct Measurement {
  uint32_t ranks = 0;
  /// The shipped plan's name, without the number of ranks. "allreduce_*" is the fastest one that sends
  /// packets.
  std::string plan;
  PacketForm packet = PacketForm::ll16;
  uint64_t bytes = 0;
  bool eager = false;
  double us = 0;
  bool plain_barriers = false;  ///< the first barrier of the plan was not relaxed yet
  std::string code, from;

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

  /// Returns the predicted time of a measured call, of the fastest plan if it does not name one.
  double us(const Measurement& of, const Machine& machine);
  std::string path(const std::string& plan, uint32_t ranks) const;
  /// Returns the names of all plans that are shipped for a collective and keep the bits of its elements.
  std::vector<std::string> names(const std::string& collective, uint32_t ranks) const;

 private:
  struct Known {
    Plan plan;
    std::unique_ptr<Simulator> simulator;
  };
  Plan make(const Measurement& of) const;
  double us_of_plan(const Measurement& of, const Machine& machine);

  std::string folder_;
  std::map<std::tuple<std::string, uint32_t, bool>, Known> known_;
};

/// Adjusts the machine's parameters so that the predictions fit the measurements that are not held out.
/// \param fitted  keys of the parameters that it changes
/// \param starts  from how many machines it begins
Machine fit(const Machine&, const std::vector<Measurement>&, Plans&, const std::vector<std::string>& fitted,
            int starts);

}  // namespace chorale::bench
