#include "last_error.hpp"

#include <mutex>
#include <string>

#include "fallback.hpp"
#include "log.hpp"

namespace chorale::nccl {
namespace {

enum class Where { nowhere, here, fallback };

struct LastError {
  std::mutex mutex;
  Where where = Where::nowhere;
  std::string sentence;
};

LastError& process_error() {
  static LastError& error = *new LastError;
  return error;
}

}  // namespace

void set_last_error(std::string_view sentence) {
  log::line(log::Level::warn, sentence);
  LastError& error = process_error();
  const std::lock_guard lock(error.mutex);
  error.where = Where::here;
  error.sentence = sentence;
}

void last_error_is_in_fallback() {
  LastError& error = process_error();
  const std::lock_guard lock(error.mutex);
  error.where = Where::fallback;
}

const char* last_error(ncclComm_t comm) {
  thread_local std::string copy;  // another thread may replace the sentence while the caller reads it
  LastError& error = process_error();
  {
    const std::lock_guard lock(error.mutex);
    copy = error.sentence;
    if (error.where == Where::here) return copy.c_str();
  }
  // A fallback can fail without a call, in a thread of its own, so it is asked even if no call failed.
  if (const auto asked = fallback::find<const char*(ncclComm_t)>(Function::ncclGetLastError))
    copy = asked(comm);
  return copy.c_str();
}

}  // namespace chorale::nccl
