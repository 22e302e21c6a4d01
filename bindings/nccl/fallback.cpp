#include "fallback.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>

#include "abi.hpp"

namespace chorale::nccl::fallback {
namespace {

// NCCL calls some of its own functions through exported symbols. With this flag such a call stays in the
// fallback, although this library was loaded first and exports the same names. The address sanitizer does not
// allow the flag.
#if defined(RTLD_DEEPBIND) && !defined(__SANITIZE_ADDRESS__)
constexpr int own_symbols_first = RTLD_DEEPBIND;
#else
constexpr int own_symbols_first = 0;
#endif

struct Fallback {
  std::string path;
  std::string error;    ///< Says why it cannot be used. Empty if it can, and if none is named.
  std::string version;  ///< For example "2.28.9".
  std::array<void*, functions.size()> symbols{};
};

std::string dotted(int version) {
  // Up to 2.8 the parts had one digit fewer.
  const int base = version < 10000 ? 1000 : 10000;
  return fmt::format("{}.{}.{}", version / base, version % base / 100, version % 100);
}

Fallback load() {
  Fallback made;
  const char* const path = std::getenv(variable);
  if (!path || !*path) return made;
  made.path = path;
  if (made.path.find('/') == std::string::npos) {
    made.error = "it is not a path: without a / the loader would find Chorale's own library";
    return made;
  }
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL | own_symbols_first);
  if (!library) {
    const char* const why = dlerror();
    made.error = why ? why : "the loader does not say why";
    return made;
  }
  // From here on the library stays loaded, even if it is refused below. Loading it may have started threads
  // that still run.
  if (dlsym(library, "chorale_nccl_calls")) {
    made.error = "it is Chorale's own library and not NVIDIA's";
    return made;
  }
  for (size_t place = 0; place < functions.size(); ++place)
    made.symbols[place] = dlsym(library, functions[place].name);
  const auto get_version =
      reinterpret_cast<ncclResult_t (*)(int*)>(made.symbols[size_t(Function::ncclGetVersion)]);
  int version = 0;
  if (!get_version || get_version(&version) != ncclSuccess) {
    made.error = "it has no ncclGetVersion that succeeds, so it is not NCCL's library";
    made.symbols.fill(nullptr);
    return made;
  }
  made.version = dotted(version);
  return made;
}

const Fallback& loaded() {
  static const Fallback& fallback = *new Fallback(load());
  return fallback;
}

}  // namespace

void* find_symbol(Function function) { return loaded().symbols[size_t(function)]; }

std::string remedy(Function function) {
  const Fallback& fallback = loaded();
  if (fallback.path.empty()) {
    return fmt::format("Set {}=/path/libnccl.so.2 to the file of the real NCCL, which then gets this call",
                       variable);
  }
  if (!fallback.error.empty()) {
    return fmt::format("{}={} cannot be used: {}. Set it to the file of the real NCCL", variable,
                       fallback.path, fallback.error);
  }
  return fmt::format("{}={} is NCCL {} and has no {}. Set it to the file of a later NCCL", variable,
                     fallback.path, fallback.version, info(function).name);
}

std::string describe() {
  const Fallback& fallback = loaded();
  if (fallback.path.empty()) return "";
  if (!fallback.error.empty())
    return fmt::format("{}={} cannot be used: {}", variable, fallback.path, fallback.error);
  return fmt::format(
      "{}={} is NCCL {}, and gets the calls without a communicator that this library does not serve",
      variable, fallback.path, fallback.version);
}

}  // namespace chorale::nccl::fallback
