#include <type_traits>

#include "abi.hpp"
#include "arguments.hpp"
#include "calls.hpp"
#include "fallback.hpp"
#include "last_error.hpp"
#include "served.hpp"

// This file makes the exported functions of functions.def. As in NCCL, the pnccl twin is the function itself,
// and the other name is a weak alias of it, so that a profiler can define that name and call the twin.
namespace chorale::nccl {
namespace {

/// Notes that a call failed in the fallback, so that ncclGetLastError() asks there.
template <class... Arguments>
void note_failure(ncclResult_t result, const Arguments&...) {
  if (result != ncclSuccess && result != ncclInProgress) last_error_is_in_fallback();
}

/// ncclCommGetAsyncError() may succeed and report the failure of an earlier call.
void note_failure(ncclResult_t result, ncclComm_t, ncclResult_t* asynchronous) {
  note_failure(result == ncclSuccess && asynchronous ? *asynchronous : result);
}

/// Calls the fallback.
template <class Result, class... Parameters>
Result forward(Function function, Result (*real)(Parameters...),
               std::type_identity_t<Parameters>... arguments) {
  count(function, Answer::fallback);
  if constexpr (std::is_void_v<Result>) {
    real(arguments...);
  } else {
    const Result result = real(arguments...);
    if constexpr (std::is_same_v<Result, ncclResult_t>) note_failure(result, arguments...);
    return result;
  }
}

/// Ends a call that goes to no library. A function without a result code returns what no success returns: no
/// team, no rank.
template <class Result>
Result end(Function function, const Checked& null, const Checked& checked) {
  const ncclResult_t result = refuse(function, null, checked);
  if constexpr (std::is_same_v<Result, ncclResult_t>) return result;
  if constexpr (std::is_same_v<Result, int>) return -1;
  if constexpr (std::is_same_v<Result, ncclTeam_t>) return {0, -1, 0};
}

}  // namespace
}  // namespace chorale::nccl

#define CHORALE_NCCL_MORE(...) __VA_OPT__(, ) __VA_ARGS__
#define CHORALE_NCCL_NAMES(...) #__VA_ARGS__

#define CHORALE_NCCL_TRY_FALLBACK(result, name, parameters, arguments) \
  if (const auto real = fallback::find<result parameters>(Function::name)) { \
    return forward(Function::name, real CHORALE_NCCL_MORE arguments); \
  }
#define CHORALE_NCCL_served(result, name, parameters, arguments, needed, check) \
  count(Function::name, Answer::served); \
  return served::name arguments;
#define CHORALE_NCCL_either(result, name, parameters, arguments, needed, check) \
  CHORALE_NCCL_TRY_FALLBACK(result, name, parameters, arguments) \
  CHORALE_NCCL_served(result, name, parameters, arguments, needed, check)
#define CHORALE_NCCL_refused(result, name, parameters, arguments, needed, checked) \
  CHORALE_NCCL_TRY_FALLBACK(result, name, parameters, arguments) \
  return end<result>(Function::name, first_null(CHORALE_NCCL_NAMES needed CHORALE_NCCL_MORE needed), \
                     check::checked arguments);

#define CHORALE_NCCL(header, area, today, result, name, parameters, arguments, needed, check) \
  extern "C" { \
  __attribute__((visibility("default"))) result p##name parameters { \
    CHORALE_NCCL_##today(result, name, parameters, arguments, needed, check) \
  } \
  __attribute__((visibility("default"), weak, alias("p" #name))) result name parameters; \
  }
using namespace chorale::nccl;
#include "functions.def"
