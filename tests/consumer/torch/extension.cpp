// This PyTorch extension runs Chorale's plans on tensors.
#include <torch/extension.h>

#include <chorale/executor.hpp>
#include <chorale/json.hpp>
#include <memory>
#include <string>

namespace {

chorale::DType dtype_of(const torch::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case torch::kFloat:
      return chorale::DType::f32;
    case torch::kHalf:
      return chorale::DType::f16;
    case torch::kBFloat16:
      return chorale::DType::bf16;
    case torch::kDouble:
      return chorale::DType::f64;
    case torch::kInt:
      return chorale::DType::i32;
    case torch::kLong:
      return chorale::DType::i64;
    case torch::kByte:
      return chorale::DType::u8;
    case torch::kChar:
      return chorale::DType::i8;
    default:
      throw std::invalid_argument(std::string("Chorale has no type for tensors of ") +
                                  c10::toString(tensor.scalar_type()));
  }
}

/// \throws ValueError in Python
void require(bool holds, const std::string& otherwise) {
  if (!holds) throw std::invalid_argument(otherwise);
}

chorale::Config config_for(const std::string& backend) {
  chorale::Config config = chorale::Config::load();
  config.backend = backend;
  return config;
}

/// Stands for one rank. Its GPU is the device that is current when it is made.
class Communicator {
 public:
  Communicator(const std::string& address, int rank, int ranks, const std::string& backend)
      : config_(config_for(backend)),
        world_(chorale::World::join(address, rank, ranks, config_.join())),
        executor_(world_, config_) {}

  /// \param stream  torch.cuda.current_stream().cuda_stream; 0 for CPU tensors
  void run(const chorale::Plan& plan, const torch::Tensor& in, torch::Tensor out, uintptr_t stream) {
    require(in.is_contiguous() && out.is_contiguous(), "Chorale needs contiguous tensors");
    require(in.scalar_type() == out.scalar_type(), "input and output have different types");
    require(in.is_cuda() == (config_.backend.value == "cuda") && out.device() == in.device(),
            "this communicator is for tensors on " + config_.backend.value);
    // MSCCL++ and nccl-tests count the larger buffer for all-gather, and the input for everything else.
    const uint64_t bytes = plan.collective == "allgather" ? out.nbytes() : in.nbytes();
    const chorale::MessageSizes sizes = chorale::message_sizes(plan, bytes, dtype_of(in));
    require(in.nbytes() == sizes.input && out.nbytes() == sizes.output,
            "plan '" + plan.name + "' turns " + std::to_string(sizes.input) + " bytes into " +
                std::to_string(sizes.output) + ", but the tensors have " + std::to_string(in.nbytes()) +
                " and " + std::to_string(out.nbytes()));
    py::gil_scoped_release others_may_run;
    executor_.execute(plan,
                      {.in = in.data_ptr(), .out = out.data_ptr(), .bytes = bytes, .dtype = dtype_of(in)},
                      reinterpret_cast<void*>(stream));
  }

  /// Waits for the stream, and raises the error of a run that has failed.
  void synchronize(uintptr_t stream) {
    py::gil_scoped_release others_may_run;
    executor_.synchronize(reinterpret_cast<void*>(stream));
  }

  void barrier() {
    py::gil_scoped_release others_may_run;
    world_.barrier();
  }

 private:
  chorale::Config config_;
  chorale::World world_;
  chorale::Executor executor_;
};

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  py::class_<chorale::Plan>(module, "Plan")
      .def_readonly("name", &chorale::Plan::name)
      .def_readonly("collective", &chorale::Plan::collective)
      .def_property_readonly("ranks", [](const chorale::Plan& plan) { return plan.ranks(); });
  module.def(
      "load", [](const std::string& path) { return chorale::load(path); }, "A plan from a file");
  py::class_<Communicator>(module, "Communicator")
      .def(py::init<const std::string&, int, int, const std::string&>(), py::arg("address"), py::arg("rank"),
           py::arg("ranks"), py::arg("backend"))
      .def("run", &Communicator::run, py::arg("plan"), py::arg("input"), py::arg("output"),
           py::arg("stream") = 0)
      .def("synchronize", &Communicator::synchronize, py::arg("stream") = 0)
      .def("barrier", &Communicator::barrier);
}
