/// \file
/// Algorithms that are C++ sources: built into a plugin with the machine's compiler and loaded.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace chorale::tools {

/// A folder of our own that is gone when its holder is, also after SIGINT or SIGTERM.
///
/// While it lives these signals are recorded and passed on to the child process (see wait_for), not obeyed at
/// once.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// A compiler that can build algorithms.
struct HostCompiler {
  std::vector<std::string> command;  ///< the program, and arguments if $CXX has some
  std::string from;                  ///< "$CXX" or "PATH"
  std::string text() const;
};

/// $CXX, else the first of c++, g++ and clang++ that speaks C++20.
/// \throws Failure command_wrong saying what each one lacks
HostCompiler find_compiler(const TemporaryFolder&);

/// The -I folders of <chorale/dsl.hpp>: those of the installation the command is part of, else of its build
/// tree. \throws Failure command_wrong if there are none
std::vector<std::string> include_folders();

/// Builds `source` and loads it; its programs are then in the registry. What the compiler says goes to
/// stderr. \throws Failure plan_wrong if it does not compile, command_wrong if there is no file or no
/// compiler
void load_source(const std::string& source);

/// Loads a plugin: a shared object that registers programs.
/// \throws Failure command_wrong with the loader's message
void load_plugin(const std::string& path);

}  // namespace chorale::tools
