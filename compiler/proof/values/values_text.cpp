// This file writes the texts of findings about wrong outputs. A finding names the operation at fault, which
// trail.cpp looks for. Usually every rank does the same, and one mistake makes many outputs wrong, so
// there is one finding for each line at fault.

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "values.hpp"

namespace chorale::proof {
namespace {

/// Returns " twice", or a number such as " 3 times".
std::string times_words(uint64_t times) {
  if (times == 2) return " twice";
  return " " + count(times, "time") + (times == ~uint64_t{0} ? " or more" : "");
}

}  // namespace

/// Returns the name of chunks, such as "input[0:1] of rank 3".
std::string Holding::name(BufferKind kind, uint64_t rank, uint64_t begin, uint64_t end) const {
  const uint64_t chunk = memory_.message().chunk;
  const std::string whole = end - begin < chunk ? "part of " : "";
  return whole + std::string(buffer_names[size_t(kind)]) + "[" + number(begin / chunk) + ":" +
         number((end + chunk - 1) / chunk) + "] of " + rank_name(rank);
}

std::string Holding::name(const Origin& of, uint64_t length) const {
  if (of.rank != Origin::before) return name(BufferKind::input, of.rank, of.at, of.at + length);
  return "what " + name(uint32_t(of.at)) + " held before the launch";
}

std::string Holding::name(uint32_t cell) const {
  const Range range = memory_.range_of(cell);
  const bool packets = range.space % spaces_per_rank == packet_space;
  const BufferKind kind = packets ? BufferKind::scratch : BufferKind(range.space % spaces_per_rank);
  return (packets ? "packets of " : "") + name(kind, range.space / spaces_per_rank, range.begin, range.end);
}

/// Returns whether an operation reads plain scratch to which another one has written packets.
bool Holding::reads_packets(const Trail::Blame& blame) const {
  if (blame.fault != Trail::Fault::misread) return false;
  const Range read = memory_.range_of(blame.read), right = memory_.range_of(blame.right->cell);
  return right.space % spaces_per_rank == packet_space && right.space != read.space &&
         right.space / spaces_per_rank == read.space / spaces_per_rank && right.begin == read.begin;
}

std::string Holding::name_of_output(uint32_t rank, uint32_t cell) const {
  const Range range = memory_.range_of(cell), output = memory_.buffer(rank, BufferKind::output);
  return name(BufferKind::output, rank, range.begin - output.begin, range.end - output.begin);
}

std::vector<Origin> Holding::expected(const Wrong& of) const {
  return promise_.origins(of.rank, *memory_.place_in_output(of.cell), of.sender);
}

// There may be as many wrong outputs as operations. So only those that are told take longer than O(log n).
void Holding::tell(Flow* flow, Trail* trail) {
  if (!findings_.wanted(ProofName::values)) return;
  if (flow) {
    std::erase_if(wrong_, [&](Wrong& of) {
      if (!is_written(of.cell)) return false;
      // Which rank sends may depend on the order.
      if (promise_.of_some_sender() || values_.mixed(held_[of.cell])) return true;
      of.unreachable = flow->unreachable(of.cell, expected(of));
      return of.unreachable.empty();
    });
  }
  struct Told {
    Culprit culprit;
    const Wrong* wrong;
  };
  std::vector<Told> all;
  std::vector<bool> left_out(executor_.plan().ranks());
  std::set<std::tuple<uint32_t, uint32_t, uint32_t, Culprit::Rank>> seen;  // chain, op, cell
  std::set<std::pair<std::string, Culprit::Rank>> known;                   // line
  for (const Wrong& of : wrong_) {
    std::optional<Culprit> culprit = culprit_of(of, trail);
    // For each rank, one unwritten part of the output stands for all whose writer is not known.
    if (!is_written(of.cell) && (!culprit || culprit->rank == Culprit::Rank::doubtful)) {
      if (left_out[of.rank]) continue;
      left_out[of.rank] = true;
    }
    if (!culprit) culprit = nearest_to(of);
    const Writer writer = culprit->writer.value_or(Writer{});
    if (!seen.emplace(writer.chain, writer.op, culprit->cell, culprit->rank).second) continue;
    const std::string line = culprit->writer ? findings_.line_of(event_of(*culprit)) : "";
    if (known.emplace(line, culprit->rank).second) all.push_back({*culprit, &of});
  }
  std::ranges::stable_sort(all, {}, [](const Told& of) { return of.culprit.rank; });
  std::set<std::string> lines, writes;
  bool any = false;
  for (const Told& of : all) {
    if (findings_.full(ProofName::values)) break;
    const std::string line = of.culprit.writer ? findings_.line_of(event_of(of.culprit)) : "";
    if (lines.contains(line)) continue;
    // The other outputs most likely are wrong because of what was found, and the first finding counts them.
    if (any && of.culprit.rank == Culprit::Rank::doubtful &&
        all.front().culprit.rank != Culprit::Rank::doubtful)
      break;
    const std::optional<Trail::Blame>& blame = of.culprit.blame;
    if (blame && blame->right &&
        lines.contains(findings_.line_of(place({blame->right->chain, blame->right->op}))))
      continue;
    Finding* const finding = say(*of.wrong, of.culprit, trail);
    if (!finding) continue;
    if (of.culprit.writer && of.culprit.rank != Culprit::Rank::doubtful) {
      lines.insert(line);
      writes.insert({line, findings_.line_of(event_of(*of.culprit.writer, of.culprit.cell))});
    }
    if (any) continue;
    any = true;
    if (std::string counted = count_wrong(); !counted.empty())
      finding->diagnostic.notes.push_back({{}, {}, std::move(counted)});
  }
  if (flow && trail) drop_races(writes, *trail);
}

/// Removes findings about races in which an operation at fault accesses what it should not, or another
/// operation reads what it wrote there.
/// \param lines  of operations at fault
void Holding::drop_races(const std::set<std::string>& lines, Trail& trail) {
  struct Accessed {
    OpPlace at;
    Range range;
    bool writes, at_fault;
  };
  const auto strays = [&](uint32_t at) {
    if (at == Trail::none) return false;
    const Trail::Write& write = trail.writes()[at];
    return trail.misses(write) &&
           lines.contains(findings_.line_of(event_of(Writer{write.chain, write.op}, write.cell)));
  };
  findings_.drop(ProofName::races, [&](const Finding& race) {
    std::vector<Accessed> accesses;
    for (const ProofEvent& event : race.events) {
      if (event.who == ProofEvent::Who::application) return false;
      const bool at_fault = lines.contains(findings_.line_of(event));
      if (!at_fault && event.writes) continue;
      Range range = memory_.buffer(event.buffer_rank, event.buffer);
      const uint64_t chunk = memory_.message().chunk;
      range.end = range.begin + event.end * chunk;
      range.begin += event.begin * chunk;
      accesses.push_back({event.at, range, event.writes, at_fault});
    }
    const auto inside = [&](uint32_t cell, const Range& range) {
      const Range of = memory_.range_of(cell);
      return of.space == range.space && range.begin <= of.begin && of.end <= range.end;
    };
    for (const Trail::Write& write : trail.writes()) {
      for (const Accessed& of : accesses) {
        if (place({write.chain, write.op}) != of.at) continue;
        if (of.writes && inside(write.cell, of.range) &&
            (trail.misses(write) || !memory_.in_output(write.cell)))
          return true;
        const bool misreads = of.at_fault && trail.misses(write);
        if (!of.writes && std::ranges::any_of(trail.sources_of(write), [&](const Trail::Source& source) {
              return inside(source.cell, of.range) && (misreads || strays(source.from));
            }))
          return true;
      }
    }
    return false;
  });
}

/// Says why a place that a wrong write reads is wrong, if that is known.
std::string Holding::words_of_source(const Trail::Blame& blame, Trail& trail) const {
  if (blame.read != Trail::none) return "this reads " + name(blame.read) + ", which nothing has written";
  const uint32_t source = trail.copied(blame.write);
  if (source == Trail::none || !trail.promised(source) || !trail.misses(blame.write)) return {};
  return "this reads " + name(source) + ", where something else belongs";
}

/// Returns the operation at fault for a wrong output, or nothing if it is not known.
std::optional<Holding::Culprit> Holding::culprit_of(const Wrong& of, Trail* trail) const {
  using Fault = Trail::Fault;
  using Rank = Culprit::Rank;
  const std::optional<Trail::Blame> blame = trail ? trail->find(of.cell) : std::nullopt;
  if (!blame) return is_written(of.cell) ? std::optional(Culprit{writer_[of.cell], of.cell}) : std::nullopt;
  const Trail::Write& write = blame->write;
  Culprit culprit{Writer{write.chain, write.op}, write.cell, blame};
  switch (blame->fault) {
    case Fault::wrong:
    case Fault::misread:
      if (!blame->sure) culprit.rank = Rank::doubtful;
      break;
    case Fault::mislaid:
    case Fault::misplaced:
    case Fault::unused:
      if (memory_.rank_of(write.cell) == of.rank) culprit.rank = Rank::misplaces;
      break;
    case Fault::strayed:
    case Fault::repeated:
      culprit.rank = Rank::doubtful;
      break;
  }
  return culprit;
}

/// Returns the operation that comes nearest to an output that nothing writes.
Holding::Culprit Holding::nearest_to(const Wrong& of) const {
  const uint32_t near = nearest(of.rank, of.cell);
  if (near == nobody) return {{}, nobody, {}, Culprit::Rank::doubtful, false};
  return {writer_[near], near, {}, Culprit::Rank::doubtful, false};
}

/// Says what an operation does, if it is not the last to write the output.
std::string Holding::words_of(const Wrong& of, const Culprit& culprit, Trail* trail) const {
  using Fault = Trail::Fault;
  if (!culprit.at_fault && culprit.writer) return "this comes nearest to it";
  if (!culprit.blame) return {};
  const Trail::Blame& blame = *culprit.blame;
  const std::string there = name(culprit.cell), belongs = "this writes what belongs there to " + there;
  switch (blame.fault) {
    case Fault::wrong: {
      const std::string read = words_of_source(blame, *trail);
      if (culprit.cell == of.cell) return read;
      return "what is there instead comes from " + there + ", where this writes it" +
             (read.empty() ? "" : "; " + read);
    }
    case Fault::misread:
      if (reads_packets(blame))
        return "this reads " + name(blame.read) +
               " as plain data, but what belongs there is in packets at that place";
      return "this reads " + name(blame.read) + ", but what belongs there is in " + name(blame.right->cell);
    case Fault::mislaid:
    case Fault::strayed:
      return belongs;
    case Fault::misplaced:
      return belongs + ", and not to " +
             (blame.one_of ? "one of the places from which it is read, such as " : "") + name(blame.read) +
             (blame.one_of ? "" : ", from which it is read");
    case Fault::unused:
      return belongs + ", and nothing copies it from there to the output";
    case Fault::repeated:
      return belongs + ", which holds it already";
  }
  return {};
}

std::string Holding::text_of(const Wrong& of, const std::vector<Origin>& expected, const Culprit& culprit,
                             Trail* trail) const {
  const Range range = memory_.range_of(of.cell);
  const uint64_t length = range.end - range.begin;
  const bool written = is_written(of.cell);
  const uint32_t value = held_[of.cell];
  std::string text = name_of_output(of.rank, of.cell);
  if (!of.unreachable.empty())
    text += " never gets " + names(of.unreachable, length) + ", whatever the order of operations";
  else if (!written)
    text += " is never written";
  else if (values_.mixed(value))
    text += " is made with several reduction operators";
  else
    text += " does not hold what it should: " + difference(expected, values_.origins(value), length);
  if (const std::string words = words_of(of, culprit, trail); !words.empty())
    text += (written ? "; " : ": ") + words;
  return text;
}

Finding* Holding::say(const Wrong& of, const Culprit& culprit, Trail* trail) {
  std::vector<Origin> wanted;
  Finding* const finding = add(of.rank, of.cell, culprit, [&] {
    wanted = expected(of);
    return text_of(of, wanted, culprit, trail);
  });
  if (!finding) return nullptr;
  const Range range = memory_.range_of(of.cell);
  const uint64_t length = range.end - range.begin;
  const uint32_t value = held_[of.cell];
  if (culprit.blame && culprit.blame->right) {
    const Trail::Write& right = *culprit.blame->right;
    finding->diagnostic.notes.push_back({{}, place({right.chain, right.op}), "it is written here"});
  }
  if (culprit.blame && reads_packets(*culprit.blame))
    finding->diagnostic.help =
        "read the packets: with unpack_packets() and not copy(), with combine_packets(), or with reduce() "
        "and "
        "packet = true";
  if (of.unreachable.empty()) tell_swapped(finding->diagnostic, of.cell, value);
  for (const Origin& origin : wanted) finding->expected.push_back({name(origin, length)});
  if (!is_written(of.cell)) return finding;
  for (const auto& [origin, times] : values_.origins(value))
    finding->held.push_back({name(origin, length), times});
  return finding;
}

/// Says how many chunks of which ranks are wrong. Returns an empty text if there is only one.
std::string Holding::count_wrong() const {
  using Chunks = std::vector<std::pair<uint32_t, uint64_t>>;  // in order of ranks and chunks, as wrong_ is
  Chunks unwritten, different;
  for (const Wrong& of : wrong_) {
    const Range range = memory_.range_of(of.cell);
    const uint64_t begin = memory_.buffer(of.rank, BufferKind::output).begin, chunk = memory_.message().chunk;
    Chunks& chunks = is_written(of.cell) ? different : unwritten;
    for (uint64_t at = (range.begin - begin) / chunk; at * chunk < range.end - begin; ++at) {
      if (chunks.empty() || chunks.back() != std::pair(of.rank, at)) chunks.emplace_back(of.rank, at);
    }
  }
  std::string text;
  if (unwritten.size() + different.size() < 2) return text;
  const auto list = [&](const Chunks& chunks, const std::string& what) {
    if (chunks.empty()) return;
    text += (text.empty() ? "" : "; ") + count(chunks.size(), "chunk") +
            (chunks.size() == 1 ? " is " : " are ") + what + ": ";
    size_t told = 0, parts = 0;
    for (auto next = chunks.begin(); next != chunks.end() && parts < most_parts; ++parts) {
      const auto [rank, first] = *next;
      uint64_t end = first;
      for (; next != chunks.end() && *next == std::pair(rank, end); ++next, ++told) ++end;
      const bool same_rank = next != chunks.end() && next->first == rank && parts + 1 < most_parts;
      text += (parts ? ", output[" : "output[") + number(first) + ":" + number(end) + "]" +
              (same_rank ? "" : " of " + rank_name(rank));
    }
    if (told < chunks.size()) text += " and " + number(chunks.size() - told) + " more";
  };
  list(unwritten, "never written");
  list(different, "wrong");
  return text;
}

/// Names parts of inputs, such as "input[0:1] of rank 3, input[0:1] of rank 4".
std::string Holding::names(const std::vector<Origin>& list, uint64_t length) const {
  std::string text;
  for (size_t at = 0; at < list.size() && at < most_parts; ++at)
    text += (at ? ", " : "") + name(list[at], length);
  if (list.size() > most_parts) text += " and " + number(list.size() - most_parts) + " more";
  return text;
}

OpPlace Holding::place(const Writer& writer) const {
  const Chain& chain = executor_.chains()[writer.chain];
  return {chain.rank, chain.block, writer.op};
}

/// Returns the written cell of an output that is nearest to one that nobody writes, or nobody.
uint32_t Holding::nearest(uint32_t rank, uint32_t cell) const {
  const Range output = memory_.buffer(rank, BufferKind::output);
  const uint32_t first = memory_.cell(output, 0), n = memory_.count(output);
  for (uint32_t away = 1; away < n; ++away) {
    for (const uint32_t at : {cell - away, cell + away}) {
      if (at - first < n && is_written(at)) return at;
    }
  }
  return nobody;
}

ProofEvent Holding::event_of(const Writer& writer, uint32_t cell) const {
  const Range range = memory_.range_of(cell);
  const uint32_t rank = memory_.rank_of(cell);
  const bool in_output = memory_.in_output(cell);
  const uint64_t chunk = memory_.message().chunk,
                 first = in_output ? memory_.buffer(rank, BufferKind::output).begin : 0;
  ProofEvent event;
  if (writer.chain == nobody) {
    event.who = ProofEvent::Who::application;
    event.at = {rank, 0, 0};
  } else {
    event.at = place(writer);
  }
  event.accesses = event.writes = true;
  event.buffer_rank = rank;
  event.buffer =
      in_output
          ? BufferKind::output
          : BufferKind(std::min<uint32_t>(range.space % spaces_per_rank, uint32_t(BufferKind::scratch)));
  event.begin = (range.begin - first) / chunk;
  event.end = (range.end - first + chunk - 1) / chunk;
  return event;
}

/// Returns the access at fault. If an operation reads a wrong place, this is the read.
ProofEvent Holding::event_of(const Culprit& culprit) const {
  const std::optional<Trail::Blame>& blame = culprit.blame;
  if (!blame || blame->read == Trail::none || blame->fault == Trail::Fault::misplaced)
    return event_of(*culprit.writer, culprit.cell);
  ProofEvent event = event_of(*culprit.writer, blame->read);
  event.writes = false;
  return event;
}

/// Adds a finding at the line of an operation. If several ranks do this at one line, only one of them gets a
/// finding.
Finding* Holding::add(uint32_t rank, uint32_t cell, const Culprit& by,
                      const std::function<std::string()>& text) {
  std::optional<ProofEvent> fault;
  if (by.writer) fault = event_of(*by.writer, by.cell);
  const std::optional<ProofEvent> named = fault ? std::optional(event_of(by)) : std::nullopt;
  if (!findings_.news(ProofName::values, named ? findings_.line_of(*named) : "")) return nullptr;
  Finding& finding = findings_.add(
      ProofName::values, Finding::Kind::value, fault ? std::optional(fault->at) : std::nullopt, text(), {},
      fault ? std::string() : path_of("gpus", rank, chunks_key(size_t(BufferKind::output))));
  finding.events.push_back(event_of(writer_[cell], cell));
  if (!fault) return &finding;
  if (by.cell != cell || !named->writes) finding.diagnostic.line = findings_.joined_line(*named);
  if (by.at_fault && by.cell != cell) finding.events.push_back(*fault);
  return &finding;
}

/// Returns the difference in words, such as "rank 3 twice, rank 5 missing".
std::string Holding::difference(const std::vector<Origin>& expected, const std::map<Origin, uint64_t>& found,
                                uint64_t length) const {
  std::vector<std::string> parts;
  std::map<Origin, uint64_t> wanted;
  for (const Origin& of : expected) ++wanted[of];
  for (const auto& [of, times] : found) {
    const auto want = wanted.find(of);
    const uint64_t due = want == wanted.end() ? 0 : want->second;
    if (!due)
      parts.push_back("it has " + name(of, length) + ", which does not belong there");
    else if (times > due)
      parts.push_back("it has " + name(of, length) + times_words(times));
  }
  for (const auto& [of, due] : wanted) {
    const auto has = found.find(of);
    if (has == found.end() || has->second < due) parts.push_back("it lacks " + name(of, length));
  }
  std::string text;
  for (size_t k = 0; k < parts.size() && k < most_parts; ++k) text += (k ? ", " : "") + parts[k];
  if (parts.size() > most_parts) text += ", and " + number(parts.size() - most_parts) + " more differences";
  return text;
}

}  // namespace chorale::proof
