/// \file
/// Sends tokens to their experts and back, and compares every row with the oracle's.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

#include "chorale/launch_cpu.hpp"
#include "tests/fused/expert_oracle.hpp"

namespace chorale::fused::test {

/// Makes one call of dispatch() and of combine(), and compares what this rank gets.
/// \param number  this rank's number in the first world
/// \param lost    the ranks of the first world that are lost; they send nothing
template <class T = bf16>
void call_once(ExpertExchange& exchange, const Case& with, uint64_t call, uint64_t number,
               const std::set<uint64_t>& lost = {}) {
  std::vector<Batch> batches;
  for (uint64_t rank = 0; rank < uint64_t(with.ranks); ++rank) {
    batches.push_back(lost.count(rank) != 0 ? Batch{} : batch_of(with, call, rank));
  }
  std::vector<Expected> expected;
  for (uint64_t rank = 0; rank < uint64_t(with.ranks); ++rank)
    expected.push_back(expected_at(with, batches, rank));
  const Batch& mine = batches[number];
  const Expected& wanted = expected[number];

  const uint64_t room = room_of(with), rows = with.padded ? room * with.experts_per_rank : room;
  const bf16 untouched = narrow<bf16>(-99);
  std::vector<bf16> got((rows + 1) * with.hidden, untouched);
  std::vector<float> got_scales((rows + 1) * with.scales + 1, -99);
  std::vector<int32_t> counts(with.experts_per_rank, -5), wanted_counts(counts),
      begins(with.experts_per_rank + 1, -5);
  Dispatch<int64_t> out;
  out.tokens = mine.tokens.data();
  out.scales = with.scales != 0 ? mine.scales.data() : nullptr;
  out.experts = mine.experts.data();
  out.weights = with.weighs ? mine.weights.data() : nullptr;
  out.n = mine.n;
  out.rows = got.data();
  out.row_scales = with.scales != 0 ? got_scales.data() : nullptr;
  out.counts = counts.data();
  out.wanted = wanted_counts.data();
  out.begins = begins.data();
  out.room = room;
  out.alignment = with.alignment;
  out.padded = with.padded;
  out.may_drop = with.room.has_value();
  dispatch<int64_t>(exchange, out, {}, with.threads);
  ASSERT_EQ(counts, wanted.counts) << "call " << call;
  ASSERT_EQ(wanted_counts, wanted.wanted) << "call " << call;
  ASSERT_EQ(begins, wanted.begins) << "call " << call;
  std::vector<T> results(got.size(), narrow<T>(7777.0f));
  for (uint64_t row = 0; row <= rows; ++row) {
    const auto known = wanted.rows.find(int32_t(row));
    for (uint64_t at = 0; at < with.hidden; ++at) {
      bf16 element = untouched;
      if (known != wanted.rows.end()) {
        const auto& [from, token] = known->second;
        element = batches[from].tokens[token * with.hidden + at];
      }
      ASSERT_EQ(widen(got[row * with.hidden + at]), widen(element)) << "call " << call << ", row " << row;
    }
    for (uint64_t at = 0; at < with.scales; ++at) {
      const float scale = known == wanted.rows.end()
                              ? -99
                              : batches[known->second.first].scales[known->second.second * with.scales + at];
      ASSERT_EQ(got_scales[row * with.scales + at], scale) << "call " << call << ", row " << row;
    }
  }
  for (uint64_t expert = 0; expert < with.experts_per_rank; ++expert) {
    for (const auto& [row, from] : wanted.rows) {
      if (row < wanted.begins[expert] || row >= wanted.begins[expert] + wanted.counts[expert]) continue;
      for (uint64_t at = 0; at < with.hidden; ++at) {
        results[uint64_t(row) * with.hidden + at] = result_of<T>(
            int64_t(number * with.experts_per_rank + expert), got[uint64_t(row) * with.hidden + at]);
      }
    }
  }
  if (!with.combines) return;
  std::vector<T> back((mine.n + 1) * with.hidden, narrow<T>(-3));
  combine<T>(exchange, {.rows = results.data(), .out = back.data(), .n = mine.n}, {}, with.threads);
  for (uint64_t token = 0; token < mine.n; ++token) {
    for (uint64_t at = 0; at < with.hidden; ++at) {
      ASSERT_EQ(widen(back[token * with.hidden + at]),
                widen(combined<T>(with, batches, expected, lost, number, token, at)))
          << "call " << call << ", token " << token << ", element " << at;
    }
  }
  ASSERT_EQ(widen(back[mine.n * with.hidden]), -3);
}

constexpr DType dtype_of(float) { return DType::f32; }
constexpr DType dtype_of(f16) { return DType::f16; }
constexpr DType dtype_of(bf16) { return DType::bf16; }

template <class T = bf16>
void test_calls(const Case& with, uint64_t first = 0, LocalOptions options = {}) {
  run_local(
      with.ranks,
      [&](World& world) {
        ExpertExchange exchange(world, options_of(with, dtype_of(T{})));
        for (uint64_t call = first; call < first + with.calls && !testing::Test::HasFailure(); ++call)
          call_once<T>(exchange, with, call, uint64_t(world.rank()));
      },
      options);
}

}  // namespace chorale::fused::test
