#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "tests/nccl/ranks.hpp"

// These tests run the collectives of libnccl.so.2.
namespace {

using namespace nccl_tests;

const int settings = setenv("CHORALE_TIMEOUT", "60s", 1) + unsetenv("CHORALE_NCCL_FALLBACK") +
                     setenv("CHORALE_WORKERS", "2", 1);

/// Returns the result of an operator on the numbers of all ranks.
double reduced(ncclRedOp_t op, int ranks, size_t at) {
  double result = number(0, at);
  for (int rank = 1; rank < ranks; ++rank) {
    const double next = number(rank, at);
    result = op == ncclProd  ? result * next
             : op == ncclMax ? std::max(result, next)
             : op == ncclMin ? std::min(result, next)
                             : result + next;
  }
  return op == ncclAvg ? result / ranks : result;
}

Elements input(ncclDataType_t type, size_t count, int rank) {
  return Elements::repeating(type, count, [rank](size_t at) { return number(rank, at); });
}

/// Returns a part for each rank. Part p is the input of rank first + p * step.
Elements parts_of_inputs(ncclDataType_t type, size_t count, int ranks, int first = 0, int step = 1) {
  Elements parts(type, count * size_t(ranks));
  for (int part = 0; part < ranks; ++part)
    parts.copy(input(type, count, first + part * step), 0, count * size_t(part), count);
  return parts;
}

/// Runs every collective once with `count` elements, and compares the outputs.
void run_all(ncclComm_t comm, int ranks, int rank, size_t count, ncclDataType_t type, bool in_place) {
  SCOPED_TRACE("rank " + std::to_string(rank) + " of " + std::to_string(ranks) + ", " +
               std::to_string(count) + " elements of type " + std::to_string(type) +
               (in_place ? ", in place" : ""));
  const int root = ranks - 1;
  const size_t all = count * size_t(ranks), mine = count * size_t(rank);
  const Elements summed =
      Elements::repeating(type, all, [&](size_t at) { return reduced(ncclSum, ranks, at); });
  const Elements each = parts_of_inputs(type, count, ranks);
  const auto part = [&](const Elements& whole, size_t begin) {
    Elements found(type, count);
    found.copy(whole, begin, 0, count);
    return found;
  };
  Elements in = input(type, count, rank), out(type, count);
  {
    Elements both = in;
    EXPECT_EQ(ncclAllReduce(in_place ? both.data() : in.data(), in_place ? both.data() : out.data(), count,
                            type, ncclSum, comm, nullptr),
              ncclSuccess)
        << sentence();
    EXPECT_TRUE((in_place ? both : out) == part(summed, 0)) << "all-reduce";
  }
  {
    Elements both = in, reduced_out(type, count);
    EXPECT_EQ(ncclReduce(in_place ? both.data() : in.data(),
                         rank != root ? nullptr
                         : in_place   ? both.data()
                                      : reduced_out.data(),
                         count, type, ncclSum, root, comm, nullptr),
              ncclSuccess)
        << sentence();
    if (rank == root) {
      EXPECT_TRUE((in_place ? both : reduced_out) == part(summed, 0)) << "reduce";
    }
    if (rank != root) {
      EXPECT_TRUE(both == in) << "the input of a reduce";
    }
  }
  for (const int from : {0, root}) {
    Elements to = in_place ? in : Elements(type, count);
    EXPECT_EQ(ncclBroadcast(in_place       ? to.data()
                            : from == rank ? in.data()
                                           : nullptr,
                            to.data(), count, type, from, comm, nullptr),
              ncclSuccess)
        << sentence();
    EXPECT_TRUE(to == input(type, count, from)) << "broadcast from " << from;
    to = in;
    EXPECT_EQ(ncclBcast(to.data(), count, type, from, comm, nullptr), ncclSuccess) << sentence();
    EXPECT_TRUE(to == input(type, count, from)) << "bcast from " << from;
  }
  {
    Elements whole = input(type, all, rank);
    Elements scattered(type, count);
    char* const to = in_place ? whole.data(mine) : scattered.data();
    EXPECT_EQ(ncclReduceScatter(whole.data(), to, count, type, ncclSum, comm, nullptr), ncclSuccess)
        << sentence();
    EXPECT_TRUE((in_place ? part(whole, mine) : scattered) == part(summed, mine)) << "reduce-scatter";
  }
  {
    Elements gathered(type, all);
    if (in_place) gathered.copy(in, 0, mine, count);
    EXPECT_EQ(ncclAllGather(in_place ? gathered.data(mine) : in.data(), gathered.data(), count, type, comm,
                            nullptr),
              ncclSuccess)
        << sentence();
    EXPECT_TRUE(gathered == each) << "all-gather";
  }
  {
    Elements gathered(type, all);
    if (in_place && rank == root) gathered.copy(in, 0, mine, count);
    EXPECT_EQ(ncclGather(in_place && rank == root ? gathered.data(mine) : in.data(),
                         rank == root ? gathered.data() : nullptr, count, type, root, comm, nullptr),
              ncclSuccess)
        << sentence();
    if (rank == root) {
      EXPECT_TRUE(gathered == each) << "gather";
    }
  }
  {
    Elements whole = each, received(type, count);
    char* const to = in_place && rank == root ? whole.data(mine) : received.data();
    EXPECT_EQ(ncclScatter(rank == root ? whole.data() : nullptr, to, count, type, root, comm, nullptr),
              ncclSuccess)
        << sentence();
    EXPECT_TRUE((in_place && rank == root ? part(whole, mine) : received) == input(type, count, rank))
        << "scatter";
  }
  {
    // Part p of rank r is the input of rank r + 2 * p, which differs from part r of rank p
    // unless r and p are equal modulo 3.
    Elements parts = parts_of_inputs(type, count, ranks, rank, 2), exchanged(type, all);
    const Elements expected = parts_of_inputs(type, count, ranks, 2 * rank);
    char* const to = in_place ? parts.data() : exchanged.data();
    EXPECT_EQ(ncclAlltoAll(parts.data(), to, count, type, comm, nullptr), ncclSuccess) << sentence();
    EXPECT_TRUE((in_place ? parts : exchanged) == expected) << "all-to-all";
  }
}

/// Names how ranks run, and whether their buffers are treated as those of GPUs that no rank has registered.
struct Way {
  const char* name;
  bool threads, copies;

