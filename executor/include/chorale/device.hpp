#pragma once
/// \file
/// The device library: what kernels and CPU blocks use to work on shared memory together. Header-only, C++17,
/// one source for CUDA and the CPU. Everything takes its Group, and every wait takes a Deadline and gives a
/// Stop.

#include "chorale/device/atomics.hpp"
#include "chorale/device/collectives.hpp"
#include "chorale/device/context.hpp"
#include "chorale/device/deadline.hpp"
#include "chorale/device/endpoints.hpp"
#include "chorale/device/engine.hpp"
#include "chorale/device/fabrics.hpp"
#include "chorale/device/group.hpp"
#include "chorale/device/hook_ends.hpp"
#include "chorale/device/hooks.hpp"
#include "chorale/device/kernels.hpp"
#include "chorale/device/lines.hpp"
#include "chorale/device/link.hpp"
#include "chorale/device/macros.hpp"
#include "chorale/device/numeric.hpp"
#include "chorale/device/one_sided.hpp"
#include "chorale/device/packet.hpp"
#include "chorale/device/packet_exchange.hpp"
#include "chorale/device/packet_link.hpp"
#include "chorale/device/packets.hpp"
#include "chorale/device/port.hpp"
#include "chorale/device/reduce.hpp"
#include "chorale/device/signal.hpp"
#include "chorale/device/threads.hpp"
#include "chorale/device/tiles.hpp"
#include "chorale/device/transpose.hpp"
#include "chorale/device/vec.hpp"
#include "chorale/types.hpp"
