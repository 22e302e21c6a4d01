#include "arrays.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pybind11/stl.h>

#include <array>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace py = pybind11;

namespace chorale::python {
namespace {

/// Pairs the names of NumPy and ml_dtypes with Chorale's types.
struct Named {
  std::string_view name;
  DType dtype;
};
constexpr std::array<Named, 12> numpy_names = {{{"float32", DType::f32},
                                                {"float16", DType::f16},
                                                {"bfloat16", DType::bf16},
                                                {"float64", DType::f64},
                                                {"int32", DType::i32},
                                                {"uint32", DType::u32},
                                                {"int64", DType::i64},
                                                {"uint64", DType::u64},
                                                {"uint8", DType::u8},
                                                {"int8", DType::i8},
                                                {"float8_e4m3fn", DType::fp8_e4m3},
                                                {"float8_e5m2", DType::fp8_e5m2}}};

std::optional<DType> named(std::string_view name) {
  for (const Named& known : numpy_names) {
    if (known.name == name) return known.dtype;
  }
  return std::nullopt;
}

// These are DLPack's structures, of https://dmlc.github.io/dlpack, as far as they are read here.
struct DlTensor {
  void* data;
  struct {
    int32_t type, id;
  } device;
  int32_t dimensions;
  struct {
    uint8_t code, bits;
    uint16_t lanes;
  } dtype;
  const int64_t* shape;
  const int64_t* strides;  // in elements; null: contiguous
  uint64_t byte_offset;
};
enum DlDevice : int32_t { dl_cpu = 1, dl_cuda = 2, dl_cuda_host = 3, dl_cuda_managed = 13 };

/// Returns NumPy's name of a type of DLPack.
std::string dl_name(uint8_t code, uint8_t bits) {
  constexpr std::string_view kinds[] = {"int", "uint", "float", "opaque", "bfloat", "complex", "bool"};
  const std::string kind =
      code < std::size(kinds) ? std::string(kinds[code]) : fmt::format("type {} of ", code);
  return kind + std::to_string(bits);
}

[[noreturn]] void refuse_strides(const std::string& what) {
  throw std::invalid_argument(
      what +
      " is not contiguous, and Chorale moves contiguous memory; pass numpy.ascontiguousarray(it), or "
      "its contiguous() for a tensor");
}

Memory from_dlpack(const py::handle& array, const std::string& what) {
  const py::object capsule = array.attr("__dlpack__")();
  const auto* const tensor =
      static_cast<const DlTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));  // it comes first
  if (!tensor) throw py::error_already_set();
  uint64_t elements = 1;
  for (int32_t axis = tensor->dimensions; axis-- > 0;) {
    if (tensor->strides && tensor->shape[axis] > 1 && uint64_t(tensor->strides[axis]) != elements)
      refuse_strides(what);
    elements *= uint64_t(tensor->shape[axis]);
  }
  const int32_t device = tensor->device.type;
  if (device != dl_cpu && device != dl_cuda && device != dl_cuda_host && device != dl_cuda_managed)
    throw std::invalid_argument(fmt::format(
        "{} is on a device of DLPack's type {}; Chorale takes memory of the CPU (1) and of CUDA (2)", what,
        device));
  Memory memory;
  memory.data = static_cast<std::byte*>(tensor->data) + tensor->byte_offset;
  memory.bytes = elements * tensor->dtype.bits * tensor->dtype.lanes / 8;
  memory.dtype_name = dl_name(tensor->dtype.code, tensor->dtype.bits);
  memory.dtype = named(memory.dtype_name);
  memory.on_gpu = device == dl_cuda;
  memory.owner = capsule;  // its destructor gives the memory back
  return memory;
}