  friend void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }
};

class Collectives : public testing::TestWithParam<std::tuple<int, Way>> {};

TEST_P(Collectives, GiveTheRightResults) {
  const auto [ranks, way] = GetParam();
  if (way.copies) setenv("CHORALE_NCCL_COPIES", "always", 1);
  const Body body = [ranks = ranks](ncclComm_t comm, int rank) {
    // The fake GPUs take seconds for a large call of many ranks.
    const std::vector<size_t> counts =
        on_gpus ? std::vector<size_t>{7, 20011} : std::vector<size_t>{1, 7, 1000, 20011, 100003};
    for (const size_t count : counts) {
      for (const bool in_place : {false, true}) run_all(comm, ranks, rank, count, ncclInt32, in_place);
    }
    run_all(comm, ranks, rank, 33, ncclInt8, true);
    run_all(comm, ranks, rank, 33, ncclUint64, false);
    // A call without elements is no call.
    EXPECT_EQ(ncclAllReduce(nullptr, nullptr, 0, ncclFloat, ncclSum, comm, nullptr), ncclSuccess)
        << sentence();
  };
  way.threads ? in_threads(ranks, body) : in_processes(ranks, body);
  unsetenv("CHORALE_NCCL_COPIES");
}
INSTANTIATE_TEST_SUITE_P(Nccl, Collectives,
                         testing::Combine(testing::Values(1, 2, 3, 4, 8),
                                          testing::Values(Way{"threads", true, false},
                                                          Way{"Processes", false, false},
                                                          Way{"copies", true, true})),
                         [](const auto& info) {
                           return std::to_string(std::get<0>(info.param)) + "_" +
                                  std::get<1>(info.param).name;
                         });

TEST(NcclTypes, EachTypeHasEachOperator) {
  constexpr int ranks = 2;  // divides the sums of an average
  in_threads(ranks, [](ncclComm_t comm, int rank) {
    for (int kind = 0; kind < ncclNumTypes; ++kind) {
      const auto type = ncclDataType_t(kind);
      for (int way = 0; way < ncclNumOps; ++way) {
        const auto op = ncclRedOp_t(way);
        SCOPED_TRACE("type " + std::to_string(kind) + ", operator " + std::to_string(way));
        // Sums that an average of integers does not divide are left out, because NCCL leaves their rounding
        // open.
        const auto even = [&](int of, size_t at) {
          return op == ncclAvg ? 2 * number(of, at) : number(of, at);
        };
        constexpr size_t count = 1001;
        Elements in(type, count, [&](size_t at) { return even(rank, at); }), out(type, count);
        const Elements expected(type, count, [&](size_t at) {
          return op == ncclAvg ? 2 * reduced(op, ranks, at) : reduced(op, ranks, at);
        });
        const ncclResult_t result = ncclAllReduce(in.data(), out.data(), count, type, op, comm, nullptr);
        EXPECT_EQ(result, ncclSuccess) << sentence();
        EXPECT_TRUE(out == expected);
      }
    }
  });
}

