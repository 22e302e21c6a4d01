/// \file
/// Runs programs of the user that time other libraries, so that `chorale bench` compares plans with them too.
#pragma once

#include <string>

#include "tools/bench/measure.hpp"

namespace chorale::tools {

/// Names a program that times another library.
struct PeerProgram {
  std::string name;     ///< as tables show it
  std::string command;  ///< a command line of the shell
};

/// Reads "NAME=COMMAND".
/// \throws Failure command_wrong
PeerProgram peer_program(const std::string& word);

/// Runs the program of each subject that has one, once for each collective, and stores its times as those of
/// all ranks. See docs/benchmarks.md for what the programs are given and write. Call it before ranks start,
/// because the programs use the GPUs. A program that fails is a note of its subject and does not end the run.
/// \throws Failure interrupted, if the user interrupts a program
void run_peer_programs(const BenchRequest&, const BenchReports&);

}  // namespace chorale::tools
