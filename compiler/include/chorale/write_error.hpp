/// \file
/// Explains why a file could not be written, and turns the signal of the limit on file sizes into an error.
#pragma once

#include <string>

namespace chorale {

/// Returns why a file could not be written or enlarged. When this process's limit on file sizes is the cause,
/// the text names RLIMIT_FSIZE with its value, and the remedy `ulimit -f`.
/// \param error  the errno of the failed call
std::string write_error(int error);

/// Makes writes past RLIMIT_FSIZE fail with EFBIG on this thread while it lives. Otherwise the signal SIGXFSZ
/// would end the process.
class FileLimitAsError {
 public:
  FileLimitAsError();
  ~FileLimitAsError();
  FileLimitAsError(const FileLimitAsError&) = delete;
  FileLimitAsError& operator=(const FileLimitAsError&) = delete;

 private:
  bool pending_before_;  ///< if true, the application already had such a signal pending
  bool blocked_before_ = true;
};

}  // namespace chorale
