#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "tests/nccl/ranks.hpp"

// These tests run reductions of libnccl.so.2 whose operators the program created, and reductions of unsigned
// integers of 64 bits.
namespace {

using namespace nccl_tests;

const int settings_of_operators = setenv("CHORALE_TIMEOUT", "60s", 1) + unsetenv("CHORALE_NCCL_FALLBACK") +
                                  setenv("CHORALE_WORKERS", "2", 1);

/// Returns `to`, filled with the elements of `from` that begin at `begin`.
template <class Data>
Data part_of(Data& from, size_t begin, Data to) {
  std::copy_n(from.data(begin), size_t(to.data(to.count()) - to.data()), to.data());
  return to;
}

/// Runs the collectives that reduce, and compares their outputs.
/// \param in        the input of this rank, `count` elements for each rank
/// \param expected  the reduced inputs of all ranks
void reduce_all(ncclComm_t comm, int ranks, int rank, size_t count, ncclDataType_t type, ncclRedOp_t op,
                const Elements& in, Elements expected, bool in_place) {
  SCOPED_TRACE("rank " + std::to_string(rank) + " of " + std::to_string(ranks) + ", type " +
               std::to_string(type) + (in_place ? ", in place" : ""));
  const size_t all = count * size_t(ranks), mine = count * size_t(rank);
  Elements from = in, out(type, all);
  EXPECT_EQ(ncclAllReduce(from.data(), in_place ? from.data() : out.data(), all, type, op, comm, nullptr),
            ncclSuccess)
      << sentence();
  EXPECT_TRUE((in_place ? from : out) == expected) << "all-reduce";
  if (!in_place) {
    EXPECT_TRUE(from == in) << "the input of an all-reduce";
  }
  for (const int root : {0, ranks - 1}) {
    from = in;
    out = Elements(type, all);
    void* const to = rank != root ? nullptr : in_place ? from.data() : out.data();
    EXPECT_EQ(ncclReduce(from.data(), to, all, type, op, root, comm, nullptr), ncclSuccess) << sentence();
    if (rank == root) {
      EXPECT_TRUE((in_place ? from : out) == expected) << "reduce";
    }
    if (rank != root || !in_place) {
      EXPECT_TRUE(from == in) << "the input of a reduce";
    }
  }
  from = in;
  Elements share(type, count);
  EXPECT_EQ(ncclReduceScatter(from.data(), in_place ? from.data(mine) : share.data(), count, type, op, comm,
                              nullptr),
            ncclSuccess)
      << sentence();
  EXPECT_TRUE((in_place ? part_of(from, mine, Elements(type, count)) : share) ==
              part_of(expected, mine, Elements(type, count)))
      << "reduce-scatter";
  if (!in_place) {
    EXPECT_TRUE(from == in) << "the input of a reduce-scatter";
  }
}

/// Makes unsigned elements of 64 bits, because a double does not hold all their values.
Elements numbers(size_t count, const std::function<uint64_t(size_t)>& value) {
  Elements made(ncclUint64, count);
  for (size_t at = 0; at < count; ++at) {
    const uint64_t bits = value(at);
    std::memcpy(made.data(at), &bits, sizeof bits);
  }
  return made;
}

class NcclUint64 : public testing::TestWithParam<int> {};

TEST_P(NcclUint64, IsComparedAndDividedAsUnsigned) {
  const int ranks = GetParam();
  // One rank has a number above 2^63, and the sum of all stays below 2^64.
  const auto value = [ranks](int rank, size_t at) {
    const bool large = int(at) % ranks == rank;
    return (large ? uint64_t(1) << 63 : 0) + uint64_t(rank) * 1000 + at;
  };
  in_threads(ranks, [&](ncclComm_t comm, int rank) {
    constexpr size_t count = 1001;
    const Elements in = numbers(count * size_t(ranks), [&](size_t at) { return value(rank, at); });
    for (const ncclRedOp_t op : {ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg}) {
      SCOPED_TRACE("operator " + std::to_string(op));
      const Elements expected = numbers(count * size_t(ranks), [&](size_t at) {
        uint64_t result = value(0, at);
        for (int other = 1; other < ranks; ++other) {
          const uint64_t next = value(other, at);
          result = op == ncclProd  ? result * next
                   : op == ncclMax ? std::max(result, next)
                   : op == ncclMin ? std::min(result, next)
                                   : result + next;
        }
        return op == ncclAvg ? result / uint64_t(ranks) : result;
      });
      for (const bool in_place : {false, true})
        reduce_all(comm, ranks, rank, count, ncclUint64, op, in, expected, in_place);
    }
  });
}
INSTANTIATE_TEST_SUITE_P(Ranks, NcclUint64, testing::Values(1, 2, 3, 4));

/// Returns the factor of a rank, and a number of its input. Their sums are exact in all types.
double factor(int rank) {
  constexpr double factors[] = {2, 3, 4, 1};
  return factors[rank];
}
double bit(int rank, size_t at) { return double((at + size_t(rank)) % 2); }

Elements bits(ncclDataType_t type, size_t count, int rank) {
  return Elements(type, count, [rank](size_t at) { return bit(rank, at); });
}
Elements sums(ncclDataType_t type, size_t count, int ranks) {
  return Elements(type, count, [ranks](size_t at) {
    double sum = 0;
    for (int rank = 0; rank < ranks; ++rank) sum += factor(rank) * bit(rank, at);
    return sum;
  });
}

ncclRedOp_t created(ncclComm_t comm, Elements& scalar, ncclDataType_t type, ncclScalarResidence_t residence) {
  ncclRedOp_t op = ncclSum;
  EXPECT_EQ(ncclRedOpCreatePreMulSum(&op, scalar.data(), type, residence, comm), ncclSuccess) << sentence();
  EXPECT_GE(int(op), int(ncclNumOps));
  return op;
}
Elements scalar_of(ncclDataType_t type, double value) {
  return Elements(type, 1, [value](size_t) { return value; });
}

class NcclPreMulSum : public testing::TestWithParam<std::tuple<int, bool>> {};

TEST_P(NcclPreMulSum, MultipliesTheInputOfEachRankByItsFactor) {
  const auto [ranks, copies] = GetParam();
  if (copies) setenv("CHORALE_NCCL_COPIES", "always", 1);
  in_threads(ranks, [ranks = ranks](ncclComm_t comm, int rank) {
    for (int kind = 0; kind < ncclNumTypes; kind += on_gpus ? 3 : 1) {  // the fake GPUs take long
      const auto type = ncclDataType_t(kind);
      for (const ncclScalarResidence_t residence : {ncclScalarDevice, ncclScalarHostImmediate}) {
        SCOPED_TRACE("residence " + std::to_string(residence));
        Elements scalar = scalar_of(type, factor(rank));
        const ncclRedOp_t op = created(comm, scalar, type, residence);
        if (residence == ncclScalarHostImmediate) scalar.set(0, 7);
        for (const bool in_place : {false, true}) {
          for (const size_t count : {size_t(1), size_t(1001)}) {
            const size_t all = count * size_t(ranks);
            reduce_all(comm, ranks, rank, count, type, op, bits(type, all, rank), sums(type, all, ranks),
                       in_place);
          }
        }
        EXPECT_EQ(ncclRedOpDestroy(op, comm), ncclSuccess) << sentence();
      }
    }
  });
  unsetenv("CHORALE_NCCL_COPIES");
}
INSTANTIATE_TEST_SUITE_P(Ranks, NcclPreMulSum, testing::Combine(testing::Values(1, 2, 3, 4), testing::Bool()),
                         [](const auto& info) {
                           return std::to_string(std::get<0>(info.param)) +
                                  (std::get<1>(info.param) ? "_copies" : "");
                         });

CHORALE_NCCL_TEST(NcclPreMulSums, RunInGroupsAfterTheirOperatorsAreDestroyed, 2)(ncclComm_t comm, int rank) {
  Elements first = scalar_of(ncclFloat, 100), second = scalar_of(ncclInt32, factor(rank));
  Elements floats = bits(ncclFloat, 100, rank), integers = bits(ncclInt32, 300, rank), out(ncclInt32, 300);
  Elements plain = bits(ncclInt32, 50, rank);
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  const ncclRedOp_t of_device = created(comm, first, ncclFloat, ncclScalarDevice);
  const ncclRedOp_t of_host = created(comm, second, ncclInt32, ncclScalarHostImmediate);
  EXPECT_NE(of_device, of_host);
  EXPECT_EQ(ncclAllReduce(floats.data(), floats.data(), 100, ncclFloat, of_device, comm, nullptr),
            ncclSuccess)
      << sentence();
  EXPECT_EQ(ncclReduce(integers.data(), out.data(), 300, ncclInt32, of_host, 1, comm, nullptr), ncclSuccess);
  EXPECT_EQ(ncclAllReduce(plain.data(), plain.data(), 50, ncclInt32, ncclSum, comm, nullptr), ncclSuccess);
  EXPECT_EQ(ncclRedOpDestroy(of_device, comm), ncclSuccess) << sentence();
  EXPECT_EQ(ncclRedOpDestroy(of_host, comm), ncclSuccess) << sentence();
  first.set(0, factor(rank));  // a factor of the device is read when the collective runs
  second.set(0, 100);
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess) << sentence();
  EXPECT_TRUE(floats == sums(ncclFloat, 100, 2));
  if (rank == 1) {
    EXPECT_TRUE(out == sums(ncclInt32, 300, 2));
  }
  EXPECT_TRUE(plain == Elements(ncclInt32, 50, [](size_t) { return 1; }));
}

