#pragma once
/// \file
/// This header has the names that all headers of the language use.

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "chorale/compile.hpp"
#include "chorale/plan.hpp"
#include "chorale/types.hpp"

namespace chorale::dsl {

using chorale::BufferKind;
using chorale::Codec;
using chorale::CodecFormat;
using chorale::Contribution;
using chorale::Diagnostic;
using chorale::Diagnostics;
using chorale::Plan;
using chorale::Protocol;
using chorale::ReduceOp;
using chorale::ReplicationPolicy;
using chorale::SyncType;
using chorale::Target;

/// MSCCL++ uses these names for two of the types above.
using BufferType = chorale::BufferKind;
using ReduceOperationType = chorale::ReduceOp;

class Program;
/// Holds the plan and the findings of a Program so far. It is private to dsl/.
class Recording;

/// Holds the caller's line. A default argument takes it, so leave it out. (Clang 14 has no
/// std::source_location.)
struct Here {
  const char* file;
  uint32_t line;
  bool in_python = false;  ///< the caller is in Python, where some arguments have other names
  static constexpr Here current(const char* file = __builtin_FILE(), uint32_t line = __builtin_LINE()) {
    return {file, line};
  }
};

/// Lists ranks or thread blocks: {0, 1}, or a vector of any integer type.
class NumberList {
 public:
  NumberList() = default;
  NumberList(std::initializer_list<int64_t> numbers) : numbers_(numbers) {}
  template <std::integral Number>
  NumberList(const std::vector<Number>& numbers) : numbers_(numbers.begin(), numbers.end()) {}

  const std::vector<int64_t>& numbers() const { return numbers_; }

 private:
  std::vector<int64_t> numbers_;
};

}  // namespace chorale::dsl
