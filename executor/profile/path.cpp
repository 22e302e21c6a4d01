#include "path.hpp"

#include <algorithm>
#include <utility>

namespace chorale::profile_of {
namespace {

bool alike(const ProfileStretch& one, const ProfileStretch& other) {
  return one.place == other.place && one.rank == other.rank && one.block == other.block &&
         one.waited == other.waited && one.peers == other.peers;
}

}  // namespace

ProfilePlace place_of(const TraceSpan& span) { return {ProfilePlace::Kind::operation, span.name, span.line}; }

std::vector<ProfileStretch> Path::to(SpanPlace end, uint64_t start_ns) {
  stretches_.clear();
  here_ = end;
  now_ns_ = spans_.at(end).end_ns;
  while (here_.at != SpanPlace::none) go_back();
  begin(start_ns);
  for (ProfileStretch& stretch : stretches_) {
    stretch.from_ns -= start_ns;
    stretch.to_ns -= start_ns;
  }
  std::reverse(stretches_.begin(), stretches_.end());
  return std::move(stretches_);
}

/// Goes back through one span. Sets `here_` to no span after the first span of a block.
void Path::go_back() {
  const TraceSpan& span = spans_.at(here_);
  const Release release = waits_.of(here_);
  if (release.kind == Release::Kind::by_span && jump(release)) return;
  ProfileStretch stretch{place_of(span), here_.rank, here_.block};
  if (release.kind == Release::Kind::by_peers) {
    stretch.waited = ProfileStretch::Waited::for_peers;
    stretch.peers = release.peers;
    stretch.peers_line = release.peers_line;
  } else if (release.kind == Release::Kind::unknown) {
    stretch.waited = ProfileStretch::Waited::unknown;
  }
  add(std::move(stretch), span.begin_ns);
  here_.at = here_.at == 0 ? SpanPlace::none : here_.at - 1;
}

/// Goes to the span that released this one. Returns false if this one did not wait. The path ends for any
/// measured times, because each step, here or to the previous span of a block, leads to an operation that is
/// earlier in every execution of the plan. At a barrier it may lead to an operation that arrived later, but
/// from the last one to arrive it leads to none.
bool Path::jump(const Release& release) {
  const TraceSpan& span = spans_.at(here_);
  const uint64_t at_ns = std::min(release.at_ns, now_ns_);
  if (at_ns <= span.begin_ns) return false;
  ProfileStretch stretch{place_of(span), here_.rank, here_.block};
  stretch.waited = ProfileStretch::Waited::before;
  add(std::move(stretch), at_ns);
  here_ = release.by;
  return true;
}

/// Adds the stretches between the beginning of the launch and the first operation of the path.
void Path::begin(uint64_t start_ns) {
  using Kind = ProfilePlace::Kind;
  add({{Kind::block_begins, "", {}}, here_.rank, here_.block}, spans_.begin_of(here_.rank));
  add({{Kind::rank_begins, "", {}}, here_.rank, 0}, start_ns);
}

/// Adds a stretch from `from_ns` to the current time, and goes back to `from_ns`.
void Path::add(ProfileStretch stretch, uint64_t from_ns) {
  if (from_ns >= now_ns_) return;
  stretch.from_ns = from_ns;
  stretch.to_ns = now_ns_;
  now_ns_ = from_ns;
  if (!stretches_.empty() && alike(stretches_.back(), stretch)) {
    stretches_.back().from_ns = from_ns;
  } else {
    stretches_.push_back(std::move(stretch));
  }
}

}  // namespace chorale::profile_of
