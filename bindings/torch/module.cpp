// Binds the functions that chorale_torch.py calls.

#include <torch/extension.h>

#include <chorale/collective.hpp>
#include <chorale/compile.hpp>
#include <chorale/diagnostic.hpp>
#include <chorale/json.hpp>
#include <chorale/make_plan.hpp>
#include <chorale/proof.hpp>

#include "backend.hpp"
#include "types.hpp"

namespace chorale::torch_backend {
namespace {

/// Loads and checks a plan.
/// \param prove  true to prove the plan, except for the proofs that `allow` names
/// \throws std::invalid_argument with the findings; otherwise as chorale::load() does
std::shared_ptr<Plan> load_plan(const std::string& file, bool prove, const std::vector<std::string>& allow) {
  auto plan = std::make_shared<Plan>(load(file));
  Diagnostics findings = check(*plan);
  if (findings.empty() && prove) findings = prove_plan(*plan, allow).diagnostics();
  if (!findings.empty()) throw std::invalid_argument(render(*plan, findings));
  return plan;
}

std::shared_ptr<Plan> made_plan(const std::string& name, int ranks,
                                const dsl::Parameters::Settings& settings) {
  return std::make_shared<Plan>(make_plan(name, ranks, settings));
}

c10::intrusive_ptr<c10d::Work> run_plan(const BackendPointer& backend, const std::shared_ptr<Plan>& plan,
                                        const at::Tensor& in, const at::Tensor& out,
                                        const std::optional<c10d::ReduceOp>& op, bool async) {
  return run(backend, SharedPlan(plan), in, out, op ? std::optional(op_of(*op, in)) : std::nullopt, async);
}

void use(const BackendPointer& backend, const std::shared_ptr<Plan>& plan, uint64_t least, uint64_t most) {
  communicator_of(backend).use(plan, least, most);
}

std::string chosen(const BackendPointer& backend, const std::string& collective, const at::Tensor& like) {
  const CollectiveInfo& info = collective_info(collective);
  const uint64_t parts = info.counts_output() ? info.output_parts(uint64_t(backend->getSize())) : 1;
  const uint64_t bytes = like.nbytes() * parts;  // the bytes of a message, as in tables
  const DType dtype = collective_reduces(collective) ? dtype_of(like) : DType::u8;
  return communicator_of(backend).chosen(collective, bytes, dtype, like);
}

at::Tensor empty(const BackendPointer& backend, const std::vector<int64_t>& shape, const at::Tensor& like) {
  return communicator_of(backend).empty(shape, like.scalar_type(), like.device());
}

}  // namespace
}  // namespace chorale::torch_backend

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  using namespace chorale;
  using namespace chorale::torch_backend;
  using Unlocked = pybind11::call_guard<pybind11::gil_scoped_release>;
  pybind11::class_<Plan, std::shared_ptr<Plan>>(module, "Plan")
      .def_readonly("name", &Plan::name)
      .def_readonly("collective", &Plan::collective)
      .def_property_readonly("ranks", &Plan::ranks);
  module.def("create", &create, Unlocked());
  module.def("load", &load_plan, Unlocked());
  module.def("make", &made_plan, Unlocked());
  module.def("run", &run_plan, Unlocked());
  module.def("use", &use, Unlocked());
  module.def("chosen", &chosen, Unlocked());
  module.def("empty", &torch_backend::empty, Unlocked());
}
