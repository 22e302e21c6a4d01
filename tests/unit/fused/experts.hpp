/// \file
/// Sends tokens to their experts and back, and compares every row with an oracle that knows the tokens of all
/// ranks.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "chorale/fused/experts.hpp"
#include "tests/unit/tiles/support.hpp"

namespace chorale::fused::test {

using namespace chorale::test;

/// Describes how tokens choose their experts.
enum class Routing { even, all_to_one, some_ranks_only, few, none };

/// Describes a series of calls.
struct Case {
  int ranks = 2;
  uint32_t experts_per_rank = 3, top_k = 2, max_tokens = 40;
  uint64_t hidden = 16;
  uint32_t scales = 0;
  uint32_t packet_tokens = 0;
  PacketForm packet = PacketForm::ll16;
  uint32_t blocks = 2, threads = 1;
  bool padded = false, weighs = true;
  uint32_t alignment = 1;
  std::optional<uint64_t> room = {};  // none: enough for all
  uint64_t calls = 4;
  bool combines = true;
};

/// Holds what a rank sends in a call.
struct Batch {
  uint32_t n = 0;
  std::vector<bf16> tokens;
  std::vector<float> scales, weights;
  std::vector<int64_t> experts;
};

inline Batch batch_of(const Case& with, uint64_t call, uint64_t rank) {
  const uint64_t drawn = mix(call * 1009 + rank + 1);
  const Routing routing = Routing(drawn % 5);
  Batch batch;
  batch.n = drawn % 7 == 0 ? 0 : uint32_t((drawn >> 8) % (with.max_tokens + 1));
  batch.tokens = message_of<bf16>(call * 64 + rank, batch.n * with.hidden);
  batch.scales = message_of<float>(call * 64 + rank + 7777, uint64_t(batch.n) * with.scales);
  const uint64_t all = uint64_t(with.ranks) * with.experts_per_rank;
  for (uint64_t token = 0; token < batch.n; ++token) {
    std::set<int64_t> named;
    for (uint64_t slot = 0; slot < with.top_k; ++slot) {
      const uint64_t next = mix(drawn + token * 131 + slot + 5);
      int64_t expert = int64_t(next % all);
      if (routing == Routing::all_to_one) expert = slot == 0 ? int64_t(drawn % all) : -1;
      if (routing == Routing::some_ranks_only) expert = int64_t(next % with.experts_per_rank);
      if (routing == Routing::few && next % 3 != 0) expert = -1;
      if (routing == Routing::none) expert = -1;
      if (expert >= 0 && !named.insert(expert).second) expert = -1;
      batch.experts.push_back(expert);
      batch.weights.push_back(float(int(next >> 20 & 3)) + 0.5f);
    }
  }
  return batch;
}

/// Holds the rows that a rank should have.
struct Expected {
  std::vector<int32_t> counts, begins;
  std::map<int32_t, std::pair<uint64_t, uint64_t>> rows;              // row: rank and token
  std::map<std::pair<uint64_t, uint64_t>, std::vector<int32_t>> row;  // rank, token * top_k + slot: row
};

inline uint64_t room_of(const Case& with) {
  if (with.room) return *with.room;
  const uint64_t of_expert = uint64_t(with.ranks) * with.max_tokens;
  if (with.padded) return of_expert;
  return of_expert * std::min(with.top_k, with.experts_per_rank) +
         with.experts_per_rank * (with.alignment - 1);
}

/// Returns the row of each slot of each token at its expert's rank, and what that rank should have.
inline Expected expected_at(const Case& with, const std::vector<Batch>& batches, uint64_t rank) {
  Expected result;
  const uint64_t room = room_of(with);
  uint64_t next = 0;
  for (uint64_t expert = 0; expert < with.experts_per_rank; ++expert) {
    const uint64_t begin = with.padded ? expert * room : next, end = with.padded ? begin + room : room;
    uint64_t row = begin;
    for (uint64_t from = 0; from < batches.size(); ++from) {
      for (uint64_t at = 0; at < batches[from].experts.size(); ++at) {
        if (batches[from].experts[at] != int64_t(rank * with.experts_per_rank + expert)) continue;
        if (row < end) {
          result.rows[int32_t(row)] = {from, at / with.top_k};
          result.row[{from, at}] = {int32_t(row)};
        }
        ++row;
      }
    }
    result.begins.push_back(int32_t(begin));
    result.counts.push_back(int32_t(row - begin));
    next = begin + (row - begin + with.alignment - 1) / with.alignment * with.alignment;
  }
  result.begins.push_back(int32_t(with.padded ? with.experts_per_rank * room : next));
  return result;
}

/// Returns an expert's result for an element of a token.
template <class T>
T result_of(int64_t expert, bf16 element) {
  return narrow<T>(widen(element) * 0.25f + float(expert));
}

/// Returns what combine() should give a token's element.
template <class T>
T combined(const Case& with, const std::vector<Batch>& batches, const std::vector<Expected>& expected,
           const std::set<uint64_t>& lost, uint64_t rank, uint64_t token, uint64_t element) {
  const Batch& batch = batches[rank];
  float sum = 0;
  for (uint64_t owner = 0; owner < batches.size(); ++owner) {
    if (lost.count(owner) != 0) continue;
    float part = 0;
    for (uint64_t slot = 0; slot < with.top_k; ++slot) {
      const uint64_t at = token * with.top_k + slot;
      const int64_t expert = batch.experts[at];
      if (expected[owner].row.count({rank, at}) == 0) continue;
      part += (with.weighs ? batch.weights[at] : 1.0f) *
              widen(result_of<T>(expert, batch.tokens[token * with.hidden + element]));
    }
    sum += widen(narrow<T>(part));
  }
  return narrow<T>(sum);
}

inline ExpertOptions options_of(const Case& with, DType result) {
  ExpertOptions options;
  options.experts_per_rank = with.experts_per_rank;
  options.top_k = with.top_k;
  options.hidden = with.hidden;
  options.max_tokens = with.max_tokens;
  options.scales = with.scales;
  options.result = result;
  options.packet_tokens = with.packet_tokens;
  options.packet = with.packet;
  options.blocks = with.blocks;
  return options;
}

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
  std::vector<int32_t> counts(with.experts_per_rank, -5), begins(with.experts_per_rank + 1, -5);
  Dispatch<int64_t> out;
  out.tokens = mine.tokens.data();
  out.scales = with.scales != 0 ? mine.scales.data() : nullptr;
  out.experts = mine.experts.data();
  out.weights = with.weighs ? mine.weights.data() : nullptr;
  out.n = mine.n;
  out.rows = got.data();
  out.row_scales = with.scales != 0 ? got_scales.data() : nullptr;
  out.counts = counts.data();
  out.begins = begins.data();
  out.room = room;
  out.alignment = with.alignment;
  out.padded = with.padded;
  out.may_drop = with.room.has_value();
  dispatch<int64_t>(exchange, out, {}, with.threads);
  ASSERT_EQ(counts, wanted.counts) << "call " << call;
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
  combine<T>(exchange, {.rows = results.data(), .tokens = back.data(), .n = mine.n}, {}, with.threads);
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
