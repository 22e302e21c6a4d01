/// \file
/// This header lists the kernels that run device programs. It is C++17, because the kernels are compiled with
/// it.
#pragma once

namespace chorale::cuda {

/// Holds the kernels for one dtype and one packet form; null if the library was built without them.
struct Interpreters {
  const void* any = nullptr;       ///< runs every program: interpreter.cuh
  const void* exchange = nullptr;  ///< runs programs that only exchange packets, in whole units: exchange.cuh
  const void* exchange_parts = nullptr;  ///< the same for other units; null for packets with lines
};

}  // namespace chorale::cuda
