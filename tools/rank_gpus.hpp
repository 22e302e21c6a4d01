/// \file
/// Looks for a GPU for every rank. A separate process does it, because one that has used CUDA cannot fork
/// ranks.
#pragma once

#include <string>
#include <vector>

namespace chorale::tools {

struct RankGpus {
  std::vector<std::string> names;  ///< by device number
  std::string driver;              ///< "CUDA 13.0, 580.65.06"
  std::string toolkit;             ///< "13.0": the toolkit with which this chorale was built
  std::string problem;             ///< why there are none; empty if there are
};

RankGpus find_rank_gpus();

/// Refuses ranks without a GPU each.
/// \param shared  several ranks may use one
/// \throws Failure saying both numbers
void need_gpus(const RankGpus&, unsigned ranks, bool shared);

}  // namespace chorale::tools
