#include "ucx_library.hpp"

#include <dlfcn.h>
#include <signal.h>
#include <spdlog/spdlog.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "chorale/error.hpp"

namespace chorale::net {
namespace {

thread_local int talking = 0;  // UcxTalks of this thread

/// UCX handles the signals of crashes as it is loaded, which are the application's affair.
class KeptSignals {
 public:
  KeptSignals() {
    for (size_t signal = 1; signal < kept_.size(); ++signal)
      valid_[signal] = sigaction(int(signal), nullptr, &kept_[signal]) == 0;
  }
  ~KeptSignals() {
    if (std::getenv("UCX_HANDLE_ERRORS") || std::getenv("UCX_ERROR_SIGNALS")) return;  // asked for
    for (size_t signal = 1; signal < kept_.size(); ++signal) {
      struct sigaction now;
      if (!valid_[signal] || sigaction(int(signal), nullptr, &now) != 0) continue;
      if (now.sa_sigaction != kept_[signal].sa_sigaction) sigaction(int(signal), &kept_[signal], nullptr);
    }
  }
  KeptSignals(const KeptSignals&) = delete;

 private:
  std::array<struct sigaction, 32> kept_{};
  std::array<bool, 32> valid_{};
};

/// The application may use UCX itself: what it says on other threads is not ours to hide.
ucs_log_func_rc_t log(const char*, unsigned, const char*, ucs_log_level_t, const ucs_log_component_config_t*,
                      const char* message, va_list arguments) {
  if (talking == 0) return UCS_LOG_FUNC_RC_CONTINUE;
  char text[512];
  std::vsnprintf(text, sizeof text, message, arguments);
  spdlog::debug("UCX: {}", text);
  return UCS_LOG_FUNC_RC_STOP;
}

}  // namespace

UcxLibrary& UcxLibrary::instance() {
  static UcxLibrary library;
  return library;
}

const std::string& UcxLibrary::problem() { return instance().problem_; }

const UcxLibrary& UcxLibrary::get() {
  const UcxLibrary& library = instance();
  if (!library.problem_.empty()) throw RunError(RunError::Reason::other, library.problem_);
  return library;
}

UcxLibrary::UcxLibrary() : problem_(load()) {}

std::string UcxLibrary::load() {
  const KeptSignals kept;
  // It stays: its threads and its memory cannot be taken back.
  void* const handle = dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* const why = dlerror();
    return std::string("UCX does not load: ") + (why ? why : "libucp.so.0") + "; install libucx0";
  }
  const char* absent = nullptr;
#define CHORALE_UCX_FIND(name) \
  name = reinterpret_cast<decltype(name)>(dlsym(handle, #name)); \
  if (!name) absent = #name;
  CHORALE_UCX_FUNCTIONS(CHORALE_UCX_FIND)
#undef CHORALE_UCX_FIND
  if (absent)
    return std::string("UCX, as libucp.so.0 is here, lacks ") + absent + ": install a newer libucx0";
  if (!std::getenv("UCX_LOG_LEVEL")) ucs_log_push_handler(&log);
  return "";
}

UcxTalk::UcxTalk() { ++talking; }
UcxTalk::~UcxTalk() { --talking; }

}  // namespace chorale::net
