#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "chorale/nccl_calls.h"
#include "tests/nccl/table.hpp"

namespace {

using nccl_tests::argument;
using nccl_tests::for_each_function;

// The tests of the fallback run in processes of their own.
const int no_fallback = unsetenv("CHORALE_NCCL_FALLBACK");

const std::string remedy =
    " Set CHORALE_NCCL_FALLBACK=/path/libnccl.so.2 to the file of the real NCCL, which then gets this call";

std::string sentence() { return ncclGetLastError(nullptr); }

/// Returns the names in a list such as "(comm, count)".
std::vector<std::string> names_in(std::string list) {
  std::vector<std::string> names;
  for (char& letter : list) {
    if (letter == '(' || letter == ')' || letter == ',') letter = ' ';
  }
  std::istringstream words(list);
  for (std::string name; words >> name;) names.push_back(name);
  return names;
}

/// Calls a function with the arguments of the table. The one at `null_at` is null.
template <class Result, class... Parameters>
Result call(Result (*function)(Parameters...), size_t null_at = SIZE_MAX) {
  return [&]<size_t... place>(std::index_sequence<place...>) {
    return function((place == null_at ? Parameters() : argument<Parameters>(place))...);
  }
  (std::index_sequence_for<Parameters...>());
}

/// Returns the places of parameters that are pointers.
template <class Result, class... Parameters>
std::vector<size_t> pointers(Result (*)(Parameters...)) {
  std::vector<size_t> places;
  size_t place = 0;
  ((std::is_pointer_v<Parameters> ? places.push_back(place++) : void(place++)), ...);
  return places;
}

uint64_t refusals(const char* name) {
  uint64_t served = 0, refused = 0, fallback = 0;
  EXPECT_EQ(chorale_nccl_calls(name, &served, &refused, &fallback), 0) << name;
  EXPECT_EQ(fallback, 0) << name;
  return refused;
}

TEST(NcclCalls, TheVersionIsThatOfTheInterface) {
  int version = 0;
  EXPECT_EQ(ncclGetVersion(&version), ncclSuccess);
  EXPECT_EQ(version, 22809);
  EXPECT_EQ(ncclGetVersion(nullptr), ncclInvalidArgument);
  EXPECT_EQ(sentence(), "ncclGetVersion: version is null");
}

TEST(NcclCalls, EachResultHasItsText) {
  std::set<std::string> texts;
  for (int result = ncclSuccess; result <= ncclNumResults; ++result)
    texts.insert(ncclGetErrorString(ncclResult_t(result)));
  EXPECT_EQ(texts.size(), 9);
  EXPECT_STREQ(ncclGetErrorString(ncclSuccess), "no error");
  EXPECT_STREQ(ncclGetErrorString(ncclResult_t(99)), "unknown result code");
}

TEST(NcclCalls, WhatIsNotServedIsRefusedWithASentence) {
  for_each_function([](size_t, const std::string& name, const std::string& today, const char* arguments,
                       auto&&, auto function, auto twin) {
    if (today != "refused") return;
    for (const auto called : {function, twin}) {
      const uint64_t before = refusals(name.c_str());
      ncclGetVersion(nullptr);  // sets another last error
      using Result = decltype(call(called));
      if constexpr (std::is_void_v<Result>) {
        call(called);
      } else if constexpr (std::is_same_v<Result, ncclResult_t>) {
        EXPECT_EQ(call(called), ncclInvalidUsage) << name;
      } else if constexpr (std::is_same_v<Result, int>) {
        EXPECT_EQ(call(called), -1) << name;
      } else if constexpr (std::is_same_v<Result, ncclTeam_t>) {
        EXPECT_EQ(call(called).nRanks, 0) << name;
      }
      EXPECT_EQ(sentence().find(name + ": the call is refused, because Chorale's libnccl.so.2 "), 0)
          << sentence();
      EXPECT_EQ(sentence().find(remedy) != std::string::npos,
                std::string(arguments).find("comm") == std::string::npos)
          << "the fallback takes no communicators of this library: " << sentence();
      EXPECT_EQ(refusals(name.c_str()), before + 1) << name;
    }
  });
}

TEST(NcclCalls, TheSentenceSaysWhatWhyAndTheRemedy) {
  EXPECT_EQ(ncclCommSuspend(argument<ncclComm_t>(1), 0), ncclInvalidUsage);
  EXPECT_EQ(
      sentence(),
      "ncclCommSuspend: the call is refused, because Chorale's libnccl.so.2 does not grow or suspend "
      "communicators yet. Destroy this one, and make another with ncclCommInitRank() or ncclCommSplit()");
  EXPECT_EQ(ncclParamBind(nullptr, nullptr), ncclInvalidUsage);
  EXPECT_EQ(
      sentence(),
      "ncclParamBind: the call is refused, because Chorale's libnccl.so.2 has none of NCCL's parameters." +
          remedy);
}

TEST(NcclCalls, AWrongCommunicatorIsAnInvalidArgument) {
  float value = 0;
  EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, argument<ncclComm_t>(1), nullptr),
            ncclInvalidArgument);
  EXPECT_EQ(
      sentence(),
      "ncclAllReduce: comm is not a communicator of this process. It may have been destroyed or aborted");
}

