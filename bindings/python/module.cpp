// This is the module chorale._chorale. The package chorale gives its names to users.

#include <pybind11/pybind11.h>

#include <exception>
#include <string>

#include "calls.hpp"
#include "chorale/error.hpp"
#include "chorale/json.hpp"
#include "frames.hpp"
#include "objects.hpp"

namespace py = pybind11;

namespace chorale::python {
namespace {

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
