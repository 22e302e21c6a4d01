/// \file
/// What came of a benchmark, over all ranks, and its forms.
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

/// One subject at one size in one mode.
struct Result {
  size_t subject = 0, size = 0;
  Mode mode = Mode::eager;
  bool done = false;  ///< nothing more comes of it
  bool finished = false, checked = false;
  bool failed = false;  ///< broke, other than by refusing the size
  double us = 0;        ///< of the slowest rank
  uint64_t wrong = 0;   ///< elements, of all ranks
  std::string what;     ///< the first thing that was wrong
  std::string note;     ///< why it did not finish
};

struct BenchResults {
  const BenchRequest* request = nullptr;
  Facts facts;
  std::vector<Result> all;
  bool complete = false;  ///< the run has ended; else these are the results so far

  const Result& at(size_t subject, size_t size, Mode mode) const {
    return all[(subject * request->sizes.size() + size) * 2 + size_t(mode)];
  }
  const Subject& subject(const Result& result) const { return request->subjects[result.subject]; }
  /// The collectives, in the order of the subjects.
  std::vector<std::string> collectives() const;
  /// The fastest plan with the right result; null if there is none.
  /// \param rank_order  of those that add up in the order of the ranks
  const Result* best(const std::string& collective, bool in_place, size_t size, Mode mode,
                     bool rank_order = false) const;
  /// NCCL's time for it, 0 if there is none.
  double nccl_us(const std::string& collective, bool in_place, size_t size, Mode mode) const;
  /// True if anything was timed there.
  bool any(const std::string& collective, bool in_place, Mode mode) const;
};

BenchResults gather(const BenchRequest&, const BenchReports&, Facts);

/// GB/s as nccl-tests define them.
struct Bandwidth {
  double algorithm = 0, bus = 0;
};
Bandwidth bandwidth(const BenchResults&, const Result&);
/// Elements as nccl-tests count them: of the message, or where it is made of a part for each rank, of a part.
uint64_t message_elements(const std::string& collective, uint64_t bytes, uint32_t ranks, DType dtype);
uint64_t elements(const BenchResults&, const Result&);
/// "sum", or "none".
std::string redop(const BenchResults&, const Result&);
/// Of what a plan of packets sends; none for others, and NCCL.
std::optional<PacketForm> packet(const BenchResults&, const Result&);
/// "allreduce_packets, ll16": the plan, and the form of its packets if it has some.
std::string plan_words(const BenchResults&, const Result&);
/// The rank whose input is sent; -1 where there is none.
int root(const BenchResults&, const Result&);

/// Whether it was asked for and has a time or a reason.
bool says_something(const BenchResults&, const Result&);

/// Why something was not timed: a sentence for each reason, with the sizes that it holds for.
std::vector<std::string> notes(const BenchResults&);

/// Microseconds with four significant digits or so, as nccl-tests prints times.
std::string time_word(double us);
/// One result, as it comes in.
std::string text_line(const BenchResults&, const Result&);

struct TableStyle {
  bool all = false;   ///< every plan, not the best of each size only
  bool times = true;  ///< else what is the same in every run only
};
/// Columns as nccl-tests prints them.
std::string text_table(const BenchResults&, const TableStyle&);
std::string csv(const BenchResults&);
std::string json(const BenchResults&);
/// A page for docs/.
std::string markdown(const BenchResults&, const std::string& command);
/// A table of the tuner: the best plan of each collective and size, and the best in rank order; this alone if
/// that is all that was timed, TunedFor::rank_order.
std::string tuned(const BenchResults&, const TunedFor&);

}  // namespace chorale::tools
