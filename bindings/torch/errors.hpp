/// \file
/// Turns Chorale's errors into PyTorch's.
#pragma once

#include <c10/util/Exception.h>

#include <chorale/error.hpp>
#include <string>

#include "chorale/timeout_remedy.hpp"

namespace chorale::torch_backend {

/// Runs `call` and turns a RunError into PyTorch's error.
/// \param where  the beginning of the error's message
/// \throws c10::DistBackendError if a run fails
template <class F>
void with_torch_errors(const F& call, const std::string& where = "") {
  try {
    call();
  } catch (const RunError& error) {
    C10_THROW_ERROR(DistBackendError,
                    "chorale: " + where +
                        with_timeout_remedy(error.what(), "give init_process_group() a longer timeout="));
  }
}

}  // namespace chorale::torch_backend
