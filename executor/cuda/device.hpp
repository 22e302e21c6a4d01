/// \file
/// The GPUs of the ranks: who has which, and who can reach whom.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "../world/control.hpp"
#include "chorale/world.hpp"

namespace chorale::cuda {

/// Makes `device` the current one, with its context there, until the end of the scope.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device);
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  ~CurrentDevice();

 private:
  int before_ = -1;
};

/// Lets this thread allocate and map while any thread of the process captures a graph: none of it belongs to
/// the graph.
class OutsideCapture {
 public:
  OutsideCapture();
  OutsideCapture(const OutsideCapture&) = delete;
  OutsideCapture& operator=(const OutsideCapture&) = delete;
  ~OutsideCapture();

 private:
  cudaStreamCaptureMode before_ = cudaStreamCaptureModeRelaxed;
};

/// The current device; its context is there afterwards.
/// \throws RunError other if there is none
int current_device();

/// \throws UsageError for memory that kernels on `device` cannot read: a fault there ends the process's CUDA
/// \param name  of what is said to be there
void require_readable(const void* at, std::string_view name, int device);

/// One rank's GPU. The same bytes in all processes of a host; what it says but for the names means nothing on
/// another.
struct RankDevice {
  int ordinal = -1;  ///< in that rank's process
  std::array<char, 16> uuid{};
  std::array<char, 16> bus_id{};  ///< "0000:3b:00.0"
  std::array<char, 64> name{};
  world::Process process{};

  /// "NVIDIA H200 0000:3b:00.0 (device 0)".
  std::string text() const;
  bool same_device(const RankDevice& other) const { return uuid == other.uuid; }
};

/// Collective: the current device of every rank, by rank. In one process it lets this rank's device reach the
/// others'. Ranks that share a device are named in a debug log.
/// \throws RunError other, on all ranks, if two devices of a host cannot reach each other: names both and
///         their ranks
std::vector<RankDevice> gather_devices(World& world);

}  // namespace chorale::cuda
