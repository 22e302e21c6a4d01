#pragma once
/// \file
/// Long work calls this for its ProgressWatch.

namespace chorale {

/// Tells which share of the current part of the work is done, from 0 to 1. It is cheap if nobody watches.
void tell_progress(double share);

/// Makes the work of this thread count as the part from `begin` to `end` of the part around it, as long as
/// the object exists.
class ProgressPart {
 public:
  ProgressPart(double begin, double end);
  ~ProgressPart();
  ProgressPart(const ProgressPart&) = delete;
  ProgressPart& operator=(const ProgressPart&) = delete;

 private:
  double outer_begin_, outer_end_;
};

}  // namespace chorale
