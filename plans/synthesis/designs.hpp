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
#include "rates.hpp"

namespace chorale::synthesis {

class Designer {
 public:
  /// Solves the linear program of the collective, which is a row of collectives.def.
  /// \param few      as for rates_of_trees()
  /// \param seconds  its time limit
  Designer(const Network&, const CollectiveInfo&, uint32_t root, bool few, uint64_t seed, double seconds);

  /// Returns whether the linear program was solved. Otherwise there are no designs.
  bool solved() const { return trees_ || paths_; }
  /// Returns the least time of a byte of the message in the searched class; 0 if it is not known.
  double ns_per_byte() const { return ns_per_byte_; }

  /// Returns how many connections carry anything; 0 if it was not solved.
  size_t connections_used() const;

  /// Returns numbers of chunks to try, each up to twice as large as the one before: those with which whole
  /// chunks come closest to the solution.
  std::vector<int64_t> chunk_counts() const;

  /// Returns a design with that many chunks, or none if no trees were found for it.
  std::optional<Design> design(int64_t chunks) const;

 private:
  std::optional<Design> of_trees(int64_t chunks) const;
  Design of_paths(int64_t chunks) const;
  int64_t whole(int64_t chunks) const;
  double worst_load(int64_t chunks) const;
  std::vector<int64_t> capacities(size_t stage, int64_t chunks, int64_t extra) const;

  const Network& network_;
  const CollectiveInfo& collective_;
  const uint32_t root_;
  std::vector<Way> stages_;
  std::optional<Rates> trees_;
  std::optional<AllToAllRates> paths_;
  double ns_per_byte_ = 0;
};

}  // namespace chorale::synthesis
