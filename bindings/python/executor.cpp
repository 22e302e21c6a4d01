#include "chorale/executor.hpp"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "arrays.hpp"
#include "chorale/collective.hpp"
#include "chorale/layout.hpp"
#include "objects.hpp"
#include "world.hpp"

namespace py = pybind11;

namespace chorale::python {
namespace {

class ExecutorObject : public Made<Executor> {
 public:
  ExecutorObject(SharedWorld world, const Config& config)
      : Made(std::move(world), config), on_gpu_(config.backend.value == "cuda") {}

  bool on_gpu() const { return on_gpu_; }

  Arguments arguments(const Plan& plan, const py::handle& input, const py::handle& output,
                      std::optional<uint64_t> bytes, const std::optional<std::string>& dtype,
                      const std::optional<std::string>& op, const std::optional<std::string>& packet) const {
    const Memory in = memory_of(input, "input"), out = memory_of(output, "output");
    const DType type = dtype_of(in, dtype, "input");
    if (!dtype && in.dtype != out.dtype)
      throw std::invalid_argument(
          fmt::format("input has elements of {} and output of {}; pass arrays of one type", in.dtype_name,
                      out.dtype_name));
    for (const auto& [memory, what] : {std::pair(&in, "input"), std::pair(&out, "output")}) {
      if (memory->on_gpu != on_gpu_)
        throw std::invalid_argument(fmt::format("{} is memory of {}, but this executor runs on {}", what,
                                                memory->on_gpu ? "a GPU" : "the CPU",
                                                on_gpu_ ? "a GPU" : "the CPU"));
    }
    if (!out.writable) throw std::invalid_argument("output is read-only; pass a writable array");
    const uint64_t message = bytes                                              ? *bytes
                             : collective_info(plan.collective).counts_output() ? out.bytes
                                                                                : in.bytes;
    const MessageSizes sizes = message_sizes(plan, message, type);
    const bool too_short = in.bytes < sizes.input || out.bytes < sizes.output;
    const bool too_long = in.bytes > sizes.input || out.bytes > sizes.output;
    // An array that is longer than the message is mostly a mistake, such as the output of an all-gather
    // passed as the input. With `bytes` the caller knows the size of the message.
    if (too_short || (too_long && !bytes))
      throw std::invalid_argument(fmt::format(
          "a message of {0} bytes of plan '{1}' has an input of {2} bytes and an output of {3}, but these "
          "have "
          "{4} and {5}; pass arrays of {2} and {3} bytes{6}",
          message, plan.name, sizes.input, sizes.output, in.bytes, out.bytes,
          too_short ? "" : fmt::format(", or bytes={} to use only the beginning of longer ones", message)));
    return {.in = in.data,
            .out = out.data,
            .bytes = message,
            .dtype = type,
            .op = op_of(op),
            .packet = packet_of(packet)};
  }