TEST(NcclCalls, NullPointersThatNcclRefusesAreInvalidArguments) {
  size_t nulls = 0;
  for_each_function([&](size_t, const std::string& name, auto&&, const char* arguments, const char* needed,
                        auto function, auto) {
    using Result = decltype(call(function));
    if constexpr (std::is_same_v<Result, ncclResult_t>) {
      const std::vector<std::string> parameters = names_in(arguments), wanted = names_in(needed);
      for (const size_t place : pointers(function)) {
        if (std::find(wanted.begin(), wanted.end(), parameters[place]) == wanted.end()) continue;
        EXPECT_EQ(call(function, place), ncclInvalidArgument) << name;
        EXPECT_EQ(sentence(), name + ": " + parameters[place] + " is null");
        ++nulls;
      }
    }
  });
  EXPECT_GT(nulls, 40);
}

TEST(NcclCalls, ArgumentsThatNcclRefusesAreInvalid) {
  ncclComm_t comm{};
  for (const auto& [ranks, rank] : {std::pair(0, 0), std::pair(2, 2), std::pair(2, -1)}) {
    EXPECT_EQ(ncclCommInitRank(&comm, ranks, {}, rank), ncclInvalidArgument);
    EXPECT_EQ(sentence(), "ncclCommInitRank: rank " + std::to_string(rank) + " of " + std::to_string(ranks) +
                              " ranks does not exist");
    EXPECT_EQ(ncclCommInitRankConfig(&comm, ranks, {}, rank, nullptr), ncclInvalidArgument);
    EXPECT_EQ(ncclCommInitRankScalable(&comm, ranks, rank, 1, nullptr, nullptr), ncclInvalidArgument);
  }
  EXPECT_EQ(ncclCommInitAll(&comm, -1, nullptr), ncclInvalidArgument);
  EXPECT_EQ(sentence(), "ncclCommInitAll: -1 devices are not possible");
  EXPECT_EQ(ncclRedOpDestroy(ncclAvg, argument<ncclComm_t>(0)), ncclInvalidArgument);
  EXPECT_EQ(sentence(), "ncclRedOpDestroy: operator 4 is one of NCCL's own, which no program destroys");
  EXPECT_EQ(ncclRedOpDestroy(ncclRedOp_t(-1), argument<ncclComm_t>(0)), ncclInvalidArgument);
  EXPECT_EQ(sentence(), "ncclRedOpDestroy: operator -1 does not exist");
  EXPECT_EQ(ncclRedOpDestroy(ncclNumOps, nullptr), ncclInvalidArgument);
  EXPECT_EQ(sentence(), "ncclRedOpDestroy: comm is null");
  EXPECT_EQ(comm, nullptr);
}

