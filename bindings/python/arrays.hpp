/// \file
/// Memory of Python's arrays: NumPy's, and those with DLPack or __cuda_array_interface__.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "chorale/types.hpp"

namespace chorale::python {

/// Holds contiguous elements of a Python object.
struct Memory {
  std::byte* data = nullptr;
  uint64_t bytes = 0;
  std::optional<DType> dtype;  ///< nothing: the array's type is none of Chorale's
  std::string dtype_name;      ///< for messages: "float32"
  bool writable = true;
  bool on_gpu = false;
  pybind11::object owner;  ///< keeps the elements alive
};

/// Returns the memory of an array.
/// \param what  its name in messages, such as "input of rank 0"
/// \throws pybind11::type_error if it is no array
/// \throws std::invalid_argument if its elements are not contiguous
Memory memory_of(const pybind11::handle& array, const std::string& what);

/// Returns the element type of a call: the word that the caller gave, else that of the array.
/// \throws std::invalid_argument if there is no such type, or if its elements have another size
DType dtype_of(const Memory& memory, const std::optional<std::string>& word, const std::string& what);

/// Returns the type, operator or form of packets of a word.
/// \throws std::invalid_argument with the words that exist
DType dtype_of(const std::string& word);
std::optional<ReduceOp> op_of(const std::optional<std::string>& word);

}  // namespace chorale::python
