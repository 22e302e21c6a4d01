#pragma once

#include <string>
#include <string_view>

/// The log of this library. NCCL_DEBUG and NCCL_DEBUG_FILE control it, and its lines look like NCCL's, so
/// that scripts that read such logs read this one.
namespace chorale::nccl::log {

/// The values of NCCL_DEBUG. Each prints what those before it print.
enum class Level : int { none, version, warn, info, abort, trace };

/// Says whether lines of this level are printed. It reads the environment when it is first called, and after
/// reset().
bool prints(Level level);

/// Prints one line if `level` is printed. Any thread may call this.
void line(Level level, std::string_view text);

/// Makes the next call read NCCL_DEBUG and NCCL_DEBUG_FILE again.
void reset();

/// Returns `pattern` with the host for %h, the process for %p and a percent sign for %%. Others stay as they
/// are.
std::string file_name(std::string_view pattern);

}  // namespace chorale::nccl::log
