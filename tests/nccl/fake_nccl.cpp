// This library plays the real NCCL for tests of the fallback. Each function writes its call down and returns
// a result of its own.
#include <mutex>
#include <string>

#include "tests/nccl/table.hpp"

namespace {

std::mutex mutex;
std::string last_call;

template <class Result, class... Arguments>
Result answer(size_t place, const char* name, const Arguments&... arguments) {
  const std::lock_guard lock(mutex);
  last_call = nccl_tests::written(name, arguments...);
  return nccl_tests::result_of<Result>(place);
}

/// Answers ncclGetVersion(), which has to succeed.
template <class>
ncclResult_t answer(size_t, const char*, int* version) {
  *version = 22304;
  return ncclSuccess;
}

}  // namespace

#define CHORALE_NCCL_MORE(...) __VA_OPT__(, ) __VA_ARGS__
#define CHORALE_NCCL(header, area, today, result, name, parameters, arguments, needed, check, ...) \
  extern "C" result name parameters { \
    return answer<result>(size_t(Function::name), #name CHORALE_NCCL_MORE arguments); \
  }
#include "bindings/nccl/functions.def"

/// Returns the last call, as nccl_tests::written() writes it.
extern "C" const char* fake_last_call() {
  thread_local std::string copy;
  const std::lock_guard lock(mutex);
  return (copy = last_call).c_str();
}

/// Calls an exported function of this library, as NCCL does within itself.
extern "C" ncclResult_t fake_calls_itself() { return ncclCommDestroy(nccl_tests::argument<ncclComm_t>(0)); }
