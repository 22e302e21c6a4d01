/// \file
/// What `chorale doctor` prints, and the looks that it takes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chorale/host/concrete.hpp"
#include "chorale/plan.hpp"
#include "chorale/types.hpp"
#include "tools/gpus.hpp"
#include "tools/schedules/launched.hpp"

namespace chorale::tools {

/// One row a look, and whether one was bad.
class Examination {
 public:
  /// \param json  all rows are printed by end(), for programs; else each at once, for people
  explicit Examination(bool json = false) : json_(json) {}

  void pass(const std::string& what, const std::string& found) { row(Verdict::ok, what, found); }
  void note(const std::string& what, const std::string& found) { row(Verdict::note, what, found); }
  void fail(const std::string& what, const std::string& found, const std::string& remedy);
  void more(const std::string& text);  ///< a line below the last row
  /// Prints what is left to print, whether all is well above all. Behind the last row.
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
  std::vector<Row> rows_;  // of json_
};

std::string mebibytes(uint64_t bytes);

/// Compiler, processor, memory, and ranks as threads.
void examine_host(Examination&);
/// Of what the command is made of, and of what it can load.
void examine_versions(Examination&);
void examine_settings(Examination&);
void examine_gpus(Examination&, const GpusFound&);
/// A GPU for each rank?
void compare_ranks(Examination&, const GpusFound&, uint32_t ranks);
/// What a plan is, and whether this version has what it asks for.
void examine_requirements(Examination&, const Plan&);
/// What a plan needs of this machine to run on the CPU, for one size of message.
void examine_plan_on_cpu(Examination&, const Plan&, uint64_t bytes, DType);
/// The same of a host schedule, for a number of ranks and its parameters.
void examine_schedule_on_cpu(Examination&, const Plan&, const host::Concrete&);
/// What a plan needs of the GPUs here for one size of message.
void examine_plan(Examination&, const GpusFound&, const Plan&, uint64_t bytes, DType);
/// What a host schedule needs of them, for a number of ranks and its parameters.
void examine_schedule(Examination&, const GpusFound&, const Plan&, const host::Concrete&, const BlockPlans&);
/// What a launched plan needs beside the schedule's tensors, for its longest message.
void examine_launched(Examination&, const GpusFound&, const Plan&, uint64_t bytes, DType);

}  // namespace chorale::tools
