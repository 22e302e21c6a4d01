#include "chorale/profile.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "chorale/layout.hpp"
#include "chorale/releases.hpp"
#include "launch_spans.hpp"

namespace chorale {

using namespace profile_of;

namespace {

/// Tells what a span waited for.
struct Release {
  enum class Kind : uint8_t {
    none,     ///< it did not wait
    by_span,  ///< it waited for `by`, until `at_ns`
    by_peers,
    unknown,
  };
  Kind kind = Kind::none;
  SpanPlace by;
  /// Holds the latest time at which its wait can have ended. If this is after the span began, it really
  /// waited.
  uint64_t at_ns = 0;
  std::vector<uint32_t> peers;
  std::optional<SourceLine> peers_line;
};

void add_peer(Release& release, uint32_t rank, const SourceLine& line) {
  if (release.peers.empty()) {
    release.peers_line = line;
  } else if (release.peers_line && *release.peers_line != line) {
    release.peers_line.reset();
  }
  const auto at = std::lower_bound(release.peers.begin(), release.peers.end(), rank);
  if (at == release.peers.end() || *at != rank) release.peers.insert(at, rank);
}

/// Finds which span released another one, and when.
class Waits {
 public:
  Waits(const Plan& plan, const LaunchSpans& spans, const AwaitedByOp& awaited, Clocks clocks)
      : plan_(plan), spans_(spans), awaited_(awaited), clocks_(clocks) {}

  Release of(const SpanPlace& place) const {
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

 private:
  /// Considers an operation that had to come first. Returns false if the time at which it came is not known.
  bool consider(const TraceSpan& waiting, const OpPlace& by, Release& release) const {
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

  const Plan& plan_;
  const LaunchSpans& spans_;
  const AwaitedByOp& awaited_;
  const Clocks clocks_;
};

bool alike(const ProfileStretch& one, const ProfileStretch& other) {
  return one.place == other.place && one.rank == other.rank && one.block == other.block &&
         one.waited == other.waited && one.peers == other.peers;
}

ProfilePlace place_of(const TraceSpan& span) { return {ProfilePlace::Kind::operation, span.name, span.line}; }

/// Finds the critical path of a launch. It goes back in time from the end. From an operation that waited it
/// goes to the operation that released it, otherwise to the previous operation of the thread block.
class Path {
 public:
  Path(const LaunchSpans& spans, const Waits& waits) : spans_(spans), waits_(waits) {}

  /// Returns the path from `start_ns` to `end`, in order of time. No two consecutive stretches are alike.
  std::vector<ProfileStretch> to(SpanPlace end, uint64_t start_ns) {
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

 private:
  /// Goes back through one span. Sets `here_` to no span after the first span of a block.
  void go_back() {
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
  /// measured times, because each step, here or to the previous span of a block, leads to an operation that
  /// is earlier in every execution of the plan. At a barrier it may lead to an operation that arrived later,
  /// but from the last one to arrive it leads to none.
  bool jump(const Release& release) {
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
  void begin(uint64_t start_ns) {
    using Kind = ProfilePlace::Kind;
    add({{Kind::block_begins, "", {}}, here_.rank, here_.block}, spans_.begin_of(here_.rank));
    add({{Kind::rank_begins, "", {}}, here_.rank, 0}, start_ns);
  }

  /// Adds a stretch from `from_ns` to the current time, and goes back to `from_ns`.
  void add(ProfileStretch stretch, uint64_t from_ns) {
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

  const LaunchSpans& spans_;
  const Waits& waits_;
  SpanPlace here_;
  uint64_t now_ns_ = 0;
  std::vector<ProfileStretch> stretches_;  // in reverse order
};

/// Adds up the lines of a profile.
class ProfiledLines {
 public:
  void add(const TraceSpan& span) {
    ProfileLine& line = of(place_of(span));
    const uint64_t ns = span.end_ns - span.begin_ns;
    if (line.spans++ == 0 || ns > line.longest_ns) {
      line.longest_ns = ns;
      line.rank = span.rank;
      line.block = span.block;
    }
    line.total_ns += ns;
  }

  void add(const ProfileStretch& stretch) {
    ProfileLine& line = of(stretch.place);
    const uint64_t ns = stretch.to_ns - stretch.from_ns;
    line.path_ns += ns;
    if (stretch.place.kind == ProfilePlace::Kind::operation) return;
    line.longest_ns = ns;  // there is at most one such stretch
    line.rank = stretch.rank;
    line.block = stretch.block;
  }

  std::vector<ProfileLine> sorted() const {
    std::vector<ProfileLine> list;
    for (const auto& [key, line] : lines_) list.push_back(line);
    std::stable_sort(list.begin(), list.end(), [](const ProfileLine& a, const ProfileLine& b) {
      return std::tuple(a.path_ns, a.total_ns) > std::tuple(b.path_ns, b.total_ns);
    });
    return list;
  }

 private:
  ProfileLine& of(const ProfilePlace& place) {
    ProfileLine& line = lines_[{place.line.file, place.line.line, place.name, place.kind}];
    line.place = place;
    return line;
  }

  std::map<std::tuple<std::string, uint32_t, std::string_view, ProfilePlace::Kind>, ProfileLine> lines_;
};

/// Adds the time of a span to the totals that it belongs to.
void count(ProfileTotals& totals, const OpInfo& op, const TraceSpan& span, const Release& release) {
  const uint64_t ns = span.end_ns - span.begin_ns;
  if (op.has(Role::Loop)) {
    totals.earlier_turns_ns += ns;
  } else if (!moves_data(op)) {
    (only_waits(op) ? totals.waiting_ns : totals.other_ns) += ns;
  } else if (release.kind == Release::Kind::by_peers || release.kind == Release::Kind::unknown) {
    totals.waiting_or_moving_ns += ns;
  } else {
    const uint64_t waited = release.at_ns > span.begin_ns ? release.at_ns - span.begin_ns : 0;
    totals.waiting_ns += waited;
    totals.moving_ns += ns - waited;
  }
}

}  // namespace

Profile profile(const Plan& plan, const Arguments& arguments, std::span<const TraceSpan> all, Clocks clocks) {
  const PacketForm form = arguments.packet.value_or(packet_form_by_size(plan, arguments.bytes));
  const Layout layout = layout_of(plan, arguments.bytes, arguments.dtype, form);
  Profile profile;
  const LaunchSpans spans(plan, all, arguments.bytes);
  profile.launch = spans.launch();
  if (profile.launch == 0) return profile;
  const AwaitedByOp awaited = list_awaited(plan, layout.chunk_bytes);
  const Waits waits(plan, spans, awaited, clocks);
  const WholeLaunch whole = whole_launch(spans, plan.ranks(), clocks);
  profile.rank = whole.last.rank;
  profile.launch_ns = whole.ns;
  profile.path = Path(spans, waits).to(whole.last, whole.start_ns);
  ProfiledLines lines;
  spans.each([&](const SpanPlace& place, const TraceSpan& span) {
    lines.add(span);
    const Op& op = plan.gpus[span.rank].threadblocks[span.block].ops[span.op];
    count(profile.totals, info(op.code), span, waits.of(place));
  });
  for (const ProfileStretch& stretch : profile.path) lines.add(stretch);
  profile.lines = lines.sorted();
  return profile;
}

}  // namespace chorale
