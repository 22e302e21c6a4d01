#pragma once

#include "abi.hpp"

/// The functions that this library serves. They have the names and the meanings that NCCL gives them. Those
/// with a result code may also throw, as outcome_of_exception() expects.
namespace chorale::nccl::served {

#define CHORALE_NCCL_DECLARE_served(result, name, parameters) result name parameters;
#define CHORALE_NCCL_DECLARE_refused(result, name, parameters)
#define CHORALE_NCCL(header, area, today, result, name, parameters, arguments, needed, check, ...) \
  CHORALE_NCCL_DECLARE_##today(result, name, parameters)
#include "functions.def"
#undef CHORALE_NCCL_DECLARE_served
#undef CHORALE_NCCL_DECLARE_refused

}  // namespace chorale::nccl::served
