#include "network.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "chorale/usage_error.hpp"

namespace chorale::simulation {
namespace {

class Fit {
 public:
  Fit(const Plan& plan, const Topology& topology, const Routes& routes)
      : plan_(plan), topology_(topology), routes_(routes), gpus_(topology.gpus()) {}

  void check() const {
    if (plan_.ranks() > gpus_.size()) {
      throw UsageError(fmt::format(
          "plan '{}' has {} ranks, but topology '{}' has {} GPUs: take a plan for fewer ranks, or a "
          "larger topology",
          plan_.name, plan_.ranks(), topology_.name, gpus_.size()));
    }
    for (uint32_t rank = 0; rank < plan_.ranks(); ++rank) {
      for (const ChannelRecord& record : plan_.gpus[rank].channels) {
        for (const uint32_t peer : record.connected_to) check(record.type, rank, peer);
        for (const std::vector<uint32_t>& group : record.rank_groups)
          for (const uint32_t peer : group) check(record.type, rank, peer);
      }
    }
  }

 private:
  void check(ChannelType type, uint32_t rank, uint32_t peer) const {
    if (rank == peer) return;
    const TopologyNode &here = topology_.nodes[gpus_[rank]], &there = topology_.nodes[gpus_[peer]];
    const bool mapped = !has_proxy(type);  // threads load from and store to the peer's memory
    if (mapped && here.host != there.host) {
      refuse(type, rank, peer,
             fmt::format("{} and {} of topology '{}' are on different hosts: connect ranks of different "
                         "hosts by port channels",
                         here.name, there.name, topology_.name));
    }
    if (routes_.between(rank, peer).empty()) refuse_way(type, rank, peer, here, there);
    // Threads also load, and that data comes back.
    if (mapped && routes_.between(peer, rank).empty()) refuse_way(type, rank, peer, there, here);
  }

  [[noreturn]] void refuse_way(ChannelType type, uint32_t rank, uint32_t peer, const TopologyNode& from,
                               const TopologyNode& to) const {
    refuse(
        type, rank, peer,
        fmt::format("no route leads from {} to {} in topology '{}', where GPUs do not forward data: take a "
                    "plan whose channels follow the links",
                    from.name, to.name, topology_.name));
  }

  [[noreturn]] void refuse(ChannelType type, uint32_t rank, uint32_t peer, const std::string& why) const {
    throw UsageError(fmt::format("plan '{}' has a {} channel from rank {} to rank {}, but {}", plan_.name,
                                 channel_type_names[size_t(type)], rank, peer, why));
  }

  const Plan& plan_;
  const Topology& topology_;
  const Routes& routes_;
  const std::vector<uint32_t> gpus_;
};

}  // namespace

void check_fits(const Plan& plan, const Topology& topology, const Routes& routes) {
  Fit(plan, topology, routes).check();
}

Network::Network(const Machine& machine, const Routes* routes, uint32_t ranks)
    : machine_(machine), routes_(routes), ranks_(ranks) {
  if (!routes) {
    links_.resize(2 * size_t(ranks));
    for (uint32_t rank = 0; rank < ranks; ++rank) links_[rank].from = links_[ranks + rank].to = rank;
    return;
  }
  const Topology& topology = machine.topology;
  const std::vector<uint32_t> gpus = topology.gpus();
  std::vector<uint32_t> rank_of(topology.nodes.size(), nobody);
  for (uint32_t rank = 0; rank < ranks; ++rank) rank_of[gpus[rank]] = rank;
  for (const TopologyLink& link : topology.links) {
    links_.push_back(
        {machine.link_copy_engine_gb_s / link.gb_s, link.latency_ns, rank_of[link.from], rank_of[link.to]});
  }
}

double Network::take(Link& link, double now, double ns) {
  link.free_ns = std::max(link.free_ns, now) + ns * link.scale;
  link.busy_ns += ns * link.scale;
  return link.free_ns;
}

template <class F>
void Network::each(uint32_t from, uint32_t to, const F& f) {
  if (!routes_) {
    f(links_[from]);
    f(links_[ranks_ + to]);
    return;
  }
  for (const uint32_t link : routes_->between(from, to)) f(links_[link]);
}

double Network::carry(uint32_t from, uint32_t to, double now, double ns, double bytes) {
  const double turned = std::max(ns, bytes / machine_.link_mixed_gb_s);
  double end = now;
  each(from, to, [&](Link& link) {
    // Only a GPU turns from one peer to another. Links between switches carry the data of many pairs.
    const uint32_t peer = link.from == from ? to : link.to == to ? from : link.peer;
    end = std::max(end, take(link, now, link.peer == peer ? ns : turned));
    link.peer = peer;
  });
  return end;
}

double Network::signal(uint32_t from, uint32_t to, double now) {
  double end = now;
  each(from, to, [&](Link& link) { end = std::max(end, take(link, now, machine_.link_signal_ns)); });
  return machine_.signal_ns + end + latency_ns(from, to);
}

double Network::latency_ns(uint32_t from, uint32_t to) const {
  double sum = 0;
  if (routes_)
    for (const uint32_t link : routes_->between(from, to)) sum += links_[link].latency_ns;
  return sum;
}

std::pair<double, double> Network::busy_ns(uint32_t rank) const {
  double out = 0, in = 0;
  for (const Link& link : links_) {
    if (link.from == rank) out = std::max(out, link.busy_ns);
    if (link.to == rank) in = std::max(in, link.busy_ns);
  }
  return {out, in};
}

std::vector<double> Network::busy_ns() const {
  std::vector<double> all;
  if (routes_)
    for (const Link& link : links_) all.push_back(link.busy_ns);
  return all;
}

}  // namespace chorale::simulation
