/// \file
/// Checks that there is a GPU for every rank. A separate process does this, because a process that has used
/// CUDA cannot fork ranks.
#pragma once

#include <string>
#include <vector>

namespace chorale::tools {

struct RankGpus {
  std::vector<std::string> names;  ///< by device number
  std::string driver;              ///< "CUDA 13.0, 580.65.06"
  std::string toolkit;             ///< the toolkit that built this chorale: "13.0"
  std::string problem;             ///< the reason why there are no GPUs; empty if there are
};

RankGpus find_rank_gpus();

/// Refuses to run if there is no GPU for each rank.
/// \param shared  true if several ranks may use one GPU
/// \throws Failure that says both numbers
void need_gpus(const RankGpus&, unsigned ranks, bool shared);

}  // namespace chorale::tools