 private:
  bool on_gpu_;
};

/// Holds memory of Executor::allocate(), which lives as long as the executor.
struct Allocation {
  std::shared_ptr<ExecutorObject> executor;
  void* data;
  uint64_t bytes;
};

py::dict interface_of(const Allocation& self) {
  py::dict all;
  all["shape"] = py::make_tuple(self.bytes);
  all["typestr"] = "|u1";
  all["data"] = py::make_tuple(reinterpret_cast<uintptr_t>(self.data), false);
  all["version"] = 3;
  return all;
}

}  // namespace

void declare_executor(py::module_& module) {
  py::class_<Allocation>(
      module, "Allocation",
      "Zeroed memory that peers can access directly, as bytes. numpy.asarray(it) on the CPU, and "
      "cupy.asarray(it) or torch.as_tensor(it) on GPUs, make an array of it.")
      .def("__getattr__",
           [](const Allocation& self, const std::string& name) {
             if (name == (self.executor->on_gpu() ? "__cuda_array_interface__" : "__array_interface__"))
               return interface_of(self);
             PyErr_SetString(PyExc_AttributeError, ("an Allocation has no attribute '" + name + "'").c_str());
             throw py::error_already_set();
           })
      .def("__len__", [](const Allocation& self) { return self.bytes; });
  py::class_<ExecutorObject, std::shared_ptr<ExecutorObject>>(
      module, "Executor",
      "Runs plans on one rank. All ranks make the same calls in the same order. Keywords are settings "
      "(docs/settings.md), such as backend='cuda'.\n\nRaises UsageError.")
      .def(py::init([](const SharedWorld& world, const py::kwargs& keywords) {
             return std::make_shared<ExecutorObject>(world, config_from(keywords));
           }),
           py::arg("world"))
      .def(
          "execute",
          [](ExecutorObject& self, const PlanObject& plan, const py::object& input, const py::object& output,
             std::optional<uint64_t> bytes, const std::optional<std::string>& dtype,
             const std::optional<std::string>& op, const std::optional<std::string>& packet,
             uintptr_t stream) {
            const Arguments arguments = self.arguments(*plan.plan, input, output, bytes, dtype, op, packet);
            py::gil_scoped_release release;
            self.get().execute(*plan.plan, arguments, stream_of(stream));
          },
          py::arg("plan"), py::arg("input"), py::arg("output"), py::arg("bytes") = py::none(),
          py::arg("dtype") = py::none(), py::arg("op") = py::none(), py::arg("packet") = py::none(),
          py::arg("stream") = 0,
          "Runs a plan once. Input and output are contiguous arrays: NumPy's, or with DLPack or "
          "__cuda_array_interface__.\n\n"
          "bytes: size of the message, that of the input, and for all-gather that of the output; default: "
          "the array's. With it, arrays may be longer than the message, and only their beginning is used.\n"
          "dtype: 'f32', 'bf16', ...; default: the array's.\n"
          "op: replaces the plan's operator: 'sum', 'min', 'max', 'prod', 'avg'.\n"
          "packet: 'll8', 'll16', 'll128'; default: the setting's.\n"
          "stream: a cudaStream_t as a number; with CUDA the call only enqueues.\n\n"
          "On the CPU it returns when this rank's part has ended. Raises UsageError, RunError.")
      .def(
          "prepare",
          [](ExecutorObject& self, const PlanObject& plan, const py::object& input, const py::object& output,
             std::optional<uint64_t> bytes, const std::optional<std::string>& dtype,
             const std::optional<std::string>& op, const std::optional<std::string>& packet) {
            const Arguments arguments = self.arguments(*plan.plan, input, output, bytes, dtype, op, packet);
            py::gil_scoped_release release;
            self.get().prepare(*plan.plan, arguments);
          },
          py::arg("plan"), py::arg("input"), py::arg("output"), py::arg("bytes") = py::none(),
          py::arg("dtype") = py::none(), py::arg("op") = py::none(), py::arg("packet") = py::none(),
          "Binds without running, so that the next execute() only launches.")
      .def(
          "synchronize",
          [](ExecutorObject& self, uintptr_t stream) { self.get().synchronize(stream_of(stream)); },
          py::arg("stream") = 0, py::call_guard<py::gil_scoped_release>(),
          "Waits for the stream, and raises the error of an earlier run.")
      .def(
          "check", [](ExecutorObject& self) { self.get().check(); },
          "Raises the error of an earlier run, if there was one. Never blocks.")
      .def(
          "allocate",
          [](const std::shared_ptr<ExecutorObject>& self, uint64_t bytes) {
            void* data = nullptr;
            {
              py::gil_scoped_release release;
              data = self->get().allocate(bytes);
            }
            return Allocation{self, data, bytes};
          },
          py::arg("bytes"),
          "Returns zeroed memory that peers can access directly; collective if ranks are processes.")
      .def(
          "trace", [](ExecutorObject& self) { return self.get().trace(); },
          "Returns the TraceSpans of this rank, of the last launches that the setting trace=N keeps.");
}

}  // namespace chorale::python
