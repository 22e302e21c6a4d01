#pragma once
/// \file
/// The network of a simulation has the links that transfers between ranks reserve.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "chorale/machine.hpp"
#include "chorale/plan.hpp"

namespace chorale::simulation {

/// Refuses a plan that cannot run on a topology.
/// \throws UsageError if the plan has more ranks than there are GPUs, or a channel between GPUs that are not
///   connected as the channel needs
void check_fits(const Plan&, const Topology&, const Routes&);

class Network {
 public:
  /// \param routes  those of the machine's topology; null: it has none, and each rank has a link out and a
  /// link
  ///   in with the machine's own rates
  Network(const Machine&, const Routes* routes, uint32_t ranks);

  /// Reserves the links from one rank to another for data. Returns the time at which all of them have carried
  /// the data.
  /// \param ns  the time that the machine's own link takes
  double carry(uint32_t from, uint32_t to, double now, double ns, double bytes);
  /// Reserves the links from one rank to another for a signal. Returns the time at which it is visible.
  double signal(uint32_t from, uint32_t to, double now);
  /// Returns the latency that the topology adds.
  double latency_ns(uint32_t from, uint32_t to) const;

  /// Returns how long the busiest of a rank's links out and of its links in were in use.
  std::pair<double, double> busy_ns(uint32_t rank) const;
  /// Returns how long each link was in use, by Topology::links. Without a topology it returns nothing.
  std::vector<double> busy_ns() const;

 private:
  static constexpr uint32_t nobody = ~uint32_t{0};

  /// Stands for one direction of a link.
  struct Link {
    double scale = 1;  // its times, relative to those of the machine's own links
    double latency_ns = 0;
    uint32_t from = nobody, to = nobody;  // ranks; nobody is a switch or a NIC
    double free_ns = 0, busy_ns = 0;
    uint32_t peer = nobody;  // of the GPU that has the link, in the last transfer
  };

  static double take(Link&, double now, double ns);
  /// Calls f for each link of a route.
  template <class F>
  void each(uint32_t from, uint32_t to, const F& f);

  const Machine& machine_;
  const Routes* const routes_;
  const uint32_t ranks_;
  std::vector<Link> links_;  // by Topology::links; without a topology by rank: those out, then those in
};

}  // namespace chorale::simulation
