// A mesh combines two transports. The domains of two ranks decide from which transport their link comes.

#include <fmt/format.h>

#include <algorithm>

#include "executor/world/collective_try.hpp"
#include "in_device_memory.hpp"
#include "rings.hpp"

namespace chorale {
namespace {

class Mesh final : public Transport {
 public:
  Mesh(uint64_t number, std::shared_ptr<Transport> intra, std::shared_ptr<Transport> inter, int domain)
      : Transport(intra->world(), number),
        intra_(std::move(intra)),
        inter_(std::move(inter)),
        domain_(domain),
        channels_(std::min(intra_->max_channels(), inter_->max_channels())) {
    for (int peer = 0; peer < world_size(); ++peer) {
      for (uint32_t channel = 0; channel < channels_; ++channel) {
        endpoints_.push_back(of(peer).endpoint(peer, channel));
        endpoints_.back().channels = channels_;
      }
    }
    if (space() == Space::device) {
      table_ = transport::device_copy(endpoints_.data(), endpoints_.size() * sizeof(Endpoint));
    }
  }

  uint64_t per_peer_bytes() const override { return channels_ * depth() * slot_bytes(); }
  uint32_t max_channels() const override { return channels_; }
  uint32_t depth() const override { return std::min(intra_->depth(), inter_->depth()); }
  uint64_t slot_bytes() const override { return intra_->slot_bytes(); }
  Space space() const override { return intra_->space(); }
  LinkKind link_kind(int peer) const override { return endpoint(peer, 0).kind; }

  Endpoint endpoint(int peer, uint32_t channel) const override {
    transport::check_place(*this, peer, channel);
    return endpoints_[size_t(peer) * channels_ + channel];
  }
  EndpointTable table() const override {
    const Endpoint* const endpoints = table_ ? static_cast<const Endpoint*>(table_.get()) : endpoints_.data();
    return transport::make_table(endpoints, endpoints_);
  }
  AbortWord* device_abort_word() const override { return intra_->device_abort_word(); }
  int device() const override { return intra_->device(); }

  void reset() override {
    for (Transport* const part : parts()) part->reset();
    set_mended();
  }

  std::vector<Proxied*> proxies() const override {
    std::vector<Proxied*> all;
    for (const Transport* const part : parts()) {
      const std::vector<Proxied*> more = part->proxies();
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  }

  std::vector<Transport*> parts() const override {
    if (intra_ == inter_) return {intra_.get()};
    return {intra_.get(), inter_.get()};
  }

 private:
  const Transport& of(int peer) const { return peer / domain_ == rank() / domain_ ? *intra_ : *inter_; }

  std::shared_ptr<Transport> intra_, inter_;
  const int domain_;
  const uint32_t channels_;
  std::vector<Endpoint> endpoints_;
  std::shared_ptr<const void> table_;  ///< the endpoints in GPU memory, for kernels
};

/// Describes the mesh that a rank makes.
struct Made {
  uint64_t number;        ///< as transport::offered_number() returns it
  uint64_t intra, inter;  ///< the numbers of the two transports
  int64_t domain;

  bool operator==(const Made& other) const {
    return intra == other.intra && inter == other.inter && domain == other.domain;
  }
  std::string text() const {
    return fmt::format("domains of {} ranks, transport {} within and {} between them", domain, intra, inter);
  }
};

}  // namespace

std::unique_ptr<Transport> mesh(std::shared_ptr<Transport> intra, std::shared_ptr<Transport> inter,
                                int local_domain_size) {
  if (!intra || !inter) {
    throw UsageError(fmt::format("a mesh needs two transports, but {} is null", intra ? "inter" : "intra"));
  }
  World& world = intra->world();
  const Made mine{transport::offered_number(world), intra->number(), inter->number(), local_domain_size};
  const auto all = world.allgather(world::bytes_of(mine));
  const Made first = world::read_as<Made>(all[0]);
  for (int rank = 1; rank < world.ranks(); ++rank) {
    const Made other = world::read_as<Made>(all[size_t(rank)]);
    if (first == other) continue;
    throw RunError(RunError::Reason::mismatch,
                   fmt::format("the ranks make different meshes: rank 0 {}; rank {} {}; transports are "
                               "numbered in the order in which they were made",
                               first.text(), rank, other.text()));
  }
  if (local_domain_size < 1) {
    throw UsageError(fmt::format("domains of {} ranks: a domain must have at least 1", local_domain_size));
  }
  if (intra->world_size() != inter->world_size() || intra->rank() != inter->rank()) {
    throw UsageError("a mesh of transports of two worlds");
  }
  if (intra->slot_bytes() != inter->slot_bytes() || intra->space() != inter->space()) {
    throw UsageError(fmt::format(
        "a mesh of transports with slots of {} and of {} bytes: give both the same per_peer_bytes, channels, "
        "depth and space",
        intra->slot_bytes(), inter->slot_bytes()));
  }
  std::unique_ptr<Mesh> made;
  // A mesh on GPUs needs memory, and the allocation may fail on one rank.
  world::collective_try(world, [&] {
    made = std::make_unique<Mesh>(first.number, std::move(intra), std::move(inter), local_domain_size);
  });
  return made;
}

}  // namespace chorale
