#pragma once
// These make networks for the tests of the synthesiser.

#include <memory>
#include <utility>

#include "chorale/machine.hpp"
#include "chorale/topology.hpp"
#include "plans/synthesis/network.hpp"

namespace chorale::test {

inline Machine h200() { return load_machine(CHORALE_MACHINES "/nvidia_h200.json"); }

/// Holds a topology and its network.
struct Made {
  explicit Made(Topology made)
      : topology(std::move(made)), network(synthesis::network_of(topology, h200())) {}
  const Topology topology;
  const std::unique_ptr<synthesis::Network> network;
};

}  // namespace chorale::test
