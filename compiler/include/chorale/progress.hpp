#pragma once
/// \file
/// A ProgressWatch tells how much of a long check, proof or compilation is done.

#include <functional>

namespace chorale {

/// Reports the progress of check(), prove_plan() and compile() in this thread, as long as the object exists.
/// If there are several objects, only the newest reports.
///
///   const ProgressWatch watch([](double share) { std::cerr << int(share * 100) << " %\r"; });
///   compile(plan);
class ProgressWatch {
 public:
  /// \param told  is called with the share of the work that is done, from 0 to 1. It is called many times a
  /// second, so it must be quick
  explicit ProgressWatch(std::function<void(double share)> told);
  ~ProgressWatch();
  ProgressWatch(const ProgressWatch&) = delete;
  ProgressWatch& operator=(const ProgressWatch&) = delete;

 private:
  std::function<void(double)> told_;
  const std::function<void(double)>* outer_;
  double outer_begin_, outer_end_;
};

}  // namespace chorale
