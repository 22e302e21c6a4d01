/// \file
/// This file finds out which rank has which GPU, and which GPUs can reach each other.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "chorale/world.hpp"
#include "executor/world/control.hpp"

namespace chorale::cuda {

/// Makes `device` and its context current until the end of the scope.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device);
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  ~CurrentDevice();

 private:
  int before_ = -1;
};

/// Lets this thread allocate and map while any thread of the process captures a graph. Its calls are not part
/// of the graph.
class OutsideCapture {
 public:
  OutsideCapture();
  OutsideCapture(const OutsideCapture&) = delete;
  OutsideCapture& operator=(const OutsideCapture&) = delete;
  ~OutsideCapture();

 private:
  cudaStreamCaptureMode before_ = cudaStreamCaptureModeRelaxed;
};

/// Returns the current device, and makes its context if there is none.
/// \throws RunError other if there is no device
int current_device();

/// Checks that kernels on `device` can read memory, because a fault there ends all CUDA of the process.
/// \param name names the memory in the error
/// \throws UsageError if they cannot read it
void require_readable(const void* at, std::string_view name, int device);

/// Describes one rank's GPU. The bytes are the same in all processes of a host. On another host only the
/// names are meaningful.
struct RankDevice {
  int ordinal = -1;  ///< the ordinal in that rank's process
  std::array<char, 16> uuid{};
  std::array<char, 16> bus_id{};  ///< "0000:3b:00.0"
  std::array<char, 64> name{};
  world::Process process{};

  /// Returns text such as "NVIDIA H200 0000:3b:00.0 (device 0)".
  std::string text() const;
  bool same_device(const RankDevice& other) const { return uuid == other.uuid; }
};

/// Returns the current device of every rank, by rank. Collective. In one process it lets this rank's device
/// reach the others'. A debug log names ranks that share a device.
/// \throws RunError other, on all ranks, if two devices of a host cannot reach each other. It names both
/// devices and their ranks
std::vector<RankDevice> gather_devices(World& world);

/// Returns whether lines of 128 bytes that this rank's GPU stores arrive whole at a peer of the same host, as
/// they do over NVLink. False if CUDA does not say so.
bool stores_whole_lines(const RankDevice& mine, const RankDevice& peer);

/// Returns whether stores_whole_lines() is true between all ranks. Collective; the answer is the same on all
/// ranks.
/// \param devices  as gather_devices() returns them
bool whole_lines_everywhere(World& world, const std::vector<RankDevice>& devices);

}  // namespace chorale::cuda
