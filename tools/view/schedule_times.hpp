/// \file
/// Predicts when the steps of a host schedule run on a machine.
#pragma once

#include <functional>
#include <vector>

#include "chorale/machine.hpp"
#include "chorale/schedule/concrete.hpp"
#include "tools/view/picture.hpp"

namespace chorale::tools {

/// Describes how a schedule is to be predicted.
struct SchedulePrediction {
  const Machine* machine = nullptr;
  bool eager = false;  ///< the host enqueues the steps one by one; else they are a CUDA graph
  /// Returns the nanoseconds that a call or a launch takes once it runs; negative: unknown.
  std::function<double(const schedule::Step&)> time_of;
};

/// Predicts the times of a schedule's steps. A step begins after the one before it on its stream, and waits
/// for those that the picture says. Copies over links share each GPU's way out and way in, first come, first
/// served. A local copy, a fill, and a call or a launch of unknown time take as long as their bytes take
/// through the memory.
/// \param picture  has the rows of the schedule
/// \param made     after expand_movers()
/// \param steps    the step of each operation of the picture, by number
PictureTimes predict_schedule(const Picture& picture, const schedule::Concrete& made,
                              const std::vector<const schedule::Step*>& steps, const SchedulePrediction&);

}  // namespace chorale::tools
