// This file gives Python the collectives of chorale.language.

#include <fmt/format.h>
#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "chorale/dsl.hpp"
#include "language.hpp"

namespace py = pybind11;

namespace chorale::python {
namespace {

template <class Kind>
struct Standard : dsl::Collective {
  Standard(int64_t ranks, int64_t chunk_factor, bool inplace)
      : dsl::Collective(Kind{.ranks = ranks, .chunk_factor = chunk_factor, .inplace = inplace}) {}
};
template <class Kind>
struct Rooted : dsl::Collective {
  Rooted(int64_t ranks, int64_t chunk_factor, bool inplace, int64_t root)
      : dsl::Collective(
            Kind{.ranks = ranks, .root = root, .chunk_factor = chunk_factor, .inplace = inplace}) {}
};
struct TestOf : dsl::Collective {
  TestOf(int64_t ranks, int64_t input, int64_t output)
      : dsl::Collective(dsl::TestCollective{.ranks = ranks, .input = input, .output = output}) {}
};
struct CustomOf : dsl::Collective {
  using Post = std::function<std::vector<std::pair<uint32_t, uint64_t>>(int64_t, int64_t)>;
  CustomOf(int64_t ranks, int64_t input, int64_t output, const Post& post, bool inplace)
      : dsl::Collective(dsl::Custom{.ranks = ranks,
                                    .input = input,
                                    .output = output,
                                    .post =
                                        [post](int64_t rank, int64_t chunk) {
                                          std::vector<Contribution> all;
                                          for (const auto& [from, index] : post(rank, chunk))
                                            all.push_back({from, index});
                                          return all;
                                        },
                                    .inplace = inplace}) {}
};

template <class Kind>
void declare_standard(py::module_& module, const char* name, const char* summary) {
  py::class_<Standard<Kind>, dsl::Collective>(module, name, summary)
      .def(py::init<int64_t, int64_t, bool>(), py::arg("num_ranks"), py::arg("chunk_factor") = 1,
           py::arg("inplace") = false);
}

template <class Kind>
void declare_rooted(py::module_& module, const char* name, const char* summary) {
  py::class_<Rooted<Kind>, dsl::Collective>(module, name, summary)
      .def(py::init<int64_t, int64_t, bool, int64_t>(), py::arg("num_ranks"), py::arg("chunk_factor") = 1,
           py::arg("inplace") = false, py::arg("root") = 0);
}

}  // namespace

void declare_collectives(py::module_& module) {
  py::class_<dsl::Collective>(module, "Collective",
                              "Says what a program computes, and how many chunks its buffers have.")
      .def_readonly("name", &dsl::Collective::name)
      .def_readonly("num_ranks", &dsl::Collective::ranks)
      .def_readonly("chunk_factor", &dsl::Collective::chunk_factor)
      .def_readonly("inplace", &dsl::Collective::inplace)
      .def("__repr__", [](const dsl::Collective& self) {
        return fmt::format("<chorale.language collective {} of {} ranks, chunk factor {}>", self.name,
                           self.ranks, self.chunk_factor);
      });
  declare_standard<dsl::AllGather>(
      module, "AllGather",
      "Gives every rank the inputs of all ranks, in rank order. Input and output have "
      "chunk_factor and num_ranks * chunk_factor chunks.");
  declare_standard<dsl::AllReduce>(
      module, "AllReduce",
      "Gives every rank the sum of all inputs. Input and output have num_ranks * "
      "chunk_factor chunks each.");
  declare_standard<dsl::ReduceScatter>(
      module, "ReduceScatter",
      "Gives rank r part r of the sum of all inputs. Input and output have num_ranks * "
      "chunk_factor and chunk_factor chunks.");
  declare_standard<dsl::AllToAll>(
      module, "AllToAll",
      "Gives rank r part r of every input, in rank order. Input and output have num_ranks * "
      "chunk_factor chunks each.");
  declare_standard<dsl::SendRecv>(
      module, "SendRecv",
      "Lets the program choose which rank receives whose input. Input and output have "
      "chunk_factor chunks each.");
  declare_rooted<dsl::Broadcast>(
      module, "Broadcast",
      "Gives every rank the input of rank root. Input and output have chunk_factor chunks each.");
  declare_rooted<dsl::Reduce>(
      module, "Reduce",
      "Gives rank root the sum of all inputs. Input and output have chunk_factor chunks each. "
      "Nothing is promised about the outputs of the other ranks.");
  py::class_<TestOf, dsl::Collective>(
      module, "TestCollective",
      "Has input_size and output_size chunks. It promises nothing about the output.")
      .def(py::init<int64_t, int64_t, int64_t>(), py::arg("num_ranks"), py::arg("input_size"),
           py::arg("output_size"));
  py::class_<CustomOf, dsl::Collective>(module, "Custom",
                                        "Has input_size and output_size chunks, and the author's own "
                                        "promise, which is proved: output chunk `chunk` of "
                                        "rank `rank` is the sum of the inputs that post(rank, chunk) lists "
                                        "as (rank, chunk). A list of one entry means a "
                                        "copy. An empty list leaves the chunk undefined.")
      .def(py::init<int64_t, int64_t, int64_t, const CustomOf::Post&, bool>(), py::arg("num_ranks"),
           py::arg("input_size"), py::arg("output_size"), py::arg("post"), py::arg("inplace") = false);
}

}  // namespace chorale::python
