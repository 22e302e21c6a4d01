/// \file
/// Builds algorithms that are C++ sources into a plugin with the machine's compiler, and loads the plugin.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace chorale::tools {

/// Owns a temporary folder that is removed with this object, also after SIGINT or SIGTERM.
///
/// While this object exists, these signals do not end the process at once. They are recorded and passed on to
/// the child process (see wait_for).
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Runs `command` with stdout sent to stderr, or with both discarded. Returns its exit status; 127 if there
/// is no such program. A TemporaryFolder must exist.
int run_command(const std::vector<std::string>& command, bool quiet);

/// Names a compiler that can build algorithms.
struct HostCompiler {
  std::vector<std::string> command;  ///< the program, and the arguments that $CXX may have
  std::string from;                  ///< "$CXX" or "PATH"
  std::string text() const;
};

/// Finds the compiler: $CXX, else the first of c++, g++ and clang++ that supports C++20.
/// \throws Failure command_wrong that says what each one lacks
HostCompiler find_compiler(const TemporaryFolder&);

/// Returns the -I folders of <chorale/dsl.hpp>. They belong to the installation of this command, or to its
/// build tree.
/// \throws Failure command_wrong if there are none
std::vector<std::string> include_folders();

/// \throws Failure command_wrong if there is no such file
void need_source_file(const std::string& source);

/// Builds `source` and loads it. Its programs are then in the registry. The compiler's output goes to stderr.
/// \throws Failure plan_wrong if it does not compile, command_wrong if there is no file or no compiler
void load_source(const std::string& source);

/// Loads a plugin: a shared object that registers programs.
/// \throws Failure command_wrong with the loader's message
void load_plugin(const std::string& path);

}  // namespace chorale::tools
