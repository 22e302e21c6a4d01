#include "tools/algorithms.hpp"

#include <new>
#include <stdexcept>

#include "chorale/compile.hpp"
#include "chorale/msccl_xml.hpp"
#include "chorale/progress.hpp"
#include "chorale/read_file.hpp"

namespace chorale::tools {
namespace {

std::string text_of(const std::string& path) {
  if (path == "-") take_standard_input();
  try {
    return path == "-" ? read_standard_input() : read_file(path);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw Failure(Exit::command_wrong, error.what());
  }
}

}  // namespace

bool names_algorithm(const std::string& what) { return what.ends_with(".xml"); }

Built build_algorithm(const std::string& path, const Aim& aim) {
  const std::string text = text_of(path);
  Progress progress;
  const ProgressWatch watch([&](double share) { progress("importing " + path, share); });
  Built built;
  std::vector<Note> assumed;
  built.plan = import_msccl_xml(text, path == "-" ? "standard input" : path, built.diagnostics, &assumed);
  if (!built.diagnostics.empty()) return built;
  try {
    const CompileOptions options = with_aim({}, aim);
    built.target = options.target;
    built.diagnostics = chorale::compile(built.plan, options);
  } catch (const std::invalid_argument& error) {
    throw Failure(Exit::command_wrong, error.what());
  }
  // A proof may fail because of the assumptions, so the first finding lists them.
  if (!built.diagnostics.empty()) {
    std::vector<Note>& notes = built.diagnostics[0].notes;
    notes.insert(notes.end(), assumed.begin(), assumed.end());
  }
  return built;
}

}  // namespace chorale::tools
