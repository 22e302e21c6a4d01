#pragma once
/// \file
/// A Holding tracks what each cell holds during an execution, and checks the outputs at the end.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/proof/excerpts/copies.hpp"
#include "compiler/proof/execution/findings.hpp"
#include "compiler/proof/execution/symbolic_executor.hpp"
#include "flow.hpp"
#include "promise.hpp"
#include "trail.hpp"
#include "value.hpp"

namespace chorale::proof {

/// Observes the first launch of an execution and ignores all later ones.
class Holding : public Observer {
 public:
  /// \param facts  whether the caller wants rounding(), order() and other_order()
  /// \param excerpt  the excerpt whose plan is executed, or null. Outputs that its left-out blocks write are
  ///   not compared.
  Holding(const SymbolicExecutor&, Findings&, bool facts, const Excerpt* excerpt = nullptr);

  void begin(uint32_t rank, uint32_t launch) override;
  void move(uint32_t chain, const SymbolicStep&, std::span<const Touch>) override;

  /// Keeps all writes from now on, for trail().
  void keep_writes();
  /// Returns the writes, which live as long as this object; null without keep_writes().
  Trail* trail() { return trail_ ? &*trail_ : nullptr; }

  /// Compares each output with the value that it should hold.
  /// \param races  whether accesses race. Then the operators are not compared, because they depend on the
  ///   order.
  void compare(bool races = false);

  /// Returns the number of cells of outputs that compare() has found wrong.
  uint64_t wrong() const { return wrong_.size(); }

  /// Reports the outputs that compare() has found wrong. It removes findings about races that have the same
  /// cause.
  /// \param flow  if given, because accesses race: reports only outputs that are wrong in whatever order the
  ///   operations take place
  /// \param trail  if given: the writes of the same execution, which show the operations at fault
  void tell(Flow* flow, Trail* trail);

  /// These four return members of ProofFacts.
  std::vector<std::string> rounding() const { return rounding_; }
  std::string order() const;
  std::string other_order() const { return other_order_; }
  const Quantised& quantised() const { return quantised_; }

 private:
  static constexpr uint32_t nobody = ~uint32_t{0};
  static constexpr size_t most_parts = 4, most_rounding = 4;

  struct Writer {
    uint32_t chain = nobody, op = 0;
  };
  /// Holds the first output with a value, and the order in which that value was added up.
  struct Added {
    uint64_t tree;
    uint32_t rank, cell;
  };

  template <class Visit>
  void for_each_cell(const Range& range, Visit&& visit) const {
    if (range.begin == range.end) return;
    const uint32_t first = memory_.cell(range, 0);
    for (uint32_t at = first; at < first + memory_.count(range); ++at) visit(at, memory_.range_of(at).begin);
  }

  uint32_t read(uint32_t cell);
  void check_codec(uint32_t chain, const Touch& source);
  bool is_unwritten(uint32_t cell) const;
  void note_swapped(uint32_t chain, const Touch& source, const Touch& dest);
  /// Describes a cell of an output that does not hold what it should.
  struct Wrong {
    uint32_t rank, cell;
    uint32_t sender;                  ///< see Promise
    std::vector<Origin> unreachable;  ///< with a Flow: what never gets there
  };
  /// Says which operation a finding about an output names.
  struct Culprit {
    std::optional<Writer> writer;  ///< nothing if it names none
    uint32_t cell = nobody;        ///< the cell that it writes
    std::optional<Trail::Blame> blame = {};
    /// Orders findings. Those that name an operation which certainly is at fault come first.
    enum class Rank : uint8_t {
      misplaces,  ///< it writes to a wrong place of the rank of the output
      writes,     ///< it writes or reads something wrong
      doubtful,   ///< it may well be right
    } rank = Rank::writes;
    bool at_fault = true;  ///< false: it is only named to show the place
  };

  void compare(uint32_t rank, bool races);
  void compare_operator(uint32_t rank, uint32_t cell, uint32_t value);
  OpPlace place(const Writer&) const;
  bool is_written(uint32_t cell) const { return writer_[cell].chain != nobody; }
  uint32_t nearest(uint32_t rank, uint32_t cell) const;
  std::vector<Origin> expected(const Wrong&) const;
  std::optional<Culprit> culprit_of(const Wrong&, Trail*) const;
  Culprit nearest_to(const Wrong&) const;
  std::string words_of_source(const Trail::Blame&, Trail&) const;
  std::string words_of(const Wrong&, const Culprit&, Trail*) const;
  void drop_races(const std::set<std::string>& lines, Trail&);
  /// Returns the event of a write of a cell. If nobody writes it, the event is the application's.
  ProofEvent event_of(const Writer&, uint32_t cell) const;
  ProofEvent event_of(const Culprit&) const;
  /// Adds a finding about an output. Returns null if the same finding is there already.
  /// \param by  the operation at fault, if any
  /// \param text  returns the text of the finding; it is called only if the finding is new
  Finding* add(uint32_t rank, uint32_t cell, const Culprit& by, const std::function<std::string()>& text);
  void compare_rounding(uint32_t rank, uint32_t cell, uint32_t value);
  void compare_order(uint32_t rank, uint32_t cell, uint32_t value, bool several_parts);
  uint32_t sender_of(const Range& output);

  std::string name(BufferKind, uint64_t rank, uint64_t begin, uint64_t end) const;
  std::string name(const Origin&, uint64_t length) const;
  std::string name(uint32_t cell) const;
  std::string name_of_output(uint32_t rank, uint32_t cell) const;
  bool reads_packets(const Trail::Blame&) const;
  Finding* say(const Wrong&, const Culprit&, Trail*);
  std::string text_of(const Wrong&, const std::vector<Origin>& expected, const Culprit&, Trail*) const;
  std::string count_wrong() const;
  std::string names(const std::vector<Origin>& list, uint64_t length) const;
  /// Says that a copy seems to have its operands the wrong way round, if that is why a cell has the value.
  void tell_swapped(Diagnostic&, uint32_t cell, uint32_t value) const;
  std::string difference(const std::vector<Origin>& expected, const std::map<Origin, uint64_t>& found,
                         uint64_t length) const;

  const SymbolicExecutor& executor_;
  const Memory& memory_;
  Promise promise_;
  Findings& findings_;
  const bool facts_;
  const Excerpt* const excerpt_;
  Values values_;
  std::vector<uint32_t> held_;  // by cell
  std::vector<uint8_t> codec_;  // by cell, as Operand::codec; empty: the plan has no codecs
  std::vector<Writer> writer_;  // by cell
  std::vector<uint32_t> made_, from_;
  /// Holds copies that read a cell before anything wrote it and overwrite data, by that cell.
  std::unordered_map<uint32_t, Writer> swapped_;
  std::vector<Wrong> wrong_;
  std::optional<Trail> trail_;
  /// These hold the operator of the first combined output, and the place of that output.
  std::optional<ReduceOp> op_;
  uint32_t op_rank_ = 0, op_cell_ = 0;
  std::unordered_map<uint64_t, Added> added_;  // by sum
  std::vector<std::string> rounding_;
  struct Ordered {
    uint32_t value, rank, cell;
  };
  std::optional<Ordered> first_;  ///< the first output that was added up
  std::string other_order_;
  Quantised quantised_{};
};

}  // namespace chorale::proof
