#include "tools/profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "chorale/comparison.hpp"
#include "chorale/simulate.hpp"
#include "chorale/write_error.hpp"
#include "tools/command.hpp"
#include "tools/comparison.hpp"
#include "tools/sent_spans.hpp"
#include "tools/words.hpp"

namespace chorale::tools {
namespace {

constexpr size_t most_lines = 20, most_stretches = 8;

std::string name_words(const ProfilePlace& place) {
  switch (place.kind) {
    case ProfilePlace::Kind::rank_begins:
      return "(before the rank began)";
    case ProfilePlace::Kind::block_begins:
      return "(before the block began)";
    default:
      return std::string(place.name);
  }
}

std::string who(uint32_t rank, uint32_t block, ProfilePlace::Kind kind) {
  if (kind == ProfilePlace::Kind::rank_begins) return fmt::format("rank {}", rank);
  return fmt::format("rank {}, block {}", rank, block);
}

std::string lines_text(const Profile& profile) {
  std::vector<std::vector<std::string>> rows = {
      {"path us", "path %", "spans", "total us", "longest us", "at", "line", "operation"}};
  for (const ProfileLine& line : profile.lines) {
    if (rows.size() > most_lines) break;
    const bool spans = line.place.kind == ProfilePlace::Kind::operation;
    const double share = profile.launch_ns ? 100.0 * double(line.path_ns) / double(profile.launch_ns) : 0;
    rows.push_back({fmt::format("{:.2f}", us(line.path_ns)), fmt::format("{:.1f}", share),
                    spans ? std::to_string(line.spans) : "-",
                    spans ? fmt::format("{:.2f}", us(line.total_ns)) : "-",
                    fmt::format("{:.2f}", us(line.longest_ns)), who(line.rank, line.block, line.place.kind),
                    line_words(line.place.line), name_words(line.place)});
  }
  std::string text = aligned(rows, 5);
  if (profile.lines.size() > most_lines)
    text += fmt::format("  and {} with less\n", count(profile.lines.size() - most_lines, "line"));
  return text;
}

std::string waited_words(const ProfileStretch& stretch) {
  switch (stretch.waited) {
    case ProfileStretch::Waited::for_peers: {
      std::vector<std::string> ranks;
      for (const uint32_t rank : stretch.peers) ranks.push_back(std::to_string(rank));
      std::string words = (ranks.size() == 1 ? "waiting for rank " : "waiting for ranks ") + join(ranks);
      if (stretch.peers_line && stretch.peers_line->line != 0)
        words += ", " + line_words(*stretch.peers_line);
      return words;
    }
    case ProfileStretch::Waited::before:
      return "after its release";
    case ProfileStretch::Waited::unknown:
      return "who released it is not known";
    default:
      return "";
  }
}

/// Lists the longest stretches of the critical path, in order of time.
std::string path_text(const Profile& profile) {
  std::vector<const ProfileStretch*> kept;
  for (const ProfileStretch& stretch : profile.path) kept.push_back(&stretch);
  std::stable_sort(kept.begin(), kept.end(), [](const ProfileStretch* a, const ProfileStretch* b) {
    return a->to_ns - a->from_ns > b->to_ns - b->from_ns;
  });
  if (kept.size() > most_stretches) kept.resize(most_stretches);
  std::sort(kept.begin(), kept.end(),
            [](const ProfileStretch* a, const ProfileStretch* b) { return a->from_ns < b->from_ns; });
  std::vector<std::vector<std::string>> rows = {{"us", "from", "to", "at", "line", "operation"}};
  for (const ProfileStretch* stretch : kept) {
    rows.push_back({fmt::format("{:.2f}", us(stretch->to_ns - stretch->from_ns)),
                    fmt::format("{:.2f}", us(stretch->from_ns)), fmt::format("{:.2f}", us(stretch->to_ns)),
                    who(stretch->rank, stretch->block, stretch->place.kind), line_words(stretch->place.line),
                    name_words(stretch->place), waited_words(*stretch)});
  }
  const std::string which =
      kept.size() == profile.path.size()
          ? "its stretches"
          : fmt::format("the {} longest of its {} stretches", kept.size(), profile.path.size());
  return "critical path, " + which + ":\n" + aligned(rows, 3);
}

std::string totals_text(const ProfileTotals& totals) {
  const auto share = [&](uint64_t ns, const char* what) {
    return fmt::format("{:.1f}% {}", totals.all_ns() ? 100.0 * double(ns) / double(totals.all_ns()) : 0,
                       what);
  };
  std::vector<std::string> shares = {share(totals.waiting_ns, "waiting"),
                                     share(totals.moving_ns, "moving data")};
  if (totals.waiting_or_moving_ns)
    shares.push_back(share(totals.waiting_or_moving_ns, "waiting for packets or moving them"));
  if (totals.earlier_turns_ns)
    shares.push_back(share(totals.earlier_turns_ns, "in turns of pipelines before the last"));
  shares.push_back(share(totals.other_ns, "else"));
  return fmt::format("all thread blocks, {:.2f} us: {}\n", us(totals.all_ns()), join(shares));
}

/// On rank 0, returns the spans of a plan that all ranks have traced. Returns nothing on other ranks.
std::vector<TraceSpan> gather(World& world, const Executor& executor, const Plan& plan) {
  const std::vector<SentSpan> mine = to_send(executor.trace());
  std::vector<TraceSpan> all;
  const auto sent = world.allgather(std::as_bytes(std::span(mine)));
  if (world.rank() != 0) return all;
  for (const std::vector<std::byte>& of : sent) add_sent(all, of, plan);
  return all;
}

}  // namespace

void profile_by(Config& config, bool wanted) {
  if (wanted) config.trace = std::max(config.trace.value, 1u);
}

std::string text_of(const Profile& profile, const Plan& plan, uint64_t bytes, Clocks clocks) {
  const std::string of = fmt::format("profile of {}, {} bytes", plan.name, format_bytes(bytes));
  if (profile.launch == 0) return of + ": nothing was traced\n";
  std::string text = fmt::format("{}, launch {}: {:.2f} us", of, profile.launch, us(profile.launch_ns));
  if (clocks == Clocks::per_rank) text += fmt::format(" on rank {}, which took longest", profile.rank);
  return text + "\n" + lines_text(profile) + path_text(profile) + totals_text(profile.totals);
}

Profiles::Profiles(std::optional<Machine> machine) : machine_(std::move(machine)), file_(std::tmpfile()) {
  if (!file_) {
    throw Failure(Exit::run_failed, std::string("there is no temporary file for the output of --profile: ") +
                                        std::strerror(errno));
  }
}

void Profiles::keep(const std::string& text) const {
  if (std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size() && std::fflush(file_.get()) == 0)
    return;
  throw RunError(RunError::Reason::resources,
                 "the output of --profile cannot be stored: " + write_error(errno));
}

void Profiles::add(World& world, const Executor& executor, const Config& config, const Plan& plan,
                   std::span<const ProfiledCall> calls) const {
  const Clocks clocks = config.backend.value == "cpu" ? Clocks::one : Clocks::per_rank;
  const std::vector<TraceSpan> spans = gather(world, executor, plan);
  std::optional<std::string> wrong;
  if (world.rank() == 0) {
    try {
      Simulator simulator(plan);
      for (ProfiledCall call : calls) {
        Arguments& arguments = call.arguments;
        if (!arguments.packet) arguments.packet = executor.packet_form(plan, arguments.bytes);
        const Profile found = profile(plan, arguments, spans, clocks);
        keep(text_of(found, plan, arguments.bytes, clocks));
        if (machine_ && found.launch != 0)
          keep(text_beside_prediction(plan, call, spans, clocks, simulator, *machine_));
      }
    } catch (const std::exception& error) {
      wrong = error.what();
    }
  }
  world.agree(wrong);
}

std::string Profiles::text() const {
  std::string text;
  char part[4096];
  std::rewind(file_.get());
  while (const size_t bytes = std::fread(part, 1, sizeof part, file_.get())) text.append(part, bytes);
  return text;
}

}  // namespace chorale::tools
