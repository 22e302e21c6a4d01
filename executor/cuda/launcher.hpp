/// \file
/// A plan's tapes in the memory of a device, with what they count in, and their launch.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>
#include <vector>

#include "../backend.hpp"
#include "../interpreter/bind.hpp"
#include "../interpreter/rounds.hpp"
#include "common.hpp"
#include "device_memory.hpp"
#include "host_words.hpp"
#include "kernels.hpp"
#include "proxy.hpp"
#include "recorder.hpp"
#include "switch_alias.hpp"
#include "tape.hpp"
#include "trace.hpp"

namespace chorale::cuda {

/// The kernels for a plan and a call, and how their blocks are to be.
struct ChosenKernel {
  Players players;
  uint32_t threads = 0;  ///< of a block

  /// \throws UsageError if this library was built without it
  static ChosenKernel of(const Plan& plan, const Call& call);
};

/// The ends of a rank's channels.
struct Ends {
  std::vector<const Signal*> signals;  ///< this rank's, by channel, as kernels see them
  std::vector<Signal*>
      signals_at_peer;             ///< by channel, as who sets them sees them: a kernel, or of a port
                                   ///< channel the host; null: nobody can wait there, or on another host
  std::vector<Proxy::FarEnd> far;  ///< by channel; empty: the plan stays on this host
  uint64_t binding = 0;            ///< else its number there, see Proxy::enrol()
};

class Launcher {
 public:
  /// \param plan, bound  outlive this; the image has the bases of its buffers
  /// \param switches     by which switch channels go; null: by peers' memory. Wanted here alone
  /// \throws RunError
  Launcher(const Common& common, const ChosenKernel& kernel, const Plan& plan,
           const interpreter::BoundPlan& bound, PacketForm packet, const Ends& ends,
           const SwitchAliases* switches = nullptr);

  /// Enqueues it once: all rounds of the message, one behind the other.
  void launch(char* in, char* out, cudaStream_t stream);

  /// Why blocks had to stop, and what each waited for; none if none had. Any thread may ask.
  Stop stopped(std::string& report) const;

  /// See Executor::trace.
  void add_trace(std::vector<TraceSpan>& spans) const;

 private:
  /// A player, and how it is launched.
  struct Kernel {
    const void* play = nullptr;
    uint32_t threads = 0;  ///< of a block
    uint32_t shared_bytes = 0;
    bool next_beside = false;  ///< see Launch
  };

  /// The tapes for all rounds of one shape.
  struct Taped {
    interpreter::RoundShape shape;
    const char* tapes = nullptr;
    PageShape page;
    uint32_t pages = 1;
    uint32_t busy_threads = 0;  ///< of a block, that have something to do
    bool exchange = false;      ///< they are such as exchange.cuh plays, if what is passed is aligned
    Kernel any, exchange_only;
  };

  std::vector<Tapes> record(TapePlaces places, PacketForm packet) const;
  void make_tapes(PacketForm packet, const Ends& ends, const SwitchAliases* switches);
  void require_residence();
  void make_kernels(Taped& of) const;
  Kernel ready(const void* kernel, uint32_t busy_threads, uint32_t shared_bytes) const;
  const Taped& taped(uint64_t round) const;
  void launch_round(uint64_t round, char* in, char* out, cudaStream_t stream);

  const Common& common_;
  const ChosenKernel kernel_;
  const Plan& plan_;
  const interpreter::BoundImage& image_;
  const Layout layout_;
  const uint32_t rank_;
  DeviceMemory memory_;
  HostArray<StopRecord> stops_;
  HostArray<Signal> completed_;  ///< by channel: what the proxy has done
  std::unique_ptr<LaunchTrace> trace_;
  std::unique_ptr<Proxy::Client> port_;
  Launch launch_;
  std::vector<Taped> taped_;
};

}  // namespace chorale::cuda
