/// \file
/// A CudaBinding is a plan bound to a message on one rank's GPU. It owns the images, scratch, signals and
/// counters.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chorale/window.hpp"
#include "executor/binding/backend.hpp"
#include "executor/cuda/device/device_memory.hpp"
#include "executor/cuda/device/host_words.hpp"
#include "executor/cuda/device/monitor.hpp"
#include "executor/cuda/memory/peer_memory.hpp"
#include "executor/cuda/memory/pool.hpp"
#include "executor/cuda/memory/registry.hpp"
#include "executor/cuda/multicast/multicast.hpp"
#include "executor/cuda/multicast/multicast_plan.hpp"
#include "executor/lowering/bind.hpp"
#include "executor/lowering/placement.hpp"
#include "graph_holds.hpp"
#include "launcher.hpp"

namespace chorale::cuda {

class CudaBinding final : public chorale::Binding, public Watched {
 public:
  /// Binds a plan. Collective.
  /// \param use  scratch_use() of the plan
  /// \throws UsageError on all ranks for a plan that one of them cannot run
  CudaBinding(const Common& common, const Plan& plan, const std::vector<ScratchUse>& use, const Call& call,
              const Arguments& arguments);
  ~CudaBinding() override;

  /// Returns scratch() before it is known whether buffers need staging that peers reach.
  /// \throws UsageError as layout_of() does
  static uint64_t scratch_of(const Plan& plan, const std::vector<ScratchUse>& use, const Call& call);
  uint64_t scratch() const override;

  bool serves(const Arguments& arguments) override;
  void prepare(const Arguments& arguments, void* stream) override;
  void run(const Plan& plan, void* stream) override;

  std::string_view why_copied() const override { return why_copied_; }
  bool peers_map() const override { return peers_map_; }

  void hold(void* stream) override;
  bool held() const override { return graphs_.any(); }

  void add_trace(std::vector<TraceSpan>& spans) override;

  Stop stopped(std::string& report) const override { return launcher_->stopped(report); }

 private:
  /// Holds the caller's buffers, distinguished from other memory at the same addresses.
  struct Passed {
    const void* in = nullptr;
    void* out = nullptr;
    uint64_t in_id = 0, out_id = 0;
    bool operator==(const Passed&) const = default;
  };
  Passed passed(const Arguments& arguments) const;

  void require_whole_lines(const Plan& plan) const;
  void refuse_multicast() const;
  void place_for_peers(const Arguments& arguments);
  void map_for_peers();
  void place_for_switches(const Arguments& arguments);
  void make_control();
  void make_port_signals();
  remote::RemoteEndpoint::Memory memory_for_hosts() const;
  lowering::SwitchAliases switch_aliases() const;
  void place_here(const Arguments& arguments);
  void make_bounce_buffer(const Arguments& arguments);
  const SeenBy* seen_by_ranks(const void* at, uint64_t bytes) const;
  void prepare_to_publish();
  void place_to_publish(const Arguments& arguments, void* stream);

  const Common& common_;
  World& world_;
  const uint32_t rank_;
  const std::shared_ptr<const Plan> plan_;  ///< a copy, because reports outlive the caller's plan
  lowering::BoundPlan bound_;
  std::unique_ptr<lowering::Placement> placement_;

  bool reached_ = false;      ///< peers access the input or output of some rank
  bool placed_here_ = false;  ///< place_here() has set placed_
  Passed bound_to_;           ///< the buffers of placed_; without reached_, only their addresses are set
  lowering::Placed placed_;
  Pool::Block staging_;
  DeviceMemory own_staging_;
  PeerMemory peers_in_, peers_out_;

  // With Call::publishes:
  std::shared_ptr<const BounceBuffer> bounce_;
  lowering::StagingMemory bounce_staging_;
  DeviceMemory published_at_;  ///< by rank: where this rank publishes
  std::string why_copied_;
  bool peers_map_ = true;

  SwitchUse switches_;  ///< the switch channels that use multicast; none without it
  std::unique_ptr<MulticastMemory> multicast_;

  Pool::Block control_;
  std::optional<Window> port_signals_;  ///< by rank, then by channel; those of memory channels are unused
  HostMapping own_port_signals_;
  bool crosses_hosts_ = false;  ///< some rank has a port channel to another host
  Ends ends_;
  std::unique_ptr<Launcher> launcher_;
  GraphHolds graphs_;
};

}  // namespace chorale::cuda
