#pragma once

#include <string>
#include <string_view>

/// The log of this library. NCCL_DEBUG, NCCL_DEBUG_SUBSYS and NCCL_DEBUG_FILE control it, and its lines look
/// like NCCL's, so that scripts that read such logs read this one.
namespace chorale::nccl::log {

/// The values of NCCL_DEBUG. Each prints what those before it print.
enum class Level : int { none, version, warn, info, abort, trace };

/// The subjects of lines of INFO and above. NCCL_DEBUG_SUBSYS says which of them are printed.
enum class Subsystem : unsigned {
  init = 1,    ///< communicators, and the numbers of calls
  env = 2,     ///< the environment
  tuning = 4,  ///< the choice of plans
  call = 8,    ///< each call
};

/// Says whether lines of this level and subject are printed. It reads the environment when it is first
/// called, and after reset().
bool prints(Level level, Subsystem subsystem = Subsystem::init);

/// Prints one line if such lines are printed. Any thread may call this.
void line(Level level, std::string_view text, Subsystem subsystem = Subsystem::init);

/// Returns the subjects that a value of NCCL_DEBUG_SUBSYS names, as a mask: "INIT,ENV" names two, "^TUNING"
/// all but one, and "ALL" all. A null pointer stands for all. Other names of NCCL have no lines here.
unsigned subsystems_of(const char* value);

/// Makes the next call read NCCL_DEBUG, NCCL_DEBUG_SUBSYS and NCCL_DEBUG_FILE again.
void reset();

/// Returns `pattern` with the host for %h, the process for %p and a percent sign for %%. Others stay as they
/// are.
std::string file_name(std::string_view pattern);

}  // namespace chorale::nccl::log
