/// \file
/// Writes results of a benchmark as they come in, so that an interrupted run keeps what it has measured.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/bench/results.hpp"

namespace chorale::tools {

class LiveResults {
 public:
  /// Names a file that is complete after every result.
  struct File {
    std::string path;
    std::function<std::string(const BenchResults&)> write;
    bool if_right = false;  ///< true: do not write it after wrong results, because others rely on it
  };

  /// \param lines  true if results go to standard error one by one
  LiveResults(const BenchRequest& request, const BenchReports& reports, Facts facts, std::vector<File> files,
              bool lines);

  /// Reports the results that have come in since the last call.
  void look() noexcept;

  /// Reports the last results. Call it when the run has ended.
  /// \throws Failure if a file could not be written
  const BenchResults& end(bool complete);

 private:
  void take();
  void show_progress();
  void write_files();

  const BenchRequest& request_;
  const BenchReports& reports_;
  const Facts facts_;
  const std::vector<File> files_;
  const bool lines_;
  std::vector<bool> seen_;
  size_t seen_before_ = 0;  ///< results that were there before the run
  Progress progress_;
  BenchResults results_;
  std::optional<Failure> failure_;
};

}  // namespace chorale::tools
