/// \file
/// The kernels that play tapes. C++17: the kernels are compiled with it.
#pragma once

namespace chorale::cuda {

/// For one dtype and one form of packets; null where the library was built without them.
struct Players {
  const void* any = nullptr;       ///< plays every tape: player.cuh
  const void* exchange = nullptr;  ///< plays those that only exchange packets: exchange.cuh
};

}  // namespace chorale::cuda
