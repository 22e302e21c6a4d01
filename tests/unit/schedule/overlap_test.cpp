// These tests run the schedules of bench/overlap on the CPU. Every form gives the exact result.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "bench/overlap/schedules.hpp"
#include "chorale/device/numeric.hpp"
#include "chorale/schedule.hpp"

namespace chorale::test {
namespace {

using namespace overlap;

constexpr uint64_t rows = 3, deep = 6, n = 5;  ///< a slice's rows and its part of K
constexpr uint64_t runs = 10;                  ///< on one binding

/// The elements are so small that sums over 8 ranks are exact in bf16.
int a_at(uint64_t run, uint64_t row, uint64_t at) { return int((row * 3 + at * 2 + run) % 5) - 2; }
int b_at(uint64_t rank, uint64_t at, uint64_t column) { return int((at + column * 7 + rank) % 3) - 1; }

std::vector<bf16> matrix(uint64_t height, uint64_t width, const std::function<int(uint64_t, uint64_t)>& at) {
  std::vector<bf16> all;
  for (uint64_t row = 0; row < height; ++row)
    for (uint64_t column = 0; column < width; ++column)
      all.push_back(from_float<bf16>(float(at(row, column))));
  return all;
}

/// Copies values to the address that the schedule uses.
void set(std::vector<bf16>& to, const std::vector<bf16>& from) {
  std::copy(from.begin(), from.end(), to.begin());
}

std::string differs(const std::vector<bf16>& found, const std::vector<bf16>& expected,
                    const std::string& what) {
  for (size_t at = 0; at < found.size(); ++at) {
    if (widen(found[at]) != widen(expected[at]))
      return fmt::format("{}: element {} is {}, not {}", what, at, widen(found[at]), widen(expected[at]));
  }
  return "good";
}

/// Sums a product of two factors over [first, last).
int dot(uint64_t first, uint64_t last, const std::function<int(uint64_t)>& factors) {
  int sum = 0;
  for (uint64_t at = first; at < last; ++at) sum += factors(at);
  return sum;
}

std::string gather(World& world, const Form& form) {
  const uint64_t ranks = uint64_t(world.ranks()), rank = uint64_t(world.rank()), m = ranks * rows;
  std::vector<bf16> a(rows * deep), b(deep * n), g(m * deep), c(m * n);
  ScheduleRun schedule(world, allgather_matmul(uint32_t(ranks), form),
                       {.buffers = {{"A", a.data()}, {"B", b.data()}, {"G", g.data()}, {"C", c.data()}},
                        .params = {{"M", int64_t(m)}, {"K", int64_t(deep)}, {"N", int64_t(n)}}});
  for (uint64_t run = 0; run < runs; ++run) {
    set(a, matrix(rows, deep, [&](auto row, auto at) { return a_at(run, rank * rows + row, at); }));
    set(b, matrix(deep, n, [&](auto at, auto column) { return b_at(rank, at, column); }));
    world.barrier();  // no rank still reads the old data
    schedule.run();
    schedule.synchronize();
    world.barrier();
    const auto whole = matrix(m, deep, [&](auto row, auto at) { return a_at(run, row, at); });
    const auto product = matrix(m, n, [&](auto row, auto column) {
      return dot(0, deep, [&](auto at) { return a_at(run, row, at) * b_at(rank, at, column); });
    });
    std::string said = differs(g, whole, form.name() + ", G");
    if (said == "good") said = differs(c, product, form.name() + ", C");
    if (said != "good") return said;
  }
  return "good";
}

std::string scatter(World& world, const Form& form) {
  const uint64_t ranks = uint64_t(world.ranks()), rank = uint64_t(world.rank()), m = ranks * rows;
  std::vector<bf16> a(m * deep), b(deep * n), c(rows * n);
  ScheduleRun schedule(world, matmul_reduce_scatter(uint32_t(ranks), form),
                       {.buffers = {{"A", a.data()}, {"B", b.data()}, {"C", c.data()}},
                        .params = {{"M", int64_t(m)}, {"K", int64_t(deep * ranks)}, {"N", int64_t(n)}}});
  for (uint64_t run = 0; run < runs; ++run) {
    set(a, matrix(m, deep, [&](auto row, auto at) { return a_at(run, row, rank * deep + at); }));
    set(b, matrix(deep, n, [&](auto at, auto column) { return b_at(0, rank * deep + at, column); }));
    schedule.run();
    schedule.synchronize();
    const auto expected = matrix(rows, n, [&](auto row, auto column) {
      return dot(0, deep * ranks,
                 [&](auto at) { return a_at(run, rank * rows + row, at) * b_at(0, at, column); });
    });
    if (const std::string said = differs(c, expected, form.name()); said != "good") return said;
  }
  return "good";
}

class Overlap : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Overlap, testing::Values(1, 2, 3, 4, 8), testing::PrintToStringParamName());

TEST_P(Overlap, EveryFormIsExact) {
  const auto all = [](const std::vector<Form>& forms, std::string (*one)(World&, const Form&)) {
    std::vector<std::string> said(static_cast<size_t>(GetParam()));
    run_local(GetParam(), [&](World& world) {
      for (const Form& form : forms) {
        std::string& mine = said[size_t(world.rank())];
        mine = one(world, form);
        if (mine != "good") throw RunError(RunError::Reason::other, mine);
      }
    });
    for (size_t rank = 0; rank < said.size(); ++rank) EXPECT_EQ(said[rank], "good") << "rank " << rank;
  };
  all(allgather_matmul_forms(), gather);
  all(matmul_reduce_scatter_forms(), scatter);
}

}  // namespace
}  // namespace chorale::test
