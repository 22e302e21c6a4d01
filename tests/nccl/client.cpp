// This program calls libnccl.so.2 for fallback.py:
//   nccl_client every FAKE   every function whose calls go to the fallback, which is the library FAKE
//   nccl_client call NAME    one function; prints its result and the last error
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "chorale/nccl_calls.h"
#include "tests/nccl/table.hpp"

namespace {

using nccl_tests::argument;
using nccl_tests::for_each_function;

int failures = 0;

void expect(bool holds, const std::string& name, const std::string& what) {
  if (holds) return;
  ++failures;
  std::printf("FAILED %s: %s\n", name.c_str(), what.c_str());
}

template <class Result, class... Parameters>
Result call(Result (*function)(Parameters...)) {
  return [&]<size_t... place>(std::index_sequence<place...>) {
    return function(argument<Parameters>(place)...);
  }
  (std::index_sequence_for<Parameters...>());
}

template <class Result, class... Parameters>
std::string written_call(const char* name, Result (*)(Parameters...)) {
  return [&]<size_t... place>(std::index_sequence<place...>) {
    return nccl_tests::written(name, argument<Parameters>(place)...);
  }
  (std::index_sequence_for<Parameters...>());
}

uint64_t forwarded(const char* name) {
  uint64_t served = 0, refused = 0, fallback = 0;
  chorale_nccl_calls(name, &served, &refused, &fallback);
  expect(served == 0 && refused == 0, name, "it was served or refused here");
  return fallback;
}

/// Calls a function and its twin, and compares what the fake was given and what it returned.
template <class Called>
void compare(size_t place, const char* name, Called function, Called twin, const char* (*last_call)()) {
  for (const Called called : {function, twin}) {
    const uint64_t before = forwarded(name);
    using Result = decltype(call(called));
    if constexpr (std::is_void_v<Result>) {
      call(called);
    } else {
      const Result expected = nccl_tests::result_of<Result>(place), got = call(called);
      expect(std::memcmp(&expected, &got, sizeof got) == 0, name, "another result");
    }
    expect(last_call() == written_call(name, called), name, std::string("another call: ") + last_call());
    expect(forwarded(name) == before + 1, name, "the call was not counted");
  }
}

int every(const char* path) {
  void* const fake = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  ncclParamDumpAll();  // the first such call loads the fallback
  void* const again = fake ? fake : dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  expect(!fake && again, path, "the first call did not load it");
  if (!again) return 1;
  const auto last_call = reinterpret_cast<const char* (*)()>(dlsym(again, "fake_last_call"));
  size_t compared = 0;
  for_each_function([&](size_t place, const char* name, const std::string& today,
                        const std::string& arguments, auto&&, auto function, auto twin) {
    if (today == "served" || arguments.find("comm") != std::string::npos) return;
    compare(place, name, function, twin, last_call);
    ++compared;
  });
  // The last error is where the last call failed. An error that the fallback reports for an earlier call
  // counts too.
  const auto last_error_is = [](const std::string& expected, const char* when) {
    const std::string got = ncclGetLastError(nullptr);
    expect(got == expected, "ncclGetLastError", std::string(when) + ": " + got);
  };
  last_error_is("text of the fake", "after calls of the fallback");
  ncclGetVersion(nullptr);
  last_error_is("ncclGetVersion: version is null", "after a call that failed here");
  ncclParamBind(nullptr, nullptr);
  last_error_is("text of the fake", "after a call that failed in the fallback");
  int version = 0;
  expect(ncclGetVersion(&version) == ncclSuccess && version == 22809, "ncclGetVersion",
         std::to_string(version));
  pncclResetDebugInit();
  expect(std::string(last_call()) == "ncclResetDebugInit", "ncclResetDebugInit", last_call());
#if !defined(__SANITIZE_ADDRESS__)
  const auto itself = reinterpret_cast<ncclResult_t (*)()>(dlsym(again, "fake_calls_itself"));
  const uint64_t before = forwarded("ncclCommDestroy");
  itself();
  expect(forwarded("ncclCommDestroy") == before, "ncclCommDestroy", "the fallback's own call came here");
#endif
  std::printf("%zu functions went to the fallback\n", compared);
  return failures > 0;
}

int one(const std::string& wanted) {
  for_each_function(
      [&](size_t, const char* name, const std::string& today, auto&&, auto&&, auto function, auto) {
        if (name != wanted || today == "served") return;
        using Result = decltype(call(function));
        if constexpr (std::is_same_v<Result, ncclResult_t>) std::printf("result %d\n", int(call(function)));
      });
  std::printf("last error %s\n", ncclGetLastError(nullptr));
  return 0;
}

}  // namespace

int main(int count, char** words) {
  if (count == 3 && std::string(words[1]) == "every") return every(words[2]);
  if (count == 3 && std::string(words[1]) == "call") return one(words[2]);
  std::printf("usage: nccl_client every FAKE | call NAME\n");
  return 2;
}
