#include <type_traits>

#include "abi.hpp"
#include "arguments.hpp"
#include "calls.hpp"
#include "fallback.hpp"
#include "last_error.hpp"
#include "outcome.hpp"
#include "served.hpp"

// This file makes the exported functions of functions.def. As in NCCL, the pnccl twin is the function itself,
// and the other name is a weak alias of it, so that a profiler can define that name and call the twin.
namespace chorale::nccl {
namespace {

/// Calls the fallback.
template <class Result, class... Parameters>
Result forward(Function function, Result (*real)(Parameters...),
               std::type_identity_t<Parameters>... arguments) {
  count(function, Answer::fallback);
  if constexpr (std::is_same_v<Result, ncclResult_t>) {
    const Result result = real(arguments...);
    if (result != ncclSuccess) last_error_is_in_fallback();
    return result;
  } else {
    return real(arguments...);
  }
}

/// Says whether a function has a parameter that is a communicator.
template <class Signature>
constexpr bool mentions_communicator = false;
template <class Result, class... Parameters>
constexpr bool mentions_communicator<Result(Parameters...)> =
    (std::is_same_v<std::remove_cv_t<Parameters>, ncclComm_t> || ...);

/// Ends a call that goes to no library. A function without a result code returns what no success returns: no
/// team, no rank.
template <class Result>
Result end(Function function, const Checked& null, const Checked& checked, bool may_fall_back = false) {
  const ncclResult_t result = refuse(function, null, checked, may_fall_back);
  if constexpr (std::is_same_v<Result, ncclResult_t>) return result;
  if constexpr (std::is_same_v<Result, int>) return -1;
  if constexpr (std::is_same_v<Result, ncclTeam_t>) return {0, -1, 0};
  if constexpr (std::is_same_v<Result, const char*>) return "";
}

/// Serves a call, unless `null` or `checked` decide it.
template <class Result, class Body>
Result serve(Function function, const Checked& null, const Checked& checked, const Body& body) {
  if (null || checked) return end<Result>(function, null, checked);
  count(function, Answer::served);
  if constexpr (std::is_same_v<Result, ncclResult_t>) {
    Outcome outcome;
    try {
      return body();
    } catch (...) {
      outcome = outcome_of_exception();
    }
    change_count(function, Answer::served, Answer::refused);
    return fail(function, outcome.result, outcome.sentence);
  } else {
    return body();
  }
}

}  // namespace
}  // namespace chorale::nccl

#define CHORALE_NCCL_MORE(...) __VA_OPT__(, ) __VA_ARGS__
#define CHORALE_NCCL_NAMES(...) #__VA_ARGS__

#define CHORALE_NCCL_served(result, name, parameters, arguments, needed, checked) \
  return serve<result>(Function::name, first_null(CHORALE_NCCL_NAMES needed CHORALE_NCCL_MORE needed), \
                       check::checked arguments, [&] { return served::name arguments; });
// A communicator is this library's, so the fallback cannot take it.
#define CHORALE_NCCL_refused(result, name, parameters, arguments, needed, checked) \
  if constexpr (!mentions_communicator<result parameters>) { \
    if (const auto real = fallback::find<result parameters>(Function::name)) \
      return forward(Function::name, real CHORALE_NCCL_MORE arguments); \
  } \
  return end<result>(Function::name, first_null(CHORALE_NCCL_NAMES needed CHORALE_NCCL_MORE needed), \
                     check::checked arguments, !mentions_communicator<result parameters>);

#define CHORALE_NCCL(header, area, today, result, name, parameters, arguments, needed, check, ...) \
  extern "C" { \
  __attribute__((visibility("default"))) result p##name parameters { \
    CHORALE_NCCL_##today(result, name, parameters, arguments, needed, check) \
  } \
  __attribute__((visibility("default"), weak, alias("p" #name))) result name parameters; \
  }
using namespace chorale::nccl;
#include "functions.def"
