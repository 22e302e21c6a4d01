#include "chorale/profile.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "chorale/layout.hpp"
#include "op_kind.hpp"
#include "path.hpp"
#include "whole_launch.hpp"

namespace chorale {
namespace {

using namespace profile_of;

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
