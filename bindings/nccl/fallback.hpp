#pragma once

#include <string>

#include "functions.hpp"

/// The fallback is the real NCCL. It is loaded beside this library if CHORALE_NCCL_FALLBACK names its file.
/// If this library does not serve a call, and the call has no communicator, the call goes there.
namespace chorale::nccl::fallback {

/// The environment variable with the path of the real NCCL's library.
inline constexpr const char* variable = "CHORALE_NCCL_FALLBACK";

/// Returns the fallback's function as a plain pointer; null if there is no fallback or the fallback lacks the
/// function. The first call loads the fallback.
void* find_symbol(Function function);

/// Returns the fallback's function of type `Signature`; null as find_symbol().
template <class Signature>
Signature* find(Function function) {
  return reinterpret_cast<Signature*>(find_symbol(function));
}

/// Says why there is no fallback for the function, and how to get one. It continues a sentence that ended
/// with a full stop.
std::string remedy(Function function);

/// Says in one line which fallback is loaded; an empty text if CHORALE_NCCL_FALLBACK is not set.
std::string describe();

}  // namespace chorale::nccl::fallback
