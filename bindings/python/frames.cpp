#include "frames.hpp"

#include <Python.h>

#include <functional>
#include <set>
#include <string_view>
#include <utility>

namespace chorale::python {
namespace {

std::string package_folder;

/// Returns the file of a frame. The text lives as long as the frame's code.
std::string_view file_of(PyFrameObject* frame) {
  PyCodeObject* const code = PyFrame_GetCode(frame);
  Py_ssize_t length = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(code->co_filename, &length);
  Py_DECREF(code);  // the frame keeps it
  if (text) return {text, size_t(length)};
  PyErr_Clear();  // a name that is not UTF-8
  return "?";
}

/// Returns a text that is equal and lives as long as the process. There is one per file.
const char* kept(std::string_view file) {
  static std::set<std::string, std::less<>> files;
  const auto found = files.find(file);
  return (found != files.end() ? found : files.emplace(file).first)->c_str();
}

}  // namespace

void set_package_folder(std::string folder) { package_folder = std::move(folder); }

dsl::Here here() {
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  dsl::Here at{"", 0, true};
  while (frame) {
    const std::string_view file = file_of(frame);
    if (package_folder.empty() || !file.starts_with(package_folder)) {
      at = {kept(file), uint32_t(PyFrame_GetLineNumber(frame)), true};
      Py_DECREF(frame);
      break;
    }
    PyFrameObject* const back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  return at;
}

}  // namespace chorale::python
