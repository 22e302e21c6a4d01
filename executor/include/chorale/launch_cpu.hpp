/// \file
/// On the CPU, launch() runs the threads of blocks as fibers, on the thread of the rank that launches. See
/// launch.hpp. A fiber has a stack of 96 KiB, so put larger arrays of a kernel into memory of the caller.
#pragma once

#include <functional>

#include "chorale/device.hpp"
#include "chorale/launch.hpp"

namespace chorale {

namespace detail {
void run_kernel(Transport& transport, const LaunchConfig& config, const LaunchName& name,
                const std::function<Stop(const Group&, const Deadline&)>& kernel);
}

/// Runs kernel(group, deadline) in every thread of every block; the group is the block. Returns when this
/// rank's blocks have ended.
/// \throws RunError if the world stopped because a wait timed out, a peer died, a rank aborted, no rank can
///         go on, or a kernel returned a Stop other than none while it ran, which stops the world with that
///         reason; resources if there is no memory for the threads' stacks, which stops the world
/// \throws UsageError as Transport::Use, or if there are too many blocks and threads. It also throws what the
///         kernel throws
template <class Kernel, class = detail::Side>
void launch(Transport& transport, const Kernel& kernel, const LaunchConfig& config = {}, LaunchStream = {},
            const LaunchName& name = {}) {
  detail::run_kernel(transport, config, name, std::cref(kernel));
}

}  // namespace chorale
