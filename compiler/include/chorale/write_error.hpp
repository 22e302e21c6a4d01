/// \file
/// Explains errors of writing, with the remedy when the process's own limit is the cause.
#pragma once

#include <string>

namespace chorale {

/// Says why a file could not be written or enlarged. When this process's limit of the size of files forbids
/// it, the text names RLIMIT_FSIZE with its value, and `ulimit -f`.
/// \param error  an errno
std::string write_error(int error);

/// Makes writing past RLIMIT_FSIZE fail with EFBIG on this thread while it lives. The signal (SIGXFSZ), which
/// would end the process, is not delivered.
class FileLimitAsError {
 public:
  FileLimitAsError();
  ~FileLimitAsError();
  FileLimitAsError(const FileLimitAsError&) = delete;
  FileLimitAsError& operator=(const FileLimitAsError&) = delete;

 private:
  bool pending_before_;  ///< if so, the signal is the application's own
  bool blocked_before_ = true;
};

}  // namespace chorale
