#include "tools/python.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <system_error>
#include <vector>

#include "chorale/json.hpp"
#include "tools/source.hpp"

#ifndef CHORALE_PYTHON_FROM_COMMAND
#define CHORALE_PYTHON_FROM_COMMAND ""
#endif
#ifndef CHORALE_PYTHON_BUILT
#define CHORALE_PYTHON_BUILT ""
#endif

namespace chorale::tools {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int no_package = 97, no_module = 98, refused = 2, no_program = 127;  // exit statuses of Python

std::map<std::string, std::string>& chosen() {
  static std::map<std::string, std::string> programs;
  return programs;
}

/// Returns the file of a program that is looked up in the PATH; the name itself if it is not there.
std::string in_path(const std::string& name) {
  const char* const path = std::getenv("PATH");
  if (name.find('/') != name.npos || !path) return name;
  std::istringstream folders(path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string file = (folder.empty() ? "." : folder) + "/" + name;
    if (::access(file.c_str(), X_OK) == 0) return file;
  }
  return name;
}

constexpr const char* other_python = "PYTHON=FILE chooses another Python";

/// Returns the Python that runs sources: its whole path if it is found, else its name. Puts the folder of
/// this command's package before those of the environment.
std::string prepare_python() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  for (const fs::path& folder :
       {self.parent_path() / CHORALE_PYTHON_FROM_COMMAND, fs::path(CHORALE_PYTHON_BUILT)}) {
    if (!fs::exists(folder / "chorale" / "_driver.py", error)) continue;
    const char* const others = std::getenv("PYTHONPATH");
    const std::string all =
        folder.lexically_normal().string() + (others && *others ? ":" + std::string(others) : "");
    ::setenv("PYTHONPATH", all.c_str(), 1);
    break;
  }
  if (const char* const named = std::getenv("PYTHON"); named && *named) return in_path(named);
  const fs::path beside = self.parent_path() / "python3";
  return fs::exists(beside, error) ? beside.string() : in_path("python3");
}

SourceLine line_of(const Json& line) { return {line.at(0), line.at(1)}; }

std::optional<OpPlace> place_of(const Json& place) {
  if (place.is_null()) return std::nullopt;
  return OpPlace{place.at(0), place.at(1), place.at(2)};
}

Diagnostic finding_of(const Json& finding) {
  Diagnostic all{
      finding.at("check"), line_of(finding.at("line")), place_of(finding.at("at")), finding.at("text"), {},
      finding.at("help"),  finding.at("path")};
  for (const Json& note : finding.at("notes"))
    all.notes.push_back({line_of(note.at(0)), place_of(note.at(1)), note.at(2)});
  return all;
}

Built read_result(const std::string& file) {
  std::ifstream text(file);
  const Json result = Json::parse(text);
  if (result.contains("refused"))
    throw Failure(Exit::command_wrong, result["refused"][0], result["refused"][1]);
  Built built{read(result.at("plan").get<std::string>()), {}, target_of(result.at("target"))};
  for (const Json& finding : result.at("findings")) built.diagnostics.push_back(finding_of(finding));
  return built;
}

}  // namespace

bool is_python(const std::string& what) { return what.ends_with(".py"); }

PythonFound find_python() {
  const TemporaryFolder folder;
  const std::string result = folder.path() / "python.txt";
  // Each word is written as soon as it is known, because an import may end the process.
  const std::string ask =
      "import sys\n"
      "out = open(sys.argv[1], 'w')\n"
      "out.write('Python %d.%d.%d' % sys.version_info[:3])\n"
      "out.flush()\n"
      "try:\n  import numpy\n  out.write(', NumPy ' + numpy.__version__)\n"
      "except ImportError:\n  out.write(', no NumPy')\n"
      "out.flush()\n"
      "try:\n  import chorale\n  out.write(', package chorale')\n"
      "except ImportError:\n  out.write(', no package chorale')\n";
  const std::string python = prepare_python();
  const int status = run_command({python, "-c", ask, result}, true);
  std::ifstream text(result);
  std::string words;
  std::getline(text, words);
  if (status == no_program || words.empty()) return {python + " does not run"};
  return {python + ", " + words, status == 0 && words.find(", no package") == words.npos};
}

void choose_python(const std::string& source, const std::string& program) { chosen()[source] = program; }

Built build_python(const std::string& source, const dsl::Parameters::Settings& settings, const Aim& aim) {
  need_source_file(source);
  const TemporaryFolder folder;
  const std::string result = folder.path() / "result.json";
  const Json options = {{"output", result},
                        {"name", chosen()[source]},
                        {"target", aim.target},
                        {"allow", aim.allow},
                        {"minimize_syncs", aim.minimize_syncs},
                        {"certify", aim.certify}};
  const std::string python = prepare_python();
  const std::string start =
      "import sys\n"
      "try:\n  from chorale._driver import main\n"
      "except ImportError as error:\n  print(error, file=sys.stderr)\n  sys.exit(" +
      std::to_string(no_package) + ")\nmain()";
  std::vector<std::string> command = {python, "-c", start, options.dump(), source};
  for (const auto& [key, value] : settings) command.push_back("--" + key + "=" + value);
  Progress progress;
  progress("running " + source);
  switch (const int status = run_command(command, false)) {
    case 0:
      break;
    case no_program:
      throw Failure(Exit::command_wrong, "there is no Python '" + python + "' to run " + source,
                    "install python3, or name it: PYTHON=/usr/bin/python3");
    case no_package:
      throw Failure(Exit::command_wrong, python + " cannot import the package chorale",
                    "install it (pip install . in Chorale's sources), or use a Python that has it: " +
                        std::string(other_python));
    case no_module:
      throw Failure(Exit::plan_wrong, source + " needs a module that " + python + " lacks", other_python);
    case refused:
      throw Failure(Exit::command_wrong, source + " refused its settings",
                    "--set KEY=VALUE is passed to it as --KEY=VALUE");
    default:
      throw Failure(Exit::plan_wrong,
                    source + " failed (" + python + " ended with " + std::to_string(status) + ")");
  }
  if (!fs::exists(result))
    throw Failure(Exit::plan_wrong, source + " ended Python before its plan was taken",
                  "leave os._exit() out: a script ends at its end");
  return read_result(result);
}

}  // namespace chorale::tools
