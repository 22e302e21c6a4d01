#include "status.hpp"

#include <fmt/format.h>

#include <chorale/error.hpp>
#include <chorale/json.hpp>
#include <new>
#include <utility>

#include "chorale/timeout_remedy.hpp"

namespace chorale::c {
namespace {

/// Holds this thread's last message. last_error points to it, or to a literal if there was no memory for the
/// text.
thread_local std::string last_text;
thread_local const char* last_error = "";

chorale_status status_of(RunError::Reason reason) {
  switch (reason) {
    case RunError::Reason::timed_out:
      return CHORALE_TIMED_OUT;
    case RunError::Reason::aborted:
      return CHORALE_ABORTED;
    case RunError::Reason::deadlock:
      return CHORALE_DEADLOCK;
    case RunError::Reason::peer_lost:
      return CHORALE_PEER_LOST;
    case RunError::Reason::mismatch:
      return CHORALE_MISMATCH;
    case RunError::Reason::resources:
      return CHORALE_RESOURCES;
    case RunError::Reason::other:
      return CHORALE_FAILED;
  }
  return CHORALE_FAILED;
}

/// Returns the bytes of the UTF-8 character at `at`; 0 if there is none.
size_t character_at(const std::string& words, size_t at) {
  const auto byte = [&](size_t after) { return uint32_t(static_cast<unsigned char>(words[at + after])); };
  const uint32_t first = byte(0);
  const size_t bytes = first < 0x80       ? 1
                       : first >> 5 == 6  ? 2
                       : first >> 4 == 14 ? 3
                       : first >> 3 == 30 ? 4
                                          : 0;
  if (bytes < 2) return bytes;
  if (words.size() - at < bytes) return 0;
  uint32_t code = first & (0xffu >> (bytes + 1));
  for (size_t after = 1; after < bytes; ++after) {
    if (byte(after) >> 6 != 2) return 0;
    code = code << 6 | (byte(after) & 0x3f);
  }
  constexpr uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};  // a longer form than needed is not valid
  return code >= least[bytes] && code <= 0x10ffff && code >> 11 != 0xd800 >> 11 ? bytes : 0;
}

/// Makes a message valid UTF-8, because it may show bytes of a file that is not text.
void make_utf8(std::string& words) {
  for (size_t at = 0; at < words.size();) {
    const size_t bytes = character_at(words, at);
    if (bytes == 0) words[at] = '?';
    at += bytes == 0 ? 1 : bytes;
  }
}

chorale_status keep(chorale_status status, const char* function, const char* message) noexcept {
  try {
    std::string words = with_timeout_remedy(
        fmt::format("{}: {}", function, message),
        "set CHORALE_TIMEOUT, in the environment or by chorale_config_set(), before the world is made");
    make_utf8(words);
    last_text = std::move(words);
    last_error = last_text.c_str();
  } catch (...) {
    last_error = "there is no memory for the message";
  }
  return status;
}

}  // namespace

chorale_status note_error(const char* function) noexcept {
  try {
    throw;
  } catch (const StatusError& error) {
    return keep(error.status, function, error.what());
  } catch (const RunError& error) {
    return keep(status_of(error.reason), function, error.what());
  } catch (const PlanError& error) {
    return keep(CHORALE_INVALID_PLAN, function, error.what());
  } catch (const std::invalid_argument& error) {  // UsageError is one
    return keep(CHORALE_INVALID_ARGUMENT, function, error.what());
  } catch (const std::bad_alloc&) {
    return keep(CHORALE_RESOURCES, function, "memory ran out");
  } catch (const std::exception& error) {
    return keep(CHORALE_FAILED, function, error.what());
  } catch (...) {
    return keep(CHORALE_FAILED, function, "an exception of unknown type");
  }
}

}  // namespace chorale::c

const char* chorale_last_error(void) { return chorale::c::last_error; }

const char* chorale_status_name(chorale_status status) {
  switch (status) {
    case CHORALE_OK:
      return "ok";
    case CHORALE_INVALID_ARGUMENT:
      return "invalid_argument";
    case CHORALE_INVALID_HANDLE:
      return "invalid_handle";
    case CHORALE_IN_USE:
      return "in_use";
    case CHORALE_INVALID_PLAN:
      return "invalid_plan";
    case CHORALE_UNREADABLE_FILE:
      return "unreadable_file";
    case CHORALE_TIMED_OUT:
      return "timed_out";
    case CHORALE_ABORTED:
      return "aborted";
    case CHORALE_DEADLOCK:
      return "deadlock";
    case CHORALE_PEER_LOST:
      return "peer_lost";
    case CHORALE_MISMATCH:
      return "mismatch";
    case CHORALE_RESOURCES:
      return "resources";
    case CHORALE_FAILED:
      return "failed";
  }
  return "unknown";
}
