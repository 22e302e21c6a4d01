// This file proves that every part of every output holds what the collective promises, or what a custom one's
// `post` promises, with each addend once. No two accesses race (races.cpp), so a read returns the last write
// before it in every execution. So one execution shows what all compute. A second number depends on the order
// of the addends. If it differs between outputs of the same value, their last bits may differ.
//
// A cell holds a sum of pseudo-random numbers, one per cell of the inputs, which is compared with the
// expected sum. A value remembers its parts, so that a wrong one can be explained addend by addend.
//
// This costs O(a) for the cells of all accesses.

#include "values.hpp"

#include <algorithm>
#include <utility>

namespace chorale::proof {
namespace {

/// Returns " twice", or a number such as " 3 times".
std::string times_words(uint64_t times) {
  if (times == 2) return " twice";
  return " " + count(times, "time") + (times == ~uint64_t{0} ? " or more" : "");
}

}  // namespace

Holding::Holding(const SymbolicExecutor& executor, Findings& findings, bool facts, const Excerpt* excerpt)
    : executor_(executor),
      memory_(executor.memory()),
      promise_(executor.plan(), memory_),
      findings_(findings),
      facts_(facts),
      excerpt_(excerpt),
      values_(facts),
      held_(memory_.cells(), Values::none),
      writer_(memory_.cells()) {}

/// Adds a finding at the line of an operation. If several ranks do this at one line, only one of them gets a
/// finding.
template <class Text>
Finding* Holding::add(uint32_t rank, uint32_t cell, const Culprit& by, Text&& text) {
  const bool written = is_written(cell);
  if (by.writer && !told_.emplace(by.writer->chain, by.writer->op, by.cell, written).second) return nullptr;
  const std::string words = written ? "" : "never";
  std::optional<ProofEvent> fault;
  if (by.writer) fault = event_of(*by.writer, by.cell);
  const std::string key = fault ? findings_.line_of(*fault) + " " + words : words;
  if (!findings_.news(ProofName::values, key)) return nullptr;
  Finding& finding = findings_.add(
      ProofName::values, Finding::Kind::value, fault ? std::optional(fault->at) : std::nullopt, text(), {},
      fault ? std::string() : path_of("gpus", rank, chunks_key(size_t(BufferKind::output))));
  finding.events.push_back(event_of(writer_[cell], cell));
  if (!fault || by.cell == cell) return &finding;
  finding.diagnostic.line = findings_.joined_line(*fault);
  if (by.at_fault) finding.events.push_back(*fault);
  return &finding;
}

void Holding::begin(uint32_t rank, uint32_t launch) {
  if (launch) return;
  const Range input = memory_.buffer(rank, BufferKind::input);
  for_each_cell(input, [&](uint32_t cell, uint64_t at) {
    held_[cell] = values_.origin({rank, at - input.begin});
  });
}

void Holding::keep_writes() {
  // Which place should hold what depends on the sender.
  if (!promise_.of_some_sender()) trail_.emplace(memory_, promise_, values_);
}

void Holding::compare(bool races) {
  for (uint32_t rank = 0; rank < executor_.plan().ranks(); ++rank) compare(rank, races);
}

void Holding::move(uint32_t chain, const SymbolicStep& step, std::span<const Touch> touches) {
  if (executor_.chains()[chain].launch) return;
  const std::span<const Touch> sources = touches.first(step.sources), dests = touches.subspan(step.sources);
  if (dests.empty() || sources.empty()) return;
  if (sources.size() == 1 && dests.size() == 1) note_swapped(chain, sources[0], dests[0]);
  for (uint32_t at = 0; at < dests[0].cells; ++at) {
    uint32_t value = read(sources[0].cell + at);
    for (size_t k = 1; step.combines && k < sources.size(); ++k)
      value = values_.combine(value, read(sources[k].cell + at), step.reduce_op);
    if (step.combines && sources.size() > 1) values_.round(value);
    made_.push_back(value);
  }
  for (const Touch& touch : dests) {
    for (uint32_t at = 0; at < touch.cells; ++at) {
      held_[touch.cell + at] = made_[at];
      writer_[touch.cell + at] = {chain, executor_.chains()[chain].op};
      if (trail_) {
        const uint32_t source = sources.size() == 1 ? sources[0].cell + at : Trail::none;
        trail_->add({touch.cell + at, source, made_[at], chain, executor_.chains()[chain].op});
      }
    }
  }
  made_.clear();
}

/// Compares the output of a rank with what it should hold.
void Holding::compare(uint32_t rank, bool races) {
  const Range output = memory_.buffer(rank, BufferKind::output);
  if (!promise_.any()) {
    other_order_ = "nothing is promised of the outputs";
    return;
  }
  if (output.begin == output.end) return;
  const uint32_t sender = promise_.of_some_sender() ? sender_of(output) : nobody;
  if (promise_.of_some_sender() && sender == nobody) return;
  for_each_cell(output, [&](uint32_t cell, uint64_t at) {
    const std::optional<Sum> expected = promise_.sum(rank, at - output.begin, sender);
    if (!expected) return;
    // Cells that nobody writes are compared, too, because they may be correct from the beginning.
    if (excerpt_ && excerpt_->leaves_out(rank, memory_.message(), memory_.range_of(cell))) return;
    const uint32_t value = read(cell);
    const bool right = !values_.mixed(value) && values_.sum(value) == *expected;
    if (!right) wrong_.push_back({rank, cell, sender, {}});
    if (right && !races) compare_operator(rank, cell, value);
    if (!facts_) return;
    compare_rounding(rank, cell, value);
    // The text of a wrong value may be longer than any memory. A few sums that add a sum to itself are enough
    // for that.
    if (right) compare_order(rank, cell, value, promise_.has_several_parts(rank, at - output.begin));
  });
}

/// Compares the operator of a value with the operator of the first output. One call has one operator, so
/// different operators are wrong across outputs, too.
void Holding::compare_operator(uint32_t rank, uint32_t cell, uint32_t value) {
  const std::optional<ReduceOp> op = values_.op(value);
  if (!op) return;
  if (!op_) {
    op_ = op;
    op_rank_ = rank;
    op_cell_ = cell;
  }
  if (op == op_ || !findings_.wanted(ProofName::values)) return;
  add(rank, cell, {writer_[cell], cell}, [&] {
    return name_of_output(rank, cell) + " is made with the operator " + reduce_op_name(*op) + ", but " +
           name_of_output(op_rank_, op_cell_) + " with " + reduce_op_name(*op_);
  });
}

void Holding::compare_rounding(uint32_t rank, uint32_t cell, uint32_t value) {
  const uint64_t tree = values_.tree(value);
  const auto [first, added] = added_.try_emplace(uint64_t(values_.sum(value)), Added{tree, rank, cell});
  if (added || first->second.tree == tree || rounding_.size() >= most_rounding) return;
  rounding_.push_back(name_of_output(rank, cell) + " is added up in another order than " +
                      name_of_output(first->second.rank, first->second.cell));
}

/// Compares the order of a value with that of the first output.
/// \param several_parts  true: the value adds up several parts of one rank's input
void Holding::compare_order(uint32_t rank, uint32_t cell, uint32_t value, bool several_parts) {
  if (!values_.combined(value)) return;
  if (!first_) first_ = {value, rank, cell};
  if (!other_order_.empty()) return;
  if (several_parts) {
    other_order_ = name_of_output(rank, cell) + " adds up several parts of one rank's input";
    return;
  }
  if (values_.order(value) == values_.order(first_->value)) return;
  other_order_ = name_of_output(rank, cell) + " is " + values_.order_words(value) + ", but " +
                 name_of_output(first_->rank, first_->cell) + " is " + values_.order_words(first_->value);
}

std::string Holding::order() const { return first_ ? values_.order_words(first_->value) : ""; }

uint32_t Holding::read(uint32_t cell) {
  if (held_[cell] == Values::none) held_[cell] = values_.origin({Origin::before, cell});
  return held_[cell];
}

bool Holding::is_unwritten(uint32_t cell) const {
  if (held_[cell] == Values::none) return true;
  const std::map<Origin, uint64_t> origins = values_.origins(held_[cell]);
  return origins.size() == 1 && origins.begin()->first.rank == Origin::before;
}

/// Remembers a copy that reads what nothing has written, and overwrites what holds data.
void Holding::note_swapped(uint32_t chain, const Touch& source, const Touch& dest) {
  const Chain& of = executor_.chains()[chain];
  if (executor_.plan().gpus[of.rank].threadblocks[of.block].ops[of.op].code != Opcode::copy) return;
  for (uint32_t at = 0; at < std::min(source.cells, dest.cells); ++at) {
    if (held_[source.cell + at] == Values::none && !is_unwritten(dest.cell + at))
      swapped_.try_emplace(source.cell + at, Writer{chain, of.op});
  }
}

void Holding::tell_swapped(Diagnostic& finding, uint32_t cell, uint32_t value) const {
  if (swapped_.empty()) return;
  const auto tell = [&](uint32_t read) {
    const auto found = swapped_.find(read);
    if (found == swapped_.end()) return false;
    const Writer& copy = found->second;
    finding.notes.push_back(
        {{},
         place(copy),
         "this copy reads " + name(read) + " before anything writes it, and overwrites data"});
    finding.help = "did you mean to swap the operands of that copy? The destination comes first";
    return true;
  };
  if (tell(cell)) return;
  for (const auto& [origin, times] : values_.origins(value)) {
    if (origin.rank == Origin::before && tell(uint32_t(origin.at))) return;
  }
}

uint32_t Holding::sender_of(const Range& output) {
  const uint32_t first = memory_.cell(output, 0);
  bool written = false;
  for (uint32_t cell = first; cell < first + memory_.count(output); ++cell)
    written |= writer_[cell].chain != nobody;
  for (const auto& [origin, times] : values_.origins(read(first))) {
    if (origin.rank != Origin::before) return origin.rank;
  }
  return written ? 0 : nobody;
}

// -- The words of findings

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
  const uint32_t kind = std::min<uint32_t>(range.space % spaces_per_rank, uint32_t(BufferKind::scratch));
  return name(BufferKind(kind), range.space / spaces_per_rank, range.begin, range.end);
}

