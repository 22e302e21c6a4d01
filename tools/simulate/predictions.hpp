/// \file
/// Predicts the times of plans on a machine, and writes them in several forms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chorale/simulate.hpp"
#include "tools/plans.hpp"

namespace chorale::tools {

/// Holds the prediction of one plan at one size.
struct Prediction {
  size_t plan = 0, size = 0;
  Simulation simulation;
  std::string refused;  ///< the reason why the plan does not take that size; empty if it does
};

struct Predictions {
  Machine machine;
  DType dtype = DType::f32;
  std::optional<PacketForm> packet;  ///< none: packet_form_by_size()
  bool eager = false;
  std::vector<NamedPlan> plans;
  std::vector<uint64_t> sizes;
  std::vector<Prediction> all;  ///< by size, then by plan

  /// Returns true if it is the fastest plan for the same collective, in place or not, at its size.
  /// \param of_collective  compare only with the shipped plans of a collective that was named
  bool fastest(const Prediction&, bool of_collective = false) const;
};

struct PredictionStyle {
  bool all = false;  ///< true: every shipped plan of a named collective, not only the fastest of each size
};

/// Returns a table with the columns of `chorale bench`. It has all plans that were named one by one.
std::string text_table(const Predictions&, const PredictionStyle&);
std::string csv(const Predictions&);
std::string json(const Predictions&);

}  // namespace chorale::tools
