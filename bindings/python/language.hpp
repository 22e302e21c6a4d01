/// \file
/// This file has the objects of a program in chorale.language, and what declares them.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <utility>

#include "chorale/dsl.hpp"

namespace chorale::python {

struct ProgramObject {
  dsl::Program program;
  dsl::Collective collective;
};
using SharedProgram = std::shared_ptr<ProgramObject>;

/// Holds an object of a program, and the program, which has to live as long.
template <class Kind>
struct Of {
  SharedProgram program;
  Kind it;
};
using RankOf = Of<dsl::Rank>;
using SemaphoreOf = Of<dsl::Semaphore>;
using MemoryChannelOf = Of<dsl::MemoryChannel>;
using PortChannelOf = Of<dsl::PortChannel>;
using SwitchChannelOf = Of<dsl::SwitchChannel>;
using RankViewOf = Of<dsl::SwitchChannel::RankView>;
using BufferOf = Of<dsl::BaseBuffer>;
/// Buffer(rank, size) reserves scratch. It has a type of its own, as in MSCCL++.
struct ScratchOf : BufferOf {};

/// Returns the program of the innermost `with` block of this thread.
/// \param what  the object to be made, for the message
/// \throws std::runtime_error if there is none
const SharedProgram& current(const char* what);

/// Declares the two constructors of an object of a program.
template <class Handle, class... Numbers, class Class, class Make, class... Names>
void declare_made(Class& of, const char* what, const Make& make, const Names&... names) {
  of.def(pybind11::init([what, make](Numbers... numbers) {
           const SharedProgram program = current(what);
           return make(program, std::move(numbers)...);
         }),
         names...);
  of.def(pybind11::init([make](const SharedProgram& program, Numbers... numbers) {
           return make(program, std::move(numbers)...);
         }),
         pybind11::arg("program"), names...);
}

void declare_collectives(pybind11::module_&);
void declare_program(pybind11::module_&);

}  // namespace chorale::python
