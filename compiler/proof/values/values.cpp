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

Holding::Holding(const SymbolicExecutor& executor, Findings& findings, bool facts, const Excerpt* excerpt)
    : executor_(executor),
      memory_(executor.memory()),
      promise_(executor.plan(), memory_),
      findings_(findings),
      facts_(facts),
      excerpt_(excerpt),
      values_(facts),
      held_(memory_.cells(), Values::none),
      codec_(executor.plan().extension.codecs.empty() ? 0 : memory_.cells()),
      writer_(memory_.cells()) {}

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
  if (!codec_.empty())
    for (const Touch& source : sources) check_codec(chain, source);
  for (uint32_t at = 0; at < dests[0].cells; ++at) {
    uint32_t value = read(sources[0].cell + at);
    for (size_t k = 1; step.combines && k < sources.size(); ++k)
      value = values_.combine(value, read(sources[k].cell + at), step.reduce_op);
    if (step.combines && sources.size() > 1) values_.round(value);
    made_.push_back(value);
  }
  const size_t first_write = trail_ ? trail_->writes().size() : 0;
  for (const Touch& touch : dests) {
    const uint8_t codec = touch.access->codec;
    const bool encodes = codec && (sources.size() > 1 || sources[0].access->codec != codec);
    for (uint32_t at = 0; at < touch.cells; ++at) {
      const uint32_t value =
          encodes ? values_.encode(made_[at], executor_.plan().extension.codecs[codec - 1]) : made_[at];
      held_[touch.cell + at] = value;
      if (!codec_.empty()) codec_[touch.cell + at] = codec;
      writer_[touch.cell + at] = {chain, executor_.chains()[chain].op};
      if (!trail_) continue;
      const Trail::Write write{touch.cell + at, value, chain, executor_.chains()[chain].op};
      if (&touch != &dests[0]) {
        trail_->add_again(write, first_write + at);
        continue;
      }
      from_.clear();
      for (const Touch& source : sources) from_.push_back(source.cell + at);
      trail_->add(write, from_);
    }
  }
  made_.clear();
}

/// Reports a read of data that was written in another form: encoded data as plain elements, or by another
/// codec.
void Holding::check_codec(uint32_t chain, const Touch& source) {
  const uint8_t wanted = source.access->codec;
  for (uint32_t cell = source.cell; cell < source.cell + source.cells; ++cell) {
    if (held_[cell] == Values::none || codec_[cell] == wanted) continue;
    if (!findings_.wanted(ProofName::values)) return;
    const Writer reader{chain, executor_.chains()[chain].op};
    const OpPlace at = place(reader);
    if (!findings_.news(ProofName::values, at, {}, "codec")) return;
    const auto form = [&](uint8_t codec) {
      if (!codec) return std::string("plain elements");
      const Codec& of = executor_.plan().extension.codecs[codec - 1];
      return std::string(codec_format_name(of.format)) + " in blocks of " + std::to_string(of.block);
    };
    Finding& finding = findings_.add(
        ProofName::values, Finding::Kind::value, at,
        "this reads " + name(cell) + " as " + form(wanted) + ", but it holds " + form(codec_[cell]),
        wanted ? "give the operand the codec by which the data was written, or none"
               : "give the operand the codec by which the data was written, so that it is decoded first");
    finding.events = {event_of(writer_[cell], cell), event_of(reader, cell)};
    finding.events.back().writes = false;
    if (is_written(cell))
      finding.diagnostic.notes.push_back({{}, place(writer_[cell]), "it is written here"});
    return;
  }
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
  const char* const how =
      codec_.empty() ? " is added up in another order than " : " is added up or encoded in another way than ";
  rounding_.push_back(name_of_output(rank, cell) + how +
                      name_of_output(first->second.rank, first->second.cell));
}

/// Compares the order of a value with that of the first output.
/// \param several_parts  true: the value adds up several parts of one rank's input
void Holding::compare_order(uint32_t rank, uint32_t cell, uint32_t value, bool several_parts) {
  quantised_ = most_of(quantised_, values_.quantised(value));
  if (values_.quantised(value) != Quantised{} && other_order_.empty())
    other_order_ = name_of_output(rank, cell) + " is encoded on its way";
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

}  // namespace chorale::proof
