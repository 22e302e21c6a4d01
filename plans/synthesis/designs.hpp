#pragma once
/// \file
/// A Designer makes designs of one collective on one network.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bounds.hpp"
#include "chorale/collective.hpp"
#include "design.hpp"
#include "rails.hpp"

namespace chorale::synthesis {

/// Says how a Designer chooses how much each connection carries.
enum class Choice : uint8_t {
  rails,  ///< as rails.hpp says, without a linear program
  few,    ///< by a linear program that looks for few connections
  many,   ///< by a linear program
};

class Designer {
 public:
  /// Solves the linear program of the collective, which is a row of collectives.def. It is not solved for
  /// more than 32 ranks.
  /// \param seconds  its time limit
  Designer(const Network&, const CollectiveInfo&, uint32_t root, Choice, uint64_t seed, double seconds);

  /// Returns whether there are designs: a linear program was solved, or the network has rails.
  bool solved() const { return trees_ || paths_ || !over_rails_.empty(); }
  /// Returns the least time of a byte of the message in the searched class; 0 if it is not known.
  double ns_per_byte() const { return ns_per_byte_; }

  /// Returns the time of the busiest link for a byte of the message, if there are designs. None of them is
  /// faster.
  double least_ns_per_byte() const;

  /// Returns how many connections carry anything by the linear program; 0 if it was not solved.
  size_t connections_used() const;

  /// Returns numbers of chunks to try, each up to twice as large as the one before: those with which whole
  /// chunks come closest to the solution.
  std::vector<int64_t> chunk_counts() const;

  /// Returns a design with that many chunks, or none if no trees were found for it.
  std::optional<Design> design(int64_t chunks) const;

 private:
  std::optional<Design> of_trees(int64_t chunks) const;
  Design of_paths(int64_t chunks) const;
  std::vector<Tree> trees_of(size_t stage, int64_t chunks) const;
  int64_t whole(int64_t chunks) const;
  double worst_load(int64_t chunks) const;
  std::vector<int64_t> capacities(size_t stage, int64_t chunks, int64_t extra) const;

  const Network& network_;
  const CollectiveInfo& collective_;
  const uint32_t root_;
  std::vector<Way> stages_;
  std::vector<std::vector<Tree>> over_rails_;  ///< by stage, without numbers of chunks
  std::optional<Rates> trees_;
  std::optional<AllToAllRates> paths_;
  double ns_per_byte_ = 0;
};

}  // namespace chorale::synthesis
