// This is the module chorale._chorale. The package chorale gives its names to users.

#include <Python.h>
#include <pybind11/pybind11.h>

#include <cstddef>
#include <exception>
#include <set>
#include <string_view>

#include "chorale/error.hpp"
#include "chorale/json.hpp"
#include "frames.hpp"
#include "objects.hpp"

namespace py = pybind11;

namespace chorale::python {
namespace {

// pybind11 calls every function of a module through one function of its own. Our function calls that one.
PyCFunctionWithKeywords pybind_call = nullptr;

bool is_about_arguments(PyObject* error) {
  Py_ssize_t length = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(error, &length);
  if (!text) PyErr_Clear();
  return text && std::string_view(text, size_t(length)).find("): incompatible ") != std::string_view::npos;
}

PyObject* call(PyObject* self, PyObject* args, PyObject* keywords) {
  PyObject* const result = pybind_call(self, args, keywords);
  if (result || !PyErr_ExceptionMatches(PyExc_TypeError)) return result;
  py::error_already_set error;
  try {
    const py::str text(error.value());
    if (is_about_arguments(text.ptr())) {
      const py::object sentence =
          py::module_::import("chorale._calls")
              .attr("sentence")(text, py::handle(args),
                                keywords ? py::reinterpret_borrow<py::dict>(keywords) : py::dict());
      PyErr_SetObject(PyExc_TypeError, sentence.ptr());
      return nullptr;
    }
  } catch (py::error_already_set& failed) {
    failed.discard_as_unraisable("chorale: the sentence about a wrong call");
  }
  error.restore();
  return nullptr;
}

void explain_function(PyObject* function) {
  if (!PyCFunction_Check(function)) return;
  PyMethodDef* const definition = reinterpret_cast<PyCFunctionObject*>(function)->m_ml;
  if (reinterpret_cast<PyCFunctionWithKeywords>(reinterpret_cast<void (*)()>(definition->ml_meth)) ==
      pybind_call)
    definition->ml_meth = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&call));
}

void explain(const py::handle& thing, std::set<PyObject*>& done) {
  if (!done.insert(thing.ptr()).second) return;
  if (PyInstanceMethod_Check(thing.ptr()))
    return explain_function(PyInstanceMethod_GET_FUNCTION(thing.ptr()));
  if (Py_IS_TYPE(thing.ptr(), &PyStaticMethod_Type))
    return explain_function(py::object(thing.attr("__func__")).ptr());
  if (!PyType_Check(thing.ptr()) && !py::isinstance<py::module_>(thing)) return explain_function(thing.ptr());
  for (const auto& [name, member] : py::dict(thing.attr("__dict__"))) explain(member, done);
}

/// Makes the functions of a module, and those of its classes, say which argument of a call is missing or
/// wrong. The exception is a TypeError as before. Call it after everything is declared.
void explain_calls(const py::module_& module) {
  const py::cpp_function any([] {});
  PyMethodDef* const definition = reinterpret_cast<PyCFunctionObject*>(any.ptr())->m_ml;
  pybind_call = reinterpret_cast<PyCFunctionWithKeywords>(reinterpret_cast<void (*)()>(definition->ml_meth));
  std::set<PyObject*> done;
  explain(module, done);
}

/// Raises the exception of this name of chorale._errors.
void raise(const char* type, const py::tuple& arguments) {
  const py::object of = py::module_::import("chorale._errors").attr(type);
  PyErr_SetObject(of.ptr(), of(*arguments).ptr());
}

void translate(std::exception_ptr thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const PlanError& error) {
    raise("PlanError", py::make_tuple(error.what(), error.json_path));
  } catch (const RunError& error) {
    raise("RunError", py::make_tuple(error.what(), name(error.reason)));
  } catch (const UsageError& error) {
    raise("UsageError", py::make_tuple(error.what()));
  }
}

}  // namespace
}  // namespace chorale::python

PYBIND11_MODULE(_chorale, module) {
  using namespace chorale::python;
  module.doc() = "The classes of Chorale's C++ libraries. Use them from the package chorale.";
  module.attr("version") = CHORALE_VERSION;
  module.def("_set_package_folder", &set_package_folder);
  py::register_exception_translator(&translate);
  declare_findings(module);
  declare_plan(module);
  declare_language(module);
  declare_world(module);
  declare_executor(module);
  declare_exchange(module);
  declare_tuned_plans(module);
  explain_calls(module);
}
