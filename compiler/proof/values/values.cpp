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
      held_(memory_.cells(), Values::none),
      writer_(memory_.cells()) {}

void Holding::begin(uint32_t rank, uint32_t launch) {
  if (launch) return;
  const Range input = memory_.buffer(rank, BufferKind::input);
  for_each_cell(input, [&](uint32_t cell, uint64_t at) {
    held_[cell] = values_.origin({rank, at - input.begin});
  });
}

void Holding::compare(Flow* flow) {
  flow_ = flow;
  for (uint32_t rank = 0; rank < executor_.plan().ranks(); ++rank) compare(rank);
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
    }
  }
  made_.clear();
}

/// Compares the output of a rank with what it should hold.
void Holding::compare(uint32_t rank) {
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
    wrong_ += !right;
    if (right)
      compare_operator(rank, cell, value);
    else
      say(rank, cell, promise_.origins(rank, at - output.begin, sender), value);
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
  if (op == op_ || flow_ || !findings_.wanted(ProofName::values)) return;
  add(rank, cell, place(writer_[cell]),
      name_of_output(rank, cell) + " is made with the operator " + reduce_op_name(*op) + ", but " +
          name_of_output(op_rank_, op_cell_) + " with " + reduce_op_name(*op_));
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

void Holding::say(uint32_t rank, uint32_t cell, const std::vector<Origin>& expected, uint32_t value) {
  if (!findings_.wanted(ProofName::values)) return;
  // For each rank, one unwritten part of the output stands for all.
  if (writer_[cell].chain == nobody && std::exchange(left_out_, rank) == rank) return;
  const Range range = memory_.range_of(cell);
  const bool written = writer_[cell].chain != nobody;
  std::vector<Origin> unreachable;
  if (flow_ && written) {
    // Which rank sends may depend on the order.
    if (promise_.of_some_sender() || values_.mixed(value)) return;
    unreachable = flow_->unreachable(cell, expected);
    if (unreachable.empty()) return;
  }
  std::string text = name_of_output(rank, cell), hint = "this comes nearest to it";
  std::optional<OpPlace> at = written ? place(writer_[cell]) : nearest(rank, cell);
  const uint32_t elsewhere = written ? nobody : holder(rank, expected);
  if (elsewhere != nobody) {
    at = place(writer_[elsewhere]);
    hint = "this writes what belongs there to " + name(elsewhere);
    if (memory_.range_of(elsewhere).space % spaces_per_rank >= uint32_t(BufferKind::scratch))
      hint += ", and nothing copies it from there to the output";
  }
  if (!unreachable.empty())
    text +=
        " never gets " + names(unreachable, range.end - range.begin) + ", whatever the order of operations";
  else if (!written)
    text += " is never written" + (at ? ": " + hint : "");
  else if (values_.mixed(value))
    text += " is made with several reduction operators";
  else
    text += " does not hold what it should: " +
            difference(expected, values_.origins(value), range.end - range.begin);
  Finding* const finding = add(rank, cell, at, text);
  if (!finding) return;
  if (unreachable.empty()) tell_swapped(finding->diagnostic, cell, value);
  const uint64_t length = range.end - range.begin;
  for (const Origin& of : expected) finding->expected.push_back({name(of, length)});
  if (!written) return;
  for (const auto& [of, times] : values_.origins(value)) finding->held.push_back({name(of, length), times});
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

/// Returns the operation that writes nearest to an output cell that nobody writes.
std::optional<OpPlace> Holding::nearest(uint32_t rank, uint32_t cell) const {
  const Range output = memory_.buffer(rank, BufferKind::output);
  const uint32_t first = memory_.cell(output, 0), n = memory_.count(output);
  for (uint32_t away = 1; away < n; ++away) {
    for (const uint32_t at : {cell - away, cell + away}) {
      if (at - first < n && writer_[at].chain != nobody) return place(writer_[at]);
    }
  }
  return {};
}

uint32_t Holding::holder(uint32_t rank, const std::vector<Origin>& expected) const {
  if (expected.empty()) return nobody;
  Sum sum = sum_of(expected[0]);
  for (size_t at = 1; at < expected.size(); ++at) sum = plus(sum, sum_of(expected[at]));
  for (uint32_t space = 0; space < spaces_per_rank; ++space) {
    const auto [first, cells] = memory_.cells_of(rank * spaces_per_rank + space, 0);
    for (uint32_t cell = first; cell < first + cells; ++cell) {
      if (writer_[cell].chain == nobody || values_.mixed(held_[cell])) continue;
      if (values_.sum(held_[cell]) == sum) return cell;
    }
  }
  return nobody;
}

/// Adds a finding at the line of an operation. If several ranks do this at one line, only one of them gets a
/// finding.
Finding* Holding::add(uint32_t rank, uint32_t cell, const std::optional<OpPlace>& at,
                      const std::string& text) {
  const bool written = writer_[cell].chain != nobody;
  const std::string words = written ? "" : "never";
  if (at ? !findings_.news(ProofName::values, *at, {}, words) : !findings_.news(ProofName::values, words))
    return nullptr;
  Finding& finding =
      findings_.add(ProofName::values, Finding::Kind::value, at, text, {},
                    at ? std::string() : path_of("gpus", rank, chunks_key(size_t(BufferKind::output))));
  ProofEvent& event = finding.events.emplace_back();
  event.who = written ? ProofEvent::Who::block : ProofEvent::Who::application;
  event.at = written ? *at : OpPlace{rank, 0, 0};
  event.accesses = event.writes = true;
  event.buffer_rank = rank;
  event.buffer = BufferKind::output;
  const Range range = memory_.range_of(cell);
  const uint64_t chunk = memory_.message().chunk, first = memory_.buffer(rank, BufferKind::output).begin;
  event.begin = (range.begin - first) / chunk;
  event.end = (range.end - first + chunk - 1) / chunk;
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