// Products of more than 64 MiB go through the memory of the library piece by piece.
CHORALE_NCCL_TEST(NcclPreMulSums, OfLongMessagesRunInPieces, 2)(ncclComm_t comm, int rank) {
  if (on_gpus) return;  // the fake GPUs would take minutes
  constexpr size_t part = (size_t(32) << 20) / sizeof(double) + 13, all = 2 * part;
  const auto value = [](int of, size_t at) { return double((at + size_t(of)) % 1000); };
  const auto sum = [&](size_t at) { return factor(0) * value(0, at) + factor(1) * value(1, at); };
  std::vector<double> in(all), out(all);
  for (size_t at = 0; at < all; ++at) in[at] = value(rank, at);
  Elements scalar = scalar_of(ncclDouble, factor(rank));
  const ncclRedOp_t op = created(comm, scalar, ncclDouble, ncclScalarDevice);
  const auto wrong = [&](const double* from, size_t begin, size_t count) {
    size_t at = 0;
    while (at < count && from[at] == sum(begin + at)) ++at;
    return count - at;
  };
  EXPECT_EQ(ncclReduce(in.data(), rank == 0 ? out.data() : nullptr, all, ncclDouble, op, 0, comm, nullptr),
            ncclSuccess)
      << sentence();
  if (rank == 0) {
    EXPECT_EQ(wrong(out.data(), 0, all), 0u) << "elements, of a reduce";
  }
  EXPECT_EQ(ncclReduceScatter(in.data(), out.data(), part, ncclDouble, op, comm, nullptr), ncclSuccess)
      << sentence();
  EXPECT_EQ(wrong(out.data(), size_t(rank) * part, part), 0u) << "elements, of a reduce-scatter";
  double* const own = in.data() + size_t(rank) * part;
  EXPECT_EQ(ncclReduceScatter(in.data(), own, part, ncclDouble, op, comm, nullptr), ncclSuccess)
      << sentence();
  EXPECT_EQ(wrong(own, size_t(rank) * part, part), 0u) << "elements, of a reduce-scatter in place";
}