/// Reads `__array_interface__`, or `__cuda_array_interface__`, which has the same keys.
Memory from_interface(const py::handle& array, const char* attribute, const std::string& what) {
  const py::dict interface = array.attr(attribute);
  uint64_t elements = 1;
  const auto shape = interface["shape"].cast<std::vector<uint64_t>>();
  for (const uint64_t extent : shape) elements *= extent;
  const auto type = interface["typestr"].cast<std::string>();
  const uint64_t width = std::stoull(type.substr(2));
  if (interface.contains("strides") && !interface["strides"].is_none()) {
    const auto strides = interface["strides"].cast<std::vector<int64_t>>();
    uint64_t expected = width;
    for (size_t axis = shape.size(); axis-- > 0;) {
      if (shape[axis] > 1 && uint64_t(strides[axis]) != expected) refuse_strides(what);
      expected *= shape[axis];
    }
  }
  Memory memory;
  const py::tuple data = interface["data"];
  memory.data = reinterpret_cast<std::byte*>(data[0].cast<uintptr_t>());
  memory.writable = !data[1].cast<bool>();
  memory.bytes = elements * width;
  memory.dtype_name = type;
  if (py::hasattr(array, "dtype")) {
    // The type of a tensor of PyTorch is called "torch.float32".
    const auto name = py::str(array.attr("dtype")).cast<std::string>();
    memory.dtype_name = name.substr(name.rfind('.') + 1);
  }
  memory.dtype = named(memory.dtype_name);
  memory.on_gpu = std::string_view(attribute) == "__cuda_array_interface__";
  memory.owner = py::reinterpret_borrow<py::object>(array);
  return memory;
}

}  // namespace

Memory memory_of(const py::handle& array, const std::string& what) {
  for (const char* const attribute : {"__array_interface__", "__cuda_array_interface__"}) {
    // An array that requires gradients, or that lives elsewhere, raises an error when it is asked.
    if (py::hasattr(array, attribute)) return from_interface(array, attribute, what);
  }
  if (py::hasattr(array, "__dlpack__")) return from_dlpack(array, what);
  throw py::type_error(fmt::format(
      "{} is of type {}; pass a NumPy array, or an array with __dlpack__ or __cuda_array_interface__", what,
      py::str(py::type::of(array).attr("__name__")).cast<std::string>()));
}

DType dtype_of(const Memory& memory, const std::optional<std::string>& word, const std::string& what) {
  if (!word) {
    if (memory.dtype) return *memory.dtype;
    std::vector<std::string_view> names;
    for (const Named& known : numpy_names) names.push_back(known.name);
    throw std::invalid_argument(fmt::format(
        "{} has elements of type {}, which Chorale does not move; it moves {}, and dtype='bf16' says "
        "what the elements are",
        what, memory.dtype_name, fmt::join(names, ", ")));
  }
  const DType dtype = dtype_of(*word);
  if (memory.bytes % dtype_size(dtype))
    throw std::invalid_argument(
        fmt::format("{} has {} bytes, which are not whole elements of {} ({} bytes each)", what, memory.bytes,
                    *word, dtype_size(dtype)));
  return dtype;
}

DType dtype_of(const std::string& word) {
  std::vector<const char*> words;
  for (const DType dtype : all_dtypes) {
    if (word == dtype_name(dtype)) return dtype;
    words.push_back(dtype_name(dtype));
  }
  if (const std::optional<DType> of_numpy = named(word)) return *of_numpy;
  throw std::invalid_argument(
      fmt::format("there is no type '{}'; types are {}", word, fmt::join(words, ", ")));
}

std::optional<ReduceOp> op_of(const std::optional<std::string>& word) {
  if (!word) return std::nullopt;
  std::vector<const char*> words;
  for (const ReduceOp op : all_reduce_ops) {
    if (*word == reduce_op_name(op)) return op;
    words.push_back(reduce_op_name(op));
  }
  throw std::invalid_argument(
      fmt::format("there is no operator '{}'; operators are {}", *word, fmt::join(words, ", ")));
}

}  // namespace chorale::python