TEST(NcclMessages, MoveInGroupsWhateverTheirOrder) {
  constexpr int ranks = 3;
  in_threads(ranks, [](ncclComm_t comm, int rank) {
    // Each rank sends each rank, itself included, as many elements as the two have in rank numbers, and one.
    std::vector<Elements> to, from;
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    for (int peer = 0; peer < ranks; ++peer) {
      const size_t count = size_t(rank + peer + 1) * 1000;
      to.emplace_back(ncclInt32, count, [&](size_t at) { return double(rank * 100 + peer) + double(at); });
      from.emplace_back(ncclInt32, count);
    }
    for (int peer = 0; peer < ranks; ++peer) {
      const size_t count = to[size_t(peer)].count();
      if (rank % 2 == 0) {
        EXPECT_EQ(ncclSend(to[size_t(peer)].data(), count, ncclInt32, peer, comm, nullptr), ncclSuccess);
      }
      EXPECT_EQ(ncclRecv(from[size_t(peer)].data(), count, ncclInt32, peer, comm, nullptr), ncclSuccess);
      if (rank % 2 == 1) {
        EXPECT_EQ(ncclSend(to[size_t(peer)].data(), count, ncclInt32, peer, comm, nullptr), ncclSuccess);
      }
    }
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess) << sentence();
    for (int peer = 0; peer < ranks; ++peer) {
      const Elements expected(ncclInt32, from[size_t(peer)].count(),
                              [&](size_t at) { return double(peer * 100 + rank) + double(at); });
      EXPECT_TRUE(from[size_t(peer)] == expected) << "from rank " << peer;
    }
  });
}

TEST(NcclMessages, MayReceiveWhereTheyAreSentFrom) {
  in_threads(2, [](ncclComm_t comm, int rank) {
    Elements both = input(ncclInt32, 30000, rank);
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclSend(both.data(), 30000, ncclInt32, 1 - rank, comm, nullptr), ncclSuccess);
    EXPECT_EQ(ncclRecv(both.data(), 30000, ncclInt32, 1 - rank, comm, nullptr), ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess) << sentence();
    EXPECT_TRUE(both == input(ncclInt32, 30000, 1 - rank));
  });
}

CHORALE_NCCL_TEST(NcclMessages, GoWithoutAGroup, 3)(ncclComm_t comm, int rank) {
  Elements data = input(ncclFloat, 5000, 1);
  Elements got(ncclFloat, 5000);
  if (rank == 1) {
    EXPECT_EQ(ncclSend(data.data(), 5000, ncclFloat, 0, comm, nullptr), ncclSuccess) << sentence();
  }
  if (rank == 0) {
    EXPECT_EQ(ncclRecv(got.data(), 5000, ncclFloat, 1, comm, nullptr), ncclSuccess) << sentence();
  }
  if (rank == 0) {
    EXPECT_TRUE(got == data);
  }
}

TEST(NcclGroups, RunCollectivesAndMessagesOfSeveralCommunicators) {
  constexpr int ranks = 4;
  in_threads(ranks, [](ncclComm_t comm, int rank) {
    ncclComm_t half{};
    EXPECT_EQ(ncclCommSplit(comm, rank / 2, rank, &half, nullptr), ncclSuccess) << sentence();
    Elements in = input(ncclInt32, 100, rank), whole(ncclInt32, 100), part(ncclInt32, 100),
             got(ncclInt32, 100);
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclSend(in.data(), 100, ncclInt32, (rank + 1) % ranks, comm, nullptr), ncclSuccess);
    EXPECT_EQ(ncclAllReduce(in.data(), part.data(), 100, ncclInt32, ncclSum, half, nullptr), ncclSuccess);
    EXPECT_EQ(ncclAllReduce(in.data(), whole.data(), 100, ncclInt32, ncclSum, comm, nullptr), ncclSuccess);
    EXPECT_EQ(ncclRecv(got.data(), 100, ncclInt32, (rank + ranks - 1) % ranks, comm, nullptr), ncclSuccess);
    EXPECT_FALSE(got == input(ncclInt32, 100, (rank + ranks - 1) % ranks))
        << "nothing runs before the group ends";
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess) << sentence();
    const int first = rank / 2 * 2;
    EXPECT_TRUE(whole == Elements(ncclInt32, 100, [&](size_t at) { return reduced(ncclSum, ranks, at); }));
    EXPECT_TRUE(part == Elements(ncclInt32, 100,
                                 [&](size_t at) { return number(first, at) + number(first + 1, at); }));
    EXPECT_TRUE(got == input(ncclInt32, 100, (rank + ranks - 1) % ranks));
    EXPECT_EQ(ncclCommDestroy(half), ncclSuccess);
  });
}

}  // namespace
