// Every part of every output holds what the collective promises, or a custom one's `post`: each addend once.
// As no two accesses race (races.cpp), a read gives what was written last before it in every execution, so
// that one of them tells what all compute. The order of addends is not looked at.
//
// A cell holds a sum of pseudo-random numbers, one for each cell of the inputs, which is compared with the
// expected one; a value remembers what it was made of, so that a wrong one can be told addend by addend.
//
// Costs O(a) for the cells of all accesses.

#include <algorithm>
#include <set>

#include "chorale/compile.hpp"
#include "executions.hpp"
#include "promise.hpp"
#include "value.hpp"

namespace chorale {
namespace {

using namespace proof;

constexpr uint32_t nobody = ~uint32_t{0};

class Holding : public Observer {
 public:
  Holding(const Player& player, Report& report)
      : player_(player),
        memory_(player.memory()),
        promise_(player.plan(), memory_),
        report_(report),
        held_(memory_.cells(), Values::none),
        writer_(memory_.cells()) {}

  void begin(uint32_t rank, uint32_t) override {
    const Range input = memory_.buffer(rank, BufferKind::input);
    for_each_cell(input, [&](uint32_t cell, uint64_t at) {
      held_[cell] = values_.origin({rank, at - input.begin});
    });
  }

  void move(uint32_t chain, const Step& step, std::span<const Touch> touches) override {
    const std::span<const Touch> sources = touches.first(step.sources), dests = touches.subspan(step.sources);
    if (dests.empty() || sources.empty()) return;
    for (uint32_t at = 0; at < dests[0].cells; ++at) {
      uint32_t value = read(sources[0].cell + at);
      for (size_t k = 1; step.combines && k < sources.size(); ++k)
        value = values_.combine(value, read(sources[k].cell + at), step.reduce_op);
      made_.push_back(value);
    }
    for (const Touch& touch : dests) {
      for (uint32_t at = 0; at < touch.cells; ++at) {
        held_[touch.cell + at] = made_[at];
        writer_[touch.cell + at] = {chain, player_.chains()[chain].op};
      }
    }
    made_.clear();
  }

  /// Compares what a rank's output holds when all have ended.
  void compare(uint32_t rank) {
    const Range output = memory_.buffer(rank, BufferKind::output);
    if (!promise_.any() || output.begin == output.end) return;
    const uint32_t sender = promise_.of_some_sender() ? sender_of(output) : nobody;
    if (promise_.of_some_sender() && sender == nobody) return;
    for_each_cell(output, [&](uint32_t cell, uint64_t at) {
      const std::optional<Sum> expected = promise_.sum(rank, at - output.begin, sender);
      if (!expected) return;
      const uint32_t value = read(cell);
      if (values_.mixed(value) || values_.sum(value) != *expected)
        say(rank, cell, promise_.origins(rank, at - output.begin, sender), value);
    });
  }

  bool found() const { return !said_.empty(); }

 private:
  struct Writer {
    uint32_t chain = nobody, op = 0;
  };
  template <class Visit>
  void for_each_cell(const Range& range, Visit&& visit) const {
    if (range.begin == range.end) return;
    const uint32_t first = memory_.cell(range, 0);
    for (uint32_t at = first; at < first + memory_.count(range); ++at) visit(at, memory_.range_of(at).begin);
  }

  uint32_t read(uint32_t cell) {
    if (held_[cell] == Values::none) held_[cell] = values_.origin({Origin::before, cell});
    return held_[cell];
  }

  /// Whose input an output is, if it is anybody's as a whole; nobody: nothing was written there.
  uint32_t sender_of(const Range& output) {
    const uint32_t first = memory_.cell(output, 0);
    bool written = false;
    for (uint32_t cell = first; cell < first + memory_.count(output); ++cell)
      written |= writer_[cell].chain != nobody;
    for (const auto& [origin, times] : values_.origins(read(first))) {
      if (origin.rank != Origin::before) return origin.rank;
    }
    return written ? 0 : nobody;
  }

  // -- What is said

