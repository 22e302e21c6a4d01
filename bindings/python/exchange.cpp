#include "chorale/exchange.hpp"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "objects.hpp"
#include "world.hpp"

namespace py = pybind11;

namespace chorale::python {
namespace {

class ExchangeObject : public Made<Exchange> {
 public:
  using Messages = std::vector<std::pair<py::object, int>>;
  using Made::Made;

  void exchange(const Messages& sends, const Messages& recvs, uintptr_t stream) const {
    Exchange& exchange = get();
    std::vector<SendTo> out;
    std::vector<RecvFrom> in;
    for (const auto& [array, peer] : sends) {
      const Memory memory = memory_of(array, fmt::format("the message to rank {}", peer));
      out.push_back({memory.data, memory.bytes, peer});
    }
    for (const auto& [array, peer] : recvs) {
      const Memory memory = memory_of(array, fmt::format("the message from rank {}", peer));
      if (!memory.writable)
        throw std::invalid_argument(
            fmt::format("the array for the message from rank {} is read-only; pass a writable one", peer));
      in.push_back({memory.data, memory.bytes, peer});
    }
    py::gil_scoped_release release;
    exchange.exchange(out, in, stream_of(stream));
  }
};

}  // namespace

void declare_exchange(py::module_& module) {
  py::class_<ExchangeObject>(module, "Exchange",
                             "Moves messages whose sizes the host knows. Messages between two ranks match in "
                             "order, and sender and receiver name "
                             "the same size. slot_bytes, slots and blocks_per_peer size its rings; 0: the "
                             "library chooses. Further keywords are "
                             "settings.\n\nRaises UsageError, RunError.")
      .def(py::init([](const SharedWorld& world, uint64_t slot_bytes, uint32_t slots,
                       uint32_t blocks_per_peer, const py::kwargs& keywords) {
             return std::make_unique<ExchangeObject>(
                 world, ExchangeOptions{slot_bytes, slots, blocks_per_peer}, config_from(keywords));
           }),
           py::arg("world"), py::arg("slot_bytes") = 0, py::arg("slots") = 0, py::arg("blocks_per_peer") = 0)
      .def("exchange", &ExchangeObject::exchange, py::arg("sends"), py::arg("recvs"), py::arg("stream") = 0,
           "Moves all messages at once. sends and recvs are lists of (array, peer).\n\nRaises UsageError, "
           "RunError.")
      .def(
          "send",
          [](const ExchangeObject& self, const py::object& array, int peer, uintptr_t stream) {
            self.exchange({{array, peer}}, {}, stream);
          },
          py::arg("array"), py::arg("peer"), py::arg("stream") = 0,
          "Sends an array to a rank, which calls recv() with an array of as many bytes. On the CPU it "
          "returns when the "
          "array may be changed; with CUDA it only enqueues on the stream. Raises UsageError for a peer that "
          "does "
          "not exist, RunError if a wait times out or the peer has left.")
      .def(
          "recv",
          [](const ExchangeObject& self, const py::object& array, int peer, uintptr_t stream) {
            self.exchange({}, {{array, peer}}, stream);
          },
          py::arg("array"), py::arg("peer"), py::arg("stream") = 0,
          "Receives an array from a rank, as the counterpart of its send(). On the CPU it returns when the "
          "array has "
          "arrived; with CUDA it only enqueues on the stream. Raises as send().")
      .def(
          "synchronize",
          [](ExchangeObject& self, uintptr_t stream) { self.get().synchronize(stream_of(stream)); },
          py::arg("stream") = 0, py::call_guard<py::gil_scoped_release>(),
          "Waits until the work on the stream has ended. Raises the error of that work.")
      .def(
          "check", [](ExchangeObject& self) { self.get().check(); },
          "Raises the error of earlier messages, if there was one. Never blocks.")
      .def(
          "reset", [](ExchangeObject& self) { self.get().reset(); }, py::call_guard<py::gil_scoped_release>(),
          "Clears the rings; collective, after World.reset().");
}

}  // namespace chorale::python
