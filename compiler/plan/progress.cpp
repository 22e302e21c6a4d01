#include "progress.hpp"

#include <utility>

#include "chorale/progress.hpp"

namespace chorale {
namespace {

struct Watched {
  const std::function<void(double)>* told = nullptr;
  double begin = 0, end = 1;  ///< the part of the whole that is worked on
};
thread_local Watched watched;

}  // namespace

ProgressWatch::ProgressWatch(std::function<void(double share)> told)
    : told_(std::move(told)), outer_(watched.told), outer_begin_(watched.begin), outer_end_(watched.end) {
  watched = {&told_, 0, 1};
}

ProgressWatch::~ProgressWatch() { watched = {outer_, outer_begin_, outer_end_}; }

void tell_progress(double share) {
  if (watched.told) (*watched.told)(watched.begin + share * (watched.end - watched.begin));
}

ProgressPart::ProgressPart(double begin, double end) : outer_begin_(watched.begin), outer_end_(watched.end) {
  const double whole = outer_end_ - outer_begin_;
  watched.begin = outer_begin_ + begin * whole;
  watched.end = outer_begin_ + end * whole;
}

ProgressPart::~ProgressPart() {
  watched.begin = outer_begin_;
  watched.end = outer_end_;
}

}  // namespace chorale
