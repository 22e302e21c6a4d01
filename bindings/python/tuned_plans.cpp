#include "chorale/tuned_plans.hpp"

#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "chorale/make_plan.hpp"
#include "objects.hpp"

namespace py = pybind11;

namespace chorale::python {
namespace {

/// Holds the chooser. Plans that it returns keep it alive.
struct TunedObject {
  TunedPlans plans;
};

PlanObject plan_of(const std::shared_ptr<TunedObject>& self, const TunedPlans::Choice& choice) {
  const Plan* plan = nullptr;
  {
    py::gil_scoped_release release;
    plan = &self->plans.plan(choice);
  }
  return {SharedPlan(self, plan)};
}

}  // namespace

void declare_tuned_plans(py::module_& module) {
  py::class_<TunedPlans::Choice>(module, "Choice", "A plan that TunedPlans chose.")
      .def_readonly("collective", &TunedPlans::Choice::collective)
      .def_readonly("name", &TunedPlans::Choice::name)
      .def_property_readonly(
          "packet",
          [](const TunedPlans::Choice& self) {
            return self.packet ? std::optional(std::string(packet_form_names[size_t(*self.packet)]))
                               : std::nullopt;
          },
          "The form of packets for execute(), or None.")
      .def("__str__", &TunedPlans::Choice::words)
      .def("__repr__",
           [](const TunedPlans::Choice& self) { return "<chorale.Choice: " + self.words() + ">"; });
  py::class_<TunedObject, std::shared_ptr<TunedObject>>(
      module, "TunedPlans",
      "Chooses plans by collective and size: your own, those of the tuner's table, or defaults. Every rank "
      "chooses "
      "independently, so all ranks need the same table and the same plans.\n\n"
      "folder: a folder of plans with shipped/ and tuned/; default: the shipped plans.\n"
      "backend: 'cpu' or 'cuda'. device: the GPU's name.\n"
      "rank_order: choose only plans that add in the order of the ranks, so that sums have the same bits.\n"
      "max_blocks: the most thread blocks of a plan, the same on all ranks; 0: any number; default: the "
      "setting max_blocks.")
      .def(
          py::init([](int ranks, const std::string& backend, const std::string& device, bool rank_order,
                      const std::optional<std::string>& folder, std::optional<uint32_t> max_blocks) {
            const std::string of =
                folder ? *folder
                       : py::module_::import("chorale._paths").attr("plans_folder")().cast<std::string>();
            const MakePlan make = [](const std::string& name, int number) { return make_plan(name, number); };
            return std::make_shared<TunedObject>(TunedObject{TunedPlans::installed(of,
                                                                                   {.ranks = ranks,
                                                                                    .backend = backend,
                                                                                    .device = device,
                                                                                    .rank_order = rank_order,
                                                                                    .max_blocks = max_blocks},
                                                                                   make)});
          }),
          py::arg("ranks"), py::arg("backend") = "cpu", py::arg("device") = "", py::arg("rank_order") = false,
          py::arg("folder") = py::none(), py::arg("max_blocks") = py::none())
      .def(
          "use",
          [](TunedObject& self, const PlanObject& plan, uint64_t least_bytes, uint64_t most_bytes,
             const std::optional<std::string>& packet) {
            self.plans.use({plan.plan, plan.plan->name, least_bytes, most_bytes, packet_of(packet)});
          },
          py::arg("plan"), py::arg("least_bytes") = 0, py::arg("most_bytes") = UINT64_MAX,
          py::arg("packet") = py::none(),
          "Adds a plan of your own, which is chosen before all others for messages of these bytes.\n\nRaises "
          "UsageError.")
      .def(
          "choose",
          [](const TunedObject& self, const std::string& collective, uint64_t bytes,
             const std::string& dtype) { return self.plans.choose(collective, bytes, dtype_of(dtype)); },
          py::arg("collective"), py::arg("bytes"), py::arg("dtype") = "f32",
          "Chooses a plan for a message.\n\nRaises UsageError.")
      .def("plan", &plan_of, py::arg("choice"),
           "Returns the plan of a choice. It reads or makes each plan once.")
      .def(
          "explain",
          [](const TunedObject& self, const std::string& collective, uint64_t bytes,
             const std::string& dtype) {
            std::vector<std::pair<std::string, std::string>> all;
            for (const TunedPlans::Passed& one : self.plans.explain(collective, bytes, dtype_of(dtype)))
              all.emplace_back(one.plan, one.reason);
            return all;
          },
          py::arg("collective"), py::arg("bytes"), py::arg("dtype") = "f32",
          "Returns the plans that choose() did not choose, as (plan, reason).");
}

}  // namespace chorale::python
