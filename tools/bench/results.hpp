/// \file
/// Gathers the results of a benchmark over all ranks, and writes them in several forms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chorale/tuned_plans.hpp"
#include "tools/bench/machine.hpp"
#include "tools/bench/measure.hpp"

namespace chorale::tools {

/// Holds the result of one subject at one size in one mode.
struct Result {
  size_t subject = 0, size = 0;
  Mode mode = Mode::eager;
  bool done = false;  ///< true when the result is final
  bool finished = false, checked = false;
  bool failed = false;  ///< true if it failed for another reason than that it refused the size
  double us = 0;        ///< the slowest rank's time
  PacketForm packet = PacketForm::ll16;
  uint64_t wrong = 0;  ///< the wrong elements of all ranks
  std::string what;    ///< the first error in the result
  std::string note;    ///< why it did not finish
};

struct BenchResults {
  const BenchRequest* request = nullptr;
  Facts facts;
  std::vector<Result> all;
  bool complete = false;  ///< true if the run has ended; else these are the results so far

  const Result& at(size_t subject, size_t size, Mode mode) const {
    return all[(subject * request->sizes.size() + size) * 2 + size_t(mode)];
  }
  const Subject& subject(const Result& result) const { return request->subjects[result.subject]; }
  /// Returns the collectives, in the order of the subjects.
  std::vector<std::string> collectives() const;
  /// Returns the fastest plan with the right result. Returns null if there is none.
  /// \param rank_order  true: consider only plans that add up in the order of the ranks
  /// \param limit  the most thread blocks of plans; 0: any number
  const Result* best(const std::string& collective, bool in_place, size_t size, Mode mode,
                     bool rank_order = false, uint32_t limit = 0) const;
  /// Returns the plan that an application gets without a table, see Subject::is_default. Returns null if it
  /// was not timed, or was wrong.
  const Result* by_default(const std::string& collective, bool in_place, size_t size, Mode mode) const;
  /// Returns whether it is known which plans are defaults.
  bool knows_defaults() const;
  /// Returns the fastest peer with the right result. Returns null if there is none.
  const Result* best_peer(const std::string& collective, bool in_place, size_t size, Mode mode) const;
  /// Returns NCCL's result with at most so many thread blocks. Returns null if there is none.
  const Result* nccl_within(const std::string& collective, bool in_place, size_t size, Mode mode,
                            uint32_t limit) const;
  /// Returns the time of NCCL in its default mode, with the highest limit of thread blocks; 0 if it was not
  /// timed.
  double nccl_us(const std::string& collective, bool in_place, size_t size, Mode mode) const;
  /// Returns true if anything was timed for this case.
  bool any(const std::string& collective, bool in_place, Mode mode) const;
};

BenchResults gather(const BenchRequest&, const BenchReports&, Facts);

/// Holds GB/s as nccl-tests define them.
struct Bandwidth {
  double algorithm = 0, bus = 0;
};
Bandwidth bandwidth(const BenchResults&, const Result&);
/// Counts elements as nccl-tests do: the elements of the message, or of one part if the message has a part
/// for each rank.
uint64_t message_elements(const std::string& collective, uint64_t bytes, uint32_t ranks, DType dtype);
uint64_t elements(const BenchResults&, const Result&);
/// Returns the operator, "sum", or "none".
std::string redop(const BenchResults&, const Result&);
/// Returns the form of a plan's packets; nothing for plans without packets and for NCCL.
std::optional<PacketForm> packet(const BenchResults&, const Result&);
/// Returns "allreduce_packets, ll16": the plan, and the form of its packets if it has packets.
std::string plan_words(const BenchResults&, const Result&);
/// Returns the rank whose input is sent; -1 if there is none.
int root(const BenchResults&, const Result&);

/// Returns true if the result was requested and has a time or a reason.
bool says_something(const BenchResults&, const Result&);

/// Says why subjects were not timed: a sentence for each reason, with the sizes for which it holds.
std::vector<std::string> notes(const BenchResults&);

/// Returns microseconds with about four significant digits, as nccl-tests prints times.
std::string time_word(double us);
/// Returns the line of one result as it comes in.
std::string text_line(const BenchResults&, const Result&);

struct TableStyle {
  bool all = false;   ///< true: every plan, not only the best of each size
  bool times = true;  ///< false: only columns that are the same in every run
};
/// Returns a table with columns as nccl-tests prints them.
std::string text_table(const BenchResults&, const TableStyle&);
std::string csv(const BenchResults&);
std::string json(const BenchResults&);
/// Returns a page for docs/.
std::string markdown(const BenchResults&, const std::string& command);
/// Returns a table for the tuner: the best plan of each collective and size, and the best in rank order. If
/// only plans in rank order were timed (TunedFor::rank_order), the table has only those.
std::string tuned(const BenchResults&, const TunedFor&);

}  // namespace chorale::tools
