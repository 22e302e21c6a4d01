#include "world.hpp"

#include <fmt/format.h>
#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <chrono>
#include <string>
#include <vector>

#include "objects.hpp"

namespace py = pybind11;

namespace chorale::python {
namespace {

SharedWorld owned(World world) {
  const auto object = std::make_shared<WorldObject>();
  object->own = std::make_unique<World>(std::move(world));
  return object;
}

/// Turns Python's RunError back into the C++ exception, so that run_local() can tell a cause from an effect.
[[noreturn]] void rethrow(py::error_already_set& error) {
  const py::module_ errors = py::module_::import("chorale._errors");
  if (error.matches(errors.attr("RunError"))) {
    const auto word = error.value().attr("reason").cast<std::string>();
    for (int reason = 0; reason <= int(RunError::Reason::other); ++reason) {
      if (word == name(RunError::Reason(reason)))
        throw RunError(RunError::Reason(reason), py::str(error.value()).cast<std::string>());
    }
  }
  throw error;
}

void run_bodies(int ranks, const py::function& body, const py::kwargs& keywords) {
  const Config config = config_from(keywords);
  if (config.seed.value)
    throw std::invalid_argument(
        "run_local() of Python takes no seed, because Python's bodies run on threads; Plan.run(seed=...) "
        "takes one");
  py::gil_scoped_release release;
  run_local(
      ranks,
      [&](World& world) {
        py::gil_scoped_acquire acquire;
        const auto object = std::make_shared<WorldObject>();
        object->lent = &world;
        try {
          body(object);
        } catch (py::error_already_set& error) {
          object->end();
          rethrow(error);
        }
        object->end();
      },
      config.local());
}

}  // namespace

void declare_world(py::module_& module) {
  py::class_<WorldObject, SharedWorld>(
      module, "World",
      "One rank's handle on a group of ranks. Functions that are marked as collective must be called by all "
      "ranks, in the "
      "same order. Use a handle from one thread at a time; only abort() may be called from any thread.\n\n"
      "Keywords of the functions that make one are settings (docs/settings.md), such as timeout='10s'.")
      .def_static(
          "local",
          [](int ranks, const py::kwargs& keywords) {
            const Config config = config_from(keywords);
            std::vector<SharedWorld> all;
            for (World& world : World::local(ranks, config.local())) all.push_back(owned(std::move(world)));
            return all;
          },
          py::arg("ranks"),
          "Makes a handle for each rank, all in this process. Use each on a thread of its own.")
      .def_static(
          "join",
          [](const std::string& address, int rank, int ranks, const py::kwargs& keywords) {
            const Config config = config_from(keywords);
            py::gil_scoped_release release;
            return owned(World::join(address, rank, ranks, config.join()));
          },
          py::arg("address"), py::arg("rank"), py::arg("ranks"),
          "Joins a world of processes; collective. The address is 'shm://name' on one host, or "
          "'tcp://host:port'.\n\n"
          "Raises UsageError, RunError.")
      .def_static(
          "from_environment",
          [](const py::kwargs& keywords) {
            const Config config = config_from(keywords);
            py::gil_scoped_release release;
            return owned(World::from_environment(config.join()));
          },
          "Joins with the values that torchrun, mpirun or srun put into the environment; "
          "collective.\n\nRaises "
          "UsageError, RunError.")
      .def_property_readonly("rank", [](const WorldObject& self) { return self.get().rank(); })
      .def_property_readonly("ranks", [](const WorldObject& self) { return self.get().ranks(); })
      .def_property_readonly(
          "timeout_s",
          [](const WorldObject& self) { return std::chrono::duration<double>(self.get().timeout()).count(); },
          "Limit of every wait in seconds; 0: no limit.")
      .def_property_readonly(
          "local_world", [](const WorldObject& self) { return self.get().local(); },
          "True if all ranks live in this process.")
      .def(
          "host", [](const WorldObject& self, int rank) { return self.get().host(rank); }, py::arg("rank"),
          "Returns the number of the host that a rank is on.")
      .def(
          "barrier", [](const WorldObject& self) { self.get().barrier(); },
          py::call_guard<py::gil_scoped_release>(),
          "Waits until all ranks have called it; collective.\n\nRaises RunError.")
      .def(
          "allgather",
          [](const WorldObject& self, const py::bytes& bytes) {
            const std::string mine = bytes;
            std::vector<std::vector<std::byte>> all;
            {
              py::gil_scoped_release release;
              all = self.get().allgather(std::as_bytes(std::span(mine)));
            }
            py::list texts;
            for (const auto& one : all)
              texts.append(py::bytes(reinterpret_cast<const char*>(one.data()), one.size()));
            return texts;
          },
          py::arg("mine"), "Returns the bytes of every rank, by rank; collective.\n\nRaises RunError.")
      .def(
          "abort", [](const WorldObject& self, const std::string& why) { self.get().abort(why); },
          py::arg("why"), py::call_guard<py::gil_scoped_release>(),
          "Ends every pending and later wait of every rank with RunError 'aborted'.")
      .def(
          "reset", [](const WorldObject& self) { self.get().reset(); },
          py::call_guard<py::gil_scoped_release>(),
          "Makes the world usable again after an abort or a timeout; collective.\n\nRaises RunError.")
      .def(
          "check", [](const WorldObject& self) { self.get().check(); },
          "Raises the RunError of a world that has stopped; otherwise does nothing.")
      .def(
          "survivors",
          [](const WorldObject& self, const std::vector<int>& without) {
            py::gil_scoped_release release;
            return owned(self.get().survivors(without));
          },
          py::arg("without") = std::vector<int>(),
          "Returns a new world of the remaining ranks, in the old order; collective over these.\n\nRaises "
          "RunError, "
          "UsageError.")
      .def(
          "former_ranks", [](const WorldObject& self) { return self.get().former_ranks(); },
          "Returns, for each rank, its rank in the world whose survivors() made this one.")
      .def(
          "split",
          [](const WorldObject& self, std::optional<int> color, int key) -> SharedWorld {
            py::gil_scoped_release release;
            std::optional<World> made = self.get().split(color, key);
            return made ? owned(std::move(*made)) : nullptr;
          },
          py::arg("color"), py::arg("key") = 0,
          "Makes a new world of the ranks that pass the same color; collective. None for a rank whose color "
          "is "
          "None.\n\nRaises RunError, UsageError.")
      .def("__repr__", [](const WorldObject& self) {
        if (!self.own && !self.lent) return std::string("<chorale.World that has ended>");
        return fmt::format("<chorale.World: rank {} of {}>", self.get().rank(), self.get().ranks());
      });
  module.def("run_local", &run_bodies, py::arg("ranks"), py::arg("body"),
             "Calls body(world) once per rank of a local world, each on a thread, and waits for all of them. "
             "Keywords are "
             "settings.\n\nRaises the exception of the lowest rank that raised one.");
}

}  // namespace chorale::python