TEST(NcclMisuse, OfCreatedOperatorsHasACodeAndASentence) {
  ncclComm_t comm{}, other{};
  ASSERT_EQ(ncclCommInitAll(&comm, 1, nullptr), ncclSuccess);
  ASSERT_EQ(ncclCommInitAll(&other, 1, nullptr), ncclSuccess);
  const auto expect = [](ncclResult_t result, const std::string& words) {
    EXPECT_EQ(result, ncclInvalidArgument) << words;
    EXPECT_NE(sentence().find(words), std::string::npos) << sentence();
  };
  const auto reduce = [](ncclDataType_t type, ncclRedOp_t op, ncclComm_t by) {
    uint64_t value = 1;
    const ncclResult_t result = ncclAllReduce(&value, &value, 1, type, op, by, nullptr);
    settle();
    return result;
  };
  Elements scalar = scalar_of(ncclInt32, 2);
  ncclRedOp_t none = ncclMin;
  expect(ncclRedOpCreatePreMulSum(&none, scalar.data(), ncclDataType_t(12), ncclScalarHostImmediate, comm),
         "datatype 12 does not exist");
  expect(ncclRedOpCreatePreMulSum(&none, scalar.data(), ncclInt32, ncclScalarResidence_t(7), comm),
         "residence is 7, but must be ncclScalarDevice (0) or ncclScalarHostImmediate (1)");
  expect(ncclRedOpCreatePreMulSum(&none, scalar.data(), ncclInt32, ncclScalarDevice,
                                  reinterpret_cast<ncclComm_t>(&scalar)),
         "comm is not a communicator of this process");
  EXPECT_EQ(none, ncclMin);

  const ncclRedOp_t op = created(comm, scalar, ncclInt32, ncclScalarHostImmediate);
  const ncclRedOp_t of_other = created(other, scalar, ncclInt32, ncclScalarHostImmediate);
  EXPECT_EQ(reduce(ncclInt32, op, comm), ncclSuccess) << sentence();
  expect(reduce(ncclFloat, op, comm),
         "op " + std::to_string(op) + " multiplies elements of i32, but the call has elements of f32");
  const std::string unknown = "op " + std::to_string(op) +
                              " is neither one of NCCL's nor one that the program created for this "
                              "communicator and has not destroyed";
  expect(reduce(ncclInt32, op, other), unknown);
  expect(ncclRedOpDestroy(op, other), unknown);
  expect(reduce(ncclInt32, of_other, comm), "op " + std::to_string(of_other) + " is neither");
  EXPECT_EQ(ncclRedOpDestroy(op, comm), ncclSuccess) << sentence();
  expect(reduce(ncclInt32, op, comm), unknown);
  expect(ncclRedOpDestroy(op, comm), unknown);
  expect(reduce(ncclInt32, ncclRedOp_t(-1), comm), "op -1 is neither");
  expect(reduce(ncclInt32, ncclMaxRedOp, comm), "is neither");
  EXPECT_EQ(ncclCommDestroy(other), ncclSuccess);
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

}  // namespace
