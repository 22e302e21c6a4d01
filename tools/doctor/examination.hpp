/// \file
/// What `chorale doctor` prints, and the looks that it takes.
#pragma once

#include <cstdint>
#include <string>

#include "chorale/host/concrete.hpp"
#include "chorale/plan.hpp"
#include "chorale/types.hpp"
#include "tools/gpus.hpp"
#include "tools/schedules/launched.hpp"

namespace chorale::tools {

/// Prints one row a look, and remembers whether one was bad.
class Examination {
 public:
  void pass(const std::string& what, const std::string& found) { row("ok", what, found); }
  void note(const std::string& what, const std::string& found) { row("-", what, found); }
  void fail(const std::string& what, const std::string& found, const std::string& remedy);
  void more(const std::string& text);  ///< a line below the last row
  bool well() const { return well_; }

 private:
  static void row(const char* verdict, const std::string& what, const std::string& found);
  bool well_ = true;
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
