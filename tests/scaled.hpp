/// \file
/// Runs Executor::scale() on elements of all types, at aligned and at other addresses, and compares the
/// products with those of the oracle.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "chorale/executor.hpp"
#include "tests/cpu/oracle.hpp"

namespace chorale::test {

/// Returns the products of all elements and a factor.
inline oracle::Bytes products(DType dtype, const oracle::Bytes& elements, const std::byte* factor) {
  oracle::Bytes all(elements.size());
  oracle::with_type(dtype, [&](auto type) {
    using Type = decltype(type);
    for (size_t at = 0; at < elements.size(); at += sizeof(typename Type::Word)) {
      oracle::store<Type>(&all[at], oracle::combine(ReduceOp::prod, oracle::load<Type>(&elements[at]),
                                                    oracle::load<Type>(factor)));
    }
  });
  return all;
}

/// Describes a call of Executor::scale(). The buffers begin `shift` bytes after an address that suits every
/// load.
struct ScaleCase {
  DType dtype;
  uint64_t elements, shift;
  bool in_place, at_address;
  oracle::Bytes input, factor;
};

/// Calls `run` for each case, which returns the output, and returns what is wrong; "" if nothing is.
inline std::string scale_wrongly(const std::function<oracle::Bytes(const ScaleCase&)>& run) {
  uint64_t seed = 0;
  for (const DType dtype : all_dtypes) {
    const uint64_t width = dtype_size(dtype);
    for (const uint64_t elements : {1u, 15u, 333u, 100003u}) {
      for (const uint64_t shift : {uint64_t(0), width, uint64_t(1)}) {
        ScaleCase of{dtype, elements, shift, ++seed % 2 == 0, seed / 2 % 2 == 0, {}, {}};
        of.input = oracle::random_elements(dtype, elements * width, seed);
        of.factor = oracle::random_elements(dtype, width, seed + 1000);
        const std::string wrong =
            oracle::difference(run(of).data(), products(dtype, of.input, of.factor.data()), dtype);
        if (wrong.empty()) continue;
        return std::string(dtype_name(dtype)) + ", " + std::to_string(elements) + " elements, shift " +
               std::to_string(shift) + (of.in_place ? ", in place" : "") +
               (of.at_address ? ", factor in memory" : "") + ": " + wrong;
      }
    }
  }
  return "";
}

/// Returns the factor of a case as scale() takes it.
/// \param at  where the factor is in memory of the device
inline Factor factor_of(const ScaleCase& of, const void* at) {
  Factor factor;
  if (of.at_address) {
    factor.at = at;
  } else {
    std::memcpy(&factor.value, of.factor.data(), of.factor.size());
  }
  return factor;
}

}  // namespace chorale::test