TEST(NcclCalls, WithoutACommunicatorThereIsNothingToDestroy) {
  EXPECT_EQ(ncclCommFinalize(nullptr), ncclSuccess);
  EXPECT_EQ(ncclCommDestroy(nullptr), ncclSuccess);
  EXPECT_EQ(ncclCommAbort(nullptr), ncclSuccess);
  uint64_t served = 0, refused = 0, fallback = 0;
  EXPECT_EQ(chorale_nccl_calls("ncclCommAbort", &served, &refused, &fallback), 0);
  EXPECT_GE(served, 1);
  EXPECT_EQ(chorale_nccl_calls("ncclCommWish", &served, &refused, &fallback), -1);
  EXPECT_EQ(chorale_nccl_calls(nullptr, &served, &refused, &fallback), -1);
}

TEST(NcclCalls, GroupsNestAndAreOfOneThread) {
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  EXPECT_EQ(sentence(), "ncclGroupEnd: this thread has no open group. ncclGroupStart() opens one");
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  std::thread([] { EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage); }).join();
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
}

TEST(NcclCalls, AGroupFailsWithItsLastCallThatFailed) {
  ncclGroupStart();
  ncclGroupStart();
  EXPECT_EQ(ncclCommSuspend(argument<ncclComm_t>(1), 0), ncclInvalidUsage);
  EXPECT_EQ(ncclAllReduce(nullptr, nullptr, 1, ncclFloat, ncclSum, nullptr, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  EXPECT_EQ(sentence(), "ncclAllReduce: comm is null");
  ncclGroupStart();
  EXPECT_EQ(ncclCommCount(nullptr, nullptr), ncclInvalidArgument);  // a question belongs to no group
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
}

TEST(NcclCalls, AnEmptyGroupCanBeSimulated) {
  EXPECT_EQ(ncclGroupSimulateEnd(nullptr), ncclInvalidUsage);
  ncclSimInfo_t information = simulation_initializer;
  ncclGroupStart();
  EXPECT_EQ(ncclGroupSimulateEnd(&information), ncclSuccess);
  EXPECT_EQ(information.estimatedTime, -1.0f);
  // A struct of an earlier version may end before the time.
  ncclGroupStart();
  information.size = offsetof(ncclSimInfo_t, estimatedTime);
  information.estimatedTime = 5;
  EXPECT_EQ(ncclGroupSimulateEnd(&information), ncclSuccess);
  EXPECT_EQ(information.estimatedTime, 5.0f);
  ncclGroupStart();
  information.magic = 0;
  EXPECT_EQ(ncclGroupSimulateEnd(&information), ncclInvalidArgument);
  EXPECT_EQ(sentence(), "ncclGroupSimulateEnd: simInfo was not initialised with NCCL_SIM_INFO_INITIALIZER");
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);  // the group is over
}

TEST(NcclCalls, TheLastErrorIsOfTheProcessAndStaysReadable) {
  std::thread([] { ncclCommInitAll(nullptr, 1, nullptr); }).join();
  const char* const mine = ncclGetLastError(nullptr);
  EXPECT_STREQ(mine, "ncclCommInitAll: comm is null");
  std::thread([] {
    ncclGetVersion(nullptr);
    EXPECT_EQ(sentence(), "ncclGetVersion: version is null");
  }).join();
  EXPECT_STREQ(mine, "ncclCommInitAll: comm is null");
  EXPECT_EQ(sentence(), "ncclGetVersion: version is null");
}

TEST(NcclCalls, ThreadsMayFailAtTheSameTime) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([] {
      for (int round = 0; round < 200; ++round) {
        ncclGetVersion(nullptr);
        ncclCommInitAll(nullptr, 1, nullptr);
        const std::string text = sentence();
        EXPECT_TRUE(text == "ncclGetVersion: version is null" || text == "ncclCommInitAll: comm is null")
            << text;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
