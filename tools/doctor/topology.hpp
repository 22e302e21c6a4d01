/// \file
/// Finds how the GPUs of this machine are connected.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chorale/topology.hpp"

namespace chorale::tools {

/// Describes a GPU as the management library (NVML) sees it.
struct ManagedGpu {
  std::string bus;         ///< "0000:3b:00.0"
  double pcie_gb_s = 0;    ///< of its slot; 0 if it is not known
  double nvlink_gb_s = 0;  ///< of one NVLink
  /// Holds the bus ids to which the NVLinks that are up lead; "" for a device that is not known.
  std::vector<std::string> nvlinks;
};

/// Returns the GPUs that NVML manages, in its order; nothing if NVML does not start.
std::optional<std::vector<ManagedGpu>> managed_gpus();

/// Returns the topology of a machine. GPUs have the order of `managed`, else of their bus ids. The result has
/// no GPU if none is found.
/// \param sysfs  the folder that is mounted at /sys, or a copy of it
/// \param managed  the GPUs to list; none: all that sysfs has, without NVLinks
Topology topology_of(const std::string& sysfs, const std::optional<std::vector<ManagedGpu>>& managed);

/// Prints the topology of this machine as JSON.
/// \throws Failure run_failed if there is no GPU
void print_topology();

}  // namespace chorale::tools