std::string Holding::name_of_output(uint32_t rank, uint32_t cell) const {
  const Range range = memory_.range_of(cell), output = memory_.buffer(rank, BufferKind::output);
  return name(BufferKind::output, rank, range.begin - output.begin, range.end - output.begin);
}

std::vector<Origin> Holding::expected(const Wrong& of) const {
  const uint64_t begin = memory_.buffer(of.rank, BufferKind::output).begin;
  return promise_.origins(of.rank, memory_.range_of(of.cell).begin - begin, of.sender);
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
  bool any = false;
  std::vector<bool> left_out(executor_.plan().ranks());
  // An operation that only comes nearest to an output may well be right, so the others come first.
  for (const bool sure : {true, false}) {
    for (const Wrong& of : wrong_) {
      if (findings_.full(ProofName::values)) return;
      // For each rank, one unwritten part of the output stands for all.
      const bool written = is_written(of.cell);
      if (!written && left_out[of.rank]) continue;
      const std::optional<Culprit> culprit = culprit_of(of, trail);
      if ((culprit && culprit->sure()) != sure) continue;
      if (!written) left_out[of.rank] = true;
      Finding* const finding = say(of, culprit ? *culprit : nearest_to(of));
      if (!finding || any) continue;
      any = true;
      if (std::string all = count_wrong(); !all.empty())
        finding->diagnostic.notes.push_back({{}, {}, std::move(all)});
    }
  }
}