  /// "input[0:1] of rank 3"
  std::string name(BufferKind kind, uint64_t rank, uint64_t begin, uint64_t end) const {
    const uint64_t chunk = memory_.message().chunk;
    const std::string whole = end - begin < chunk ? "part of " : "";
    return whole + std::string(buffer_names[size_t(kind)]) + "[" + number(begin / chunk) + ":" +
           number((end + chunk - 1) / chunk) + "] of " + rank_name(rank);
  }

  std::string name(const Origin& of, uint64_t length) const {
    if (of.rank != Origin::before) return name(BufferKind::input, of.rank, of.at, of.at + length);
    const Range range = memory_.range_of(uint32_t(of.at));
    const uint32_t kind = std::min<uint32_t>(range.space % spaces_per_rank, uint32_t(BufferKind::scratch));
    return "what " + name(BufferKind(kind), range.space / spaces_per_rank, range.begin, range.end) +
           " held before the launch";
  }

  void say(uint32_t rank, uint32_t cell, const std::vector<Origin>& expected, uint32_t value) {
    const Range range = memory_.range_of(cell), output = memory_.buffer(rank, BufferKind::output);
    const uint64_t length = range.end - range.begin;
    std::string text = name(BufferKind::output, rank, range.begin - output.begin, range.end - output.begin);
    const Writer& writer = writer_[cell];
    if (writer.chain == nobody) {
      text += " is never written";
    } else if (values_.mixed(value)) {
      text += " is made with several reduction operators";
    } else {
      text += " does not hold what it should: " + difference(expected, values_.origins(value), length);
    }
    add(rank, writer, text);
  }

  /// "rank 3 twice, rank 5 missing"
  std::string difference(const std::vector<Origin>& expected, std::map<Origin, uint32_t> found,
                         uint64_t length) const {
    std::vector<std::string> parts;
    std::map<Origin, uint32_t> wanted;
    for (const Origin& of : expected) ++wanted[of];
    for (const auto& [of, times] : found) {
      const auto want = wanted.find(of);
      const uint32_t due = want == wanted.end() ? 0 : want->second;
      if (!due)
        parts.push_back("it has " + name(of, length) + ", which does not belong there");
      else if (times > due)
        parts.push_back("it has " + name(of, length) + (times == 2 ? " twice" : " " + count(times, "time")));
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

  void add(uint32_t rank, const Writer& writer, const std::string& text) {
    std::string key = "never, rank " + number(rank);
    std::optional<OpPlace> at;
    if (writer.chain != nobody) {
      const Chain& chain = player_.chains()[writer.chain];
      at = OpPlace{chain.rank, chain.block, writer.op};
      const Plan& plan = player_.plan();
      const SourceLine line = plan.line_of(plan.gpus[at->rank].threadblocks[at->threadblock].ops[at->op]);
      // Every rank does the same as a rule: one finding a line.
      key = line.line ? line.file + ":" + number(line.line)
                      : number(at->rank) + "." + number(at->threadblock) + "." + number(at->op);
    }
    if (said_.size() >= most || !said_.insert(key).second) return;
    report_.add(at, text, {},
                at ? std::string() : path_of("gpus", rank, chunks_key(size_t(BufferKind::output))));
  }

  static constexpr size_t most = 20, most_parts = 4;

  const Player& player_;
  const Memory& memory_;
  Promise promise_;
  Report& report_;
  Values values_;
  std::vector<uint32_t> held_;  // by cell
  std::vector<Writer> writer_;  // by cell
  std::vector<uint32_t> made_;
  std::set<std::string> said_;
};

}  // namespace

void pass::values(const Plan& plan, Diagnostics& out) {
  Report report("values", out);
  for_each_execution(plan, report, [&](Player& player, Choices& choices) {
    const Promise promise(plan, player.memory());
    if (!promise.impossible().empty()) {
      report.add({}, "no message can be cut as this plan's chunks say: " + promise.impossible());
      return false;
    }
    Holding holding(player, report);
    player.play(1, choices, holding);
    for (uint32_t rank = 0; rank < plan.ranks(); ++rank) holding.compare(rank);
    return !holding.found();
  });
}

}  // namespace chorale
