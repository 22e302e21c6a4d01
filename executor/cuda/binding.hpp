/// \file
/// A plan bound to a message on one rank's GPU: its images, scratch, signals and counters.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "../backend.hpp"
#include "../interpreter/bind.hpp"
#include "../interpreter/placement.hpp"
#include "device_memory.hpp"
#include "host_words.hpp"
#include "peer_memory.hpp"
#include "pool.hpp"
#include "proxy.hpp"
#include "tape.hpp"

namespace chorale::cuda {

class Monitor;

/// What belongs to the executor, for all its bindings.
struct Common {
  World* world = nullptr;
  int device = 0;
  Imports* imports = nullptr;
  Pool* pool = nullptr;
  Monitor* monitor = nullptr;
  AbortWord* abort = nullptr;  ///< as the device sees it
  uint64_t timeout_ns = 0;
  unsigned trace_launches = 0;
  std::function<Proxy&()> proxy;  ///< makes it if there is none yet
};

class Binding final : public chorale::Binding {
 public:
  /// Collective.
  /// \throws UsageError on all ranks for a plan that one of them cannot run
  Binding(const Common& common, const Plan& plan, const Call& call, const Arguments& arguments);
  ~Binding() override;

  bool serves(const Arguments& arguments) override;
  void prepare(const Arguments& arguments) override;
  void run(const Plan& plan, const Arguments& arguments, void* stream) override;

  void add_trace(std::vector<TraceSpan>& spans) override;

  /// Why blocks had to stop, and what each waited for; none if none had. Any thread may ask.
  Stop stopped(std::string& report) const;

 private:
  struct Parts;

  /// What the caller passed, told apart from other memory at the same address.
  struct Passed {
    const void* in = nullptr;
    void* out = nullptr;
    uint64_t in_id = 0, out_id = 0;
    bool operator==(const Passed&) const = default;
  };
  static Passed passed(const Arguments& arguments);

  void choose_kernel();
  void require_whole_lines() const;
  void place_for_peers(const Arguments& arguments);
  void make_control();
  void make_tapes();
  interpreter::Rooms rooms();

  const Common& common_;
  World& world_;
  const uint32_t rank_;
  const std::shared_ptr<const Plan> plan_;  ///< a copy: reports outlive the caller's
  interpreter::BoundPlan bound_;
  std::unique_ptr<interpreter::Placement> placement_;

  bool reached_ = false;  ///< peers touch the input or output of some rank
  Passed bound_to_;       ///< if so
  interpreter::Placed placed_;
  Pool::Block staging_;
  DeviceMemory own_staging_;
  PeerMemory peers_in_, peers_out_;

  Pool::Block control_;
  DeviceMemory local_, trace_;
  std::vector<Signal*> signals_at_peer_;
  uint64_t* completed_ = nullptr;  ///< of the first channel; a Signal apart
  HostArray<StopRecord> stops_;
  std::unique_ptr<Proxy::Client> port_;

  Launch launch_;
  const void* kernel_ = nullptr;
  uint32_t threads_ = 0, shared_bytes_ = 0;
};

}  // namespace chorale::cuda
