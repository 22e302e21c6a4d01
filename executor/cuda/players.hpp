/// \file
/// The kernels that play tapes. C++17: the kernels are compiled with it.
#pragma once

namespace chorale::cuda {

/// The kernels for one dtype and one form of packets; null if the library was built without them.
struct Players {
  const void* any = nullptr;       ///< plays every tape: player.cuh
  const void* exchange = nullptr;  ///< plays tapes that only exchange packets: exchange.cuh
};

}  // namespace chorale::cuda
