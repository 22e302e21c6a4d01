#pragma once

#include <string_view>

#include "abi.hpp"

/// Keeps the text that ncclGetLastError() returns. As in NCCL, the process has one last error, whichever
/// thread caused it.
namespace chorale::nccl {

/// Makes `sentence` the last error, and prints it if NCCL_DEBUG is WARN or above.
void set_last_error(std::string_view sentence);

/// Makes the fallback's last error the last error, because a call failed there.
void last_error_is_in_fallback();

/// Returns the last error. The text stays valid until the calling thread calls this again.
const char* last_error(ncclComm_t comm);

}  // namespace chorale::nccl