/// Returns the operation at fault for a wrong output, or nothing if it is not known.
std::optional<Holding::Culprit> Holding::culprit_of(const Wrong& of, Trail* trail) const {
  if (trail) {
    if (const auto found = trail->find(of.cell)) {
      const auto& [write, fault] = *found;
      return Culprit{Writer{write.chain, write.op}, write.cell, fault};
    }
  }
  if (is_written(of.cell)) return Culprit{writer_[of.cell], of.cell};
  return {};
}

/// Returns the operation that comes nearest to an output that nothing writes.
Holding::Culprit Holding::nearest_to(const Wrong& of) const {
  const uint32_t near = nearest(of.rank, of.cell);
  if (near == nobody) return {{}, nobody, {}, false};
  return {writer_[near], near, {}, false};
}

/// Says what an operation does, if it is not the last to write the output.
std::string Holding::words_of(const Wrong& of, const Culprit& culprit) const {
  if (!culprit.at_fault) return culprit.writer ? "this comes nearest to it" : "";
  if (!culprit.fault) return {};
  const std::string there = name(culprit.cell);
  switch (*culprit.fault) {
    case Trail::Fault::wrong:
      return culprit.cell == of.cell ? ""
                                     : "what is there instead comes from " + there + ", where this writes it";
    case Trail::Fault::mislaid:
    case Trail::Fault::strayed:
      return "this writes what belongs there to " + there;
    case Trail::Fault::unused:
      return "this writes what belongs there to " + there +
             ", and nothing copies it from there to the output";
    case Trail::Fault::repeated:
      return "this writes what belongs there to " + there + ", which holds it already";
  }
  return {};
}

std::string Holding::text_of(const Wrong& of, const std::vector<Origin>& expected,
                             const Culprit& culprit) const {
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
  if (const std::string words = words_of(of, culprit); !words.empty())
    text += (written ? "; " : ": ") + words;
  return text;
}

Finding* Holding::say(const Wrong& of, const Culprit& culprit) {
  std::vector<Origin> wanted;
  Finding* const finding = add(of.rank, of.cell, culprit, [&] {
    wanted = expected(of);
    return text_of(of, wanted, culprit);
  });
  if (!finding) return nullptr;
  const Range range = memory_.range_of(of.cell);
  const uint64_t length = range.end - range.begin;
  const uint32_t value = held_[of.cell];
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
