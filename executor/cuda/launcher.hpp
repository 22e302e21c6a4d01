/// \file
/// The Launcher holds a plan's device program and counters in device memory, and launches the program.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "chorale/world.hpp"
#include "executor/binding/backend.hpp"
#include "executor/cuda/device/device_memory.hpp"
#include "executor/cuda/device/host_words.hpp"
#include "executor/cuda/kernels/kernels.hpp"
#include "executor/cuda/kernels/launch.hpp"
#include "executor/cuda/proxy/proxy.hpp"
#include "executor/lowering/bind.hpp"
#include "executor/lowering/lower.hpp"
#include "executor/lowering/placement.hpp"
#include "executor/lowering/rounds.hpp"
#include "executor/lowering/switch_alias.hpp"
#include "trace.hpp"

namespace chorale::cuda {

class Imports;
class Monitor;
class Pool;
class Registry;

/// Holds the parts of an executor that serve all its bindings.
struct Common {
  World* world = nullptr;
  int device = 0;
  Imports* imports = nullptr;
  Pool* pool = nullptr;
  Monitor* monitor = nullptr;
  AbortWord* abort = nullptr;  ///< the device's address of it
  uint64_t timeout_ns = 0;
  unsigned trace_launches = 0;
  std::function<Proxy&()> proxy;  ///< makes the proxy if there is none yet
  /// Makes the registry if there is none yet. Collective until then.
  std::function<Registry&()> registry;
};

/// Holds the kernels for a plan and a call, and their block size.
struct ChosenKernel {
  Interpreters interpreters;
  uint32_t threads = 0;  ///< threads per block

  /// Chooses the kernels.
  /// \throws UsageError if this library was built without them
  static ChosenKernel of(const Plan& plan, const Call& call);
};

/// Describes the ends of a rank's channels.
struct Ends {
  std::vector<const Signal*> signals;  ///< this rank's signals, by channel, as kernels see them
  std::vector<Signal*>
      signals_at_peer;  ///< by channel, as the writer sees them: a kernel or, for a port channel, the host;
                        ///< null: no block waits there, or it is on another host
  std::vector<remote::RemoteEndpoint::FarEnd> far;  ///< by channel; empty: the plan stays on this host
  uint64_t binding = 0;  ///< otherwise the binding's number there, see remote::join_hosts()
};

class Launcher {
 public:
  /// \param plan, bound must outlive this object; the bases of the image's buffers are set
  /// \param switches the multicast addresses of switch channels; null: they use peers' memory. Used only
  /// during the call
  /// \throws RunError
  Launcher(const Common& common, const ChosenKernel& kernel, const Plan& plan,
           const lowering::BoundPlan& bound, PacketForm packet, const Ends& ends,
           const lowering::SwitchAliases* switches = nullptr);

  /// Gives access to what the next launch publishes.
  Publication& publication() { return launch_.publication; }

  /// Enqueues one run of the plan: all rounds of the message, one after the other.
  void launch(const lowering::Placed& placed, cudaStream_t stream);

  /// Returns why blocks had to stop (none if none had), and reports the wait of each. Any thread may call it.
  Stop stopped(std::string& report) const;

  /// Adds the spans of the last launches. See Executor::trace.
  void add_trace(std::vector<TraceSpan>& spans) const;

 private:
  /// Holds a kernel that runs programs, and how it is launched.
  struct Kernel {
    const void* function = nullptr;
    uint32_t threads = 0;  ///< threads per block
    uint32_t shared_bytes = 0;
    bool next_beside = false;  ///< see Launch
  };

  /// Holds the program for all rounds of one shape.
  struct RoundProgram {
    lowering::RoundShape shape;
    const char* program = nullptr;
    PageShape page;
    uint32_t pages = 1;
    uint32_t busy_threads = 0;  ///< the number of threads per block that have work
    bool whole = false;         ///< see lowering::DeviceProgram
    bool exchange = false;      ///< exchange.cuh can run it
    Kernel any;
    Kernel exchange_whole;  ///< runs it if it is whole and the passed buffers are aligned
    Kernel exchange_parts;  ///< runs it otherwise
  };

  std::vector<lowering::DeviceProgram> lower(lowering::ProgramAddresses places, PacketForm packet) const;
  void make_programs(PacketForm packet, const Ends& ends, const lowering::SwitchAliases* switches);
  void require_residence();
  void make_kernels(RoundProgram& of) const;
  Kernel ready(const void* kernel, uint32_t busy_threads, uint32_t shared_bytes) const;
  const RoundProgram& program_of(uint64_t round) const;
  void launch_round(uint64_t round, char* in, char* out, cudaStream_t stream);

  const Common& common_;
  const ChosenKernel kernel_;
  const Plan& plan_;
  const lowering::BoundImage& image_;
  const Layout layout_;
  const uint32_t rank_;
  DeviceMemory memory_;
  HostArray<StopRecord> stops_;
  HostArray<Signal> completed_;  ///< by channel: the number of triggers that the proxy has done
  std::unique_ptr<LaunchTrace> trace_;
  std::unique_ptr<Proxy::Client> port_;
  Launch launch_;
  std::vector<RoundProgram> programs_;
};

}  // namespace chorale::cuda
