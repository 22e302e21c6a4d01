#include "waits.hpp"

#include <algorithm>
#include <tuple>

namespace chorale::profile_of {
namespace {

void add_peer(Release& release, uint32_t rank, const SourceLine& line) {
  if (release.peers.empty()) {
    release.peers_line = line;
  } else if (release.peers_line && *release.peers_line != line) {
    release.peers_line.reset();
  }
  const auto at = std::lower_bound(release.peers.begin(), release.peers.end(), rank);
  if (at == release.peers.end() || *at != rank) release.peers.insert(at, rank);
}

}  // namespace

/// Considers an operation that had to come first. Returns false if the time at which it came is not known.
bool Waits::consider(const TraceSpan& waiting, const OpPlace& by, Release& release) const {
  const Op& op = plan_.gpus[by.rank].threadblocks[by.threadblock].ops[by.op];
  if (clocks_ == Clocks::per_rank && by.rank != waiting.rank) {
    add_peer(release, by.rank, plan_.line_of(op));
    return true;
  }
  const SpanPlace place = spans_.holder(by);
  if (place.at == SpanPlace::none) return false;
  const TraceSpan& span = spans_.at(place);
  if (span.begin_ns > waiting.end_ns) return false;
  // An operation that arrives at a barrier signals that at once. Others signal at the end of their span, or
  // shortly before.
  const bool arrives = info(op.code).has(Role::Arrive);
  const uint64_t at_ns = arrives ? span.begin_ns : std::min(span.end_ns, waiting.end_ns);
  const bool later =
      release.kind == Release::Kind::none ||
      std::tuple(at_ns, span.begin_ns) > std::tuple(release.at_ns, spans_.at(release.by).begin_ns);
  if (!later) return true;
  release.kind = Release::Kind::by_span;
  release.by = place;
  release.at_ns = at_ns;
  return true;
}

Release Waits::of(const SpanPlace& place) const {
  const TraceSpan& span = spans_.at(place);
  Release release;
  bool known = true;
  spans_.each_op(span, [&](const OpPlace& at) {
    const Awaited& awaited = awaited_[at.rank][at.threadblock][at.op];
    known &= awaited.known;
    for (const OpPlace& by : awaited.releases) known &= consider(span, by, release);
  });
  if (!known) {
    release.kind = Release::Kind::unknown;
  } else if (!release.peers.empty()) {
    release.kind = Release::Kind::by_peers;
  }
  return release;
}

}  // namespace chorale::profile_of
