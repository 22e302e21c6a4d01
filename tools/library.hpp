/// \file
/// Loads shared libraries that may be missing.
#pragma once

#include <dlfcn.h>

#include <initializer_list>
#include <string>

namespace chorale::tools {

/// Loads the first library of a list that loads. It stays loaded, because the driver's libraries do not
/// unload well.
class Library {
 public:
  explicit Library(std::initializer_list<const char*> names) {
    for (const char* name : names) {
      handle_ = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
      if (handle_) return;
      if (const char* const why = dlerror(); problem_.empty() && why) problem_ = why;
    }
  }

  explicit operator bool() const { return handle_ != nullptr; }
  const std::string& problem() const { return problem_; }  ///< the loader's message for the first name

  /// Returns the library's function of that name, or null.
  template <class Function>
  Function* find(const char* name) const {
    return handle_ ? reinterpret_cast<Function*>(dlsym(handle_, name)) : nullptr;
  }

 private:
  void* handle_ = nullptr;
  std::string problem_;
};

}  // namespace chorale::tools
