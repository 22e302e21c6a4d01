#include "ucx_library.hpp"

#include <dlfcn.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <ucm/api/ucm.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "chorale/error.hpp"

namespace chorale::ucx {
namespace {

thread_local int talking = 0;  // the number of UcxTalks on this thread

/// Restores signal handlers. When UCX is loaded, it installs handlers for crash signals, but these belong to
/// the application.
class KeptSignals {
 public:
  KeptSignals() {
    for (size_t signal = 1; signal < kept_.size(); ++signal)
      valid_[signal] = sigaction(int(signal), nullptr, &kept_[signal]) == 0;
  }
  ~KeptSignals() {
    // With these variables the user asks for UCX's handlers.
    if (std::getenv("UCX_HANDLE_ERRORS") || std::getenv("UCX_ERROR_SIGNALS")) return;
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

/// Keeps UCX from replacing memory functions. When UCX is loaded, it replaces mmap(), madvise() and other
/// functions in the whole process, to track memory that it has registered. It does so once, with the settings
/// at that time, so we change the settings first.
void leave_memory_functions() {
  for (const char* const asked : {"UCX_MEM_EVENTS", "UCX_MEM_MMAP_HOOK_MODE", "UCX_MEM_MALLOC_HOOKS"}) {
    if (std::getenv(asked)) return;
  }
  // The application may have loaded UCX already, with its settings.
  if (dlopen("libucs.so.0", RTLD_NOW | RTLD_NOLOAD)) return;
  // Some functions of libucm need libucs, but libucm does not list it as a dependency. They are resolved when
  // libucs is loaded with RTLD_GLOBAL below.
  void* const memory = dlopen("libucm.so.0", RTLD_LAZY | RTLD_LOCAL);
  if (!memory) return;
  const auto options = static_cast<const ucm_global_config_t*>(dlsym(memory, "ucm_global_opts"));
  const auto set = reinterpret_cast<decltype(&ucm_set_global_opts)>(dlsym(memory, "ucm_set_global_opts"));
  if (!options || !set) return;
  ucm_global_config_t none = *options;
  none.enable_events = 0;
  none.mmap_hook_mode = UCM_MMAP_HOOK_NONE;
  none.enable_malloc_hooks = 0;
  none.enable_malloc_reloc = 0;
  set(&none);
  dlopen("libucs.so.0", RTLD_NOW | RTLD_GLOBAL);
}

/// Logs UCX's messages of a thread that has a UcxTalk. The application may use UCX too, so we leave messages
/// of other threads alone.
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
  leave_memory_functions();
  // The library is never unloaded, because its threads and memory cannot be released.
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
    return std::string("the UCX on this machine (libucp.so.0) lacks ") + absent + ": install a newer libucx0";
  if (!std::getenv("UCX_LOG_LEVEL")) ucs_log_push_handler(&log);
  return "";
}

UcxTalk::UcxTalk() { ++talking; }
UcxTalk::~UcxTalk() { --talking; }

}  // namespace chorale::ucx
