/// \file
/// Declares the examinations of `chorale doctor`, and prints their rows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chorale/plan.hpp"
#include "chorale/schedule/concrete.hpp"
#include "chorale/types.hpp"
#include "tools/gpus.hpp"
#include "tools/schedules/launched.hpp"

namespace chorale::tools {

/// Prints a row for each examination, and remembers if one was bad.
class Examination {
 public:
  /// \param json  true: end() prints all rows, for programs; false: each is printed at once, for people
  explicit Examination(bool json = false) : json_(json) {}

  void pass(const std::string& what, const std::string& found) { row(Verdict::ok, what, found); }
  void note(const std::string& what, const std::string& found) { row(Verdict::note, what, found); }
  void fail(const std::string& what, const std::string& found, const std::string& remedy);
  /// Passes or fails.
  /// \param remedy  for a failure
  void judge(bool well, const std::string& what, const std::string& found, const std::string& remedy) {
    well ? pass(what, found) : fail(what, found, remedy);
  }
  void more(const std::string& text);  ///< adds a line below the last row
  /// Prints the rest, mainly the summary of whether all is well. Call it after the last row.
  void end() const;
  bool well() const { return well_; }

 private:
  enum class Verdict : uint8_t { ok, note, fail };
  struct Row {
    Verdict verdict;
    std::string what, found, remedy;
    std::vector<std::string> more;
  };

  void row(Verdict, const std::string& what, const std::string& found);

  const bool json_;
  bool well_ = true;
  std::vector<Row> rows_;  // only if json_
};

std::string mebibytes(uint64_t bytes);

/// Examines the compiler, the processor, the memory, and ranks as threads.
void examine_host(Examination&);
/// Examines the versions of the command's parts, and of the libraries that it can load.
void examine_versions(Examination&);
void examine_settings(Examination&);
void examine_gpus(Examination&, const GpusFound&);
/// Examines whether there is a GPU for each rank.
void compare_ranks(Examination&, const GpusFound&, uint32_t ranks);
/// Describes a plan, and examines whether this version has the features that it asks for.
void examine_requirements(Examination&, const Plan&);
/// Examines whether this machine has what a plan needs to run on the CPU, for one size of message.
void examine_plan_on_cpu(Examination&, const Plan&, uint64_t bytes, DType);
/// Examines the same for a host schedule, for a number of ranks and given parameters.
void examine_schedule_on_cpu(Examination&, const Plan&, const schedule::Concrete&);
/// Examines whether the GPUs here have what a plan needs, for one size of message.
void examine_plan(Examination&, const GpusFound&, const Plan&, uint64_t bytes, DType);
/// Examines the same for a host schedule, for a number of ranks and given parameters.
void examine_schedule(Examination&, const GpusFound&, const Plan&, const schedule::Concrete&,
                      const BlockPlans&);
/// Examines whether the GPUs here have that much free memory for a rank.
/// \param needed  the bytes in words
void compare_bytes(Examination&, const GpusFound&, const std::string& needed, uint64_t bytes,
                   const std::string& remedy);
/// Examines the needs of a launched plan for its longest message, in addition to the schedule's tensors.
void examine_launched(Examination&, const GpusFound&, const Plan&, uint64_t bytes, DType);

}  // namespace chorale::tools
