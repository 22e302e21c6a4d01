#include "tools/source.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

#include "chorale/write_error.hpp"
#include "tools/command.hpp"

#ifndef CHORALE_INCLUDE_DIRS
#define CHORALE_INCLUDE_DIRS ""
#endif

namespace chorale::tools {
namespace {

namespace fs = std::filesystem;

std::atomic<int> interrupted = 0;  // lock-free, so that a signal handler may write it
std::atomic<pid_t> child{0};

extern "C" void pass_on(int signal) {
  interrupted = 1;
  if (const pid_t process = child) ::kill(process, signal);
}

constexpr int signals[] = {SIGINT, SIGTERM, SIGHUP};
struct sigaction before[std::size(signals)];

/// Says what `compiler` lacks; returns "" if nothing is missing.
std::string lacks(const std::vector<std::string>& compiler, const TemporaryFolder& folder) {
  const std::string probe = folder.path() / "probe.cpp";
  std::ofstream file(probe);
  file << "#include <concepts>\n#include <span>\n#if __cplusplus <= 201703L\n#error\n#endif\n";
  file.close();
  if (!file) throw Failure(Exit::command_wrong, "cannot write " + probe + ": " + write_error(errno));
  std::vector<std::string> command = compiler;
  command.insert(command.end(), {"-std=c++20", "-fsyntax-only", probe});
  const int status = run_command(command, true);
  if (status == 127) return "is not there";
  return status == 0 ? "" : "does not compile C++20";
}

/// Returns true if the compiler accepts an option.
bool takes(const HostCompiler& compiler, const std::string& option, const std::string& source) {
  std::vector<std::string> command = compiler.command;
  command.insert(command.end(), {option, "-Werror", "-std=c++20", "-fsyntax-only", source});
  return run_command(command, true) == 0;
}

/// Returns the compiler's name of the warning about `buffer[1, 2]`, which means buffer[2]. Returns "" if it
/// has none. Clang has no error for an unknown warning, but a warning.
std::string comma_warning(const HostCompiler& compiler, const TemporaryFolder& folder) {
  const std::string probe = folder.path() / "comma.cpp";
  std::ofstream(probe) << "int main() {}\n";
  for (const std::string name : {"comma-subscript", "deprecated-comma-subscript"})
    if (takes(compiler, "-W" + name, probe)) return name;
  return "";
}

/// Loads a plugin. Returns the reason if it does not load, or "". It is never closed, because the registry
/// points into it.
std::string open_plugin(const std::string& file) {
  return ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL) ? "" : ::dlerror();
}

}  // namespace

int run_command(const std::vector<std::string>& command, bool quiet) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const pid_t process = ::fork();
  if (process < 0)
    throw Failure(Exit::run_failed, std::string("cannot start a process: ") + std::strerror(errno));
  if (process == 0) {
    for (const int signal : signals) ::signal(signal, SIG_DFL);
    const int nowhere = quiet ? ::open("/dev/null", O_WRONLY) : -1;
    ::dup2(quiet ? nowhere : STDERR_FILENO, STDOUT_FILENO);
    if (quiet) ::dup2(nowhere, STDERR_FILENO);
    ::execvp(words[0], words.data());
    ::_exit(127);
  }
  child = process;
  if (interrupted) ::kill(process, SIGTERM);  // the signal came before the process's id was stored
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  child = 0;
  if (interrupted) throw Failure(Exit::interrupted, "interrupted");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TemporaryFolder::TemporaryFolder() {
  const char* base = std::getenv("TMPDIR");
  std::string name = std::string(base && *base ? base : "/tmp") + "/chorale-XXXXXX";
  struct sigaction action = {};
  action.sa_handler = pass_on;
  for (size_t at = 0; at < std::size(signals); ++at) ::sigaction(signals[at], &action, &before[at]);
  if (!::mkdtemp(name.data())) {
    throw Failure(Exit::command_wrong, "cannot make a temporary folder " + name + ": " + std::strerror(errno),
                  "set TMPDIR to the folder for it");
  }
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  for (size_t at = 0; at < std::size(signals); ++at) ::sigaction(signals[at], &before[at], nullptr);
}

