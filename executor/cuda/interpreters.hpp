/// \file
/// These kernels run device programs. C++17: the kernels are compiled with it.
#pragma once

namespace chorale::cuda {

/// The kernels for one dtype and one form of packets; null if the library was built without them.
struct Interpreters {
  const void* any = nullptr;       ///< runs every program: interpreter.cuh
  const void* exchange = nullptr;  ///< runs programs that only exchange packets: exchange.cuh
};

}  // namespace chorale::cuda
