/// \file
/// Builds algorithms that are C++ sources into a plugin with the machine's compiler, and loads it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace chorale::tools {

/// A folder of our own that is removed with its holder, also after SIGINT or SIGTERM.
///
/// While it lives these signals do not end the process at once: they are recorded and passed on to the child
/// process (see wait_for).
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

/// Finds the compiler: $CXX, else the first of c++, g++ and clang++ that speaks C++20.
/// \throws Failure command_wrong saying what each one lacks
HostCompiler find_compiler(const TemporaryFolder&);

/// Returns the -I folders of <chorale/dsl.hpp>: those of the installation that the command is part of, else
/// of its build tree.
/// \throws Failure command_wrong if there are none
std::vector<std::string> include_folders();

/// Builds `source` and loads it; its programs are then in the registry. The compiler's output goes to stderr.
/// \throws Failure plan_wrong if it does not compile, command_wrong if there is no file or no compiler
void load_source(const std::string& source);

/// Loads a plugin: a shared object that registers programs.
/// \throws Failure command_wrong with the loader's message
void load_plugin(const std::string& path);

}  // namespace chorale::tools