std::string HostCompiler::text() const {
  std::string all;
  for (const std::string& word : command) all += (all.empty() ? "" : " ") + word;
  return all;
}

HostCompiler find_compiler(const TemporaryFolder& folder) {
  const char* chosen = std::getenv("CXX");
  if (chosen && *chosen) {
    std::istringstream words(chosen);
    std::vector<std::string> command;
    for (std::string word; words >> word;) command.push_back(word);
    const std::string lack = command.empty() ? "is blank" : lacks(command, folder);
    if (!lack.empty()) {
      throw Failure(Exit::command_wrong,
                    "the compiler '" + std::string(chosen) + "', which CXX names, " + lack,
                    "set CXX to a C++20 compiler, or unset it to use c++, g++ or clang++");
    }
    return {command, "$CXX"};
  }
  std::string why;
  for (const std::string name : {"c++", "g++", "clang++"}) {
    const std::string lack = lacks({name}, folder);
    if (lack.empty()) return {{name}, "PATH"};
    why += (why.empty() ? "" : ", ") + name + " " + lack;
  }
  throw Failure(
      Exit::command_wrong, "no C++20 compiler: " + why,
      "install g++ 11 or clang 14, or newer, or set CXX to one; plans and shipped algorithms need none");
}

std::vector<std::string> include_folders() {
  std::error_code error;
  const fs::path executable = fs::read_symlink("/proc/self/exe", error);
  const fs::path installed = executable.parent_path().parent_path() / "include";
  if (fs::exists(installed / "chorale" / "dsl.hpp")) return {installed};
  std::vector<std::string> folders;
  std::istringstream built(CHORALE_INCLUDE_DIRS);
  for (std::string folder; std::getline(built, folder, ':');) {
    if (fs::is_directory(folder)) folders.push_back(folder);
  }
  if (folders.empty()) {
    throw Failure(Exit::command_wrong,
                  "there is no chorale/dsl.hpp beside this command, in " + installed.string(),
                  "install the headers together with the command");
  }
  return folders;
}

void need_source_file(const std::string& source) {
  std::error_code error;
  if (!fs::is_regular_file(source, error)) {
    throw Failure(Exit::command_wrong,
                  "cannot read " + source + ": " +
                      (fs::exists(source, error) ? "it is not a file" : "there is no such file"));
  }
}

void load_source(const std::string& source) {
  need_source_file(source);
  TemporaryFolder folder;
  const HostCompiler compiler = find_compiler(folder);
  const std::string plugin = folder.path() / "program.so";
  std::vector<std::string> command = compiler.command;
  command.insert(command.end(), {"-std=c++20", "-O0", "-fPIC", "-shared", "-Wall"});
  // A program that returns nothing, or whose indices a comma drops, would run, and do something else.
  command.push_back("-Werror=return-type");
  if (const std::string comma = comma_warning(compiler, folder); !comma.empty())
    command.push_back("-Werror=" + comma);
  for (const std::string& include : include_folders()) command.push_back("-I" + include);
  // The name is written so that one with a leading '-' does not read as an option.
  command.insert(command.end(), {"-o", plugin, source.starts_with('-') ? "./" + source : source});
  Progress progress;
  progress("building " + source);
  if (const int status = run_command(command, false)) {
    throw Failure(Exit::plan_wrong, source + " does not compile (" + compiler.text() + " ended with " +
                                        std::to_string(status) + ")");
  }
  if (const std::string why = open_plugin(plugin); !why.empty()) {
    // dlerror() begins with the name of the temporary file, which does not help the reader.
    const std::string head = plugin + ": ";
    throw Failure(Exit::plan_wrong,
                  source + " compiles, but cannot be loaded: " +
                      (why.starts_with(head) ? why.substr(head.size()) : why),
                  "a source is one file: define all that it calls there, or make a plugin of several files "
                  "with c++ -shared -fPIC");
  }
}

void load_plugin(const std::string& path) {
  // Without a slash dlopen() would search the library path instead of this folder.
  const std::string file = path.find('/') == path.npos ? "./" + path : path;
  if (const std::string why = open_plugin(file); !why.empty()) {
    throw Failure(Exit::command_wrong, "cannot load " + why,
                  "build the plugin against the headers of this version");
  }
}

}  // namespace chorale::tools
