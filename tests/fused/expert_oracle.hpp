/// \file
/// Makes tokens and routes, and says where each token should arrive and what each should become. It knows the
/// tokens of all ranks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "chorale/fused/experts.hpp"

namespace chorale::fused::test {

/// Returns a number that follows from `value` and looks random.
inline uint64_t drawn_from(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

/// Returns small whole numbers, so that they and sums of a few are exact in every type.
template <class T>
std::vector<T> numbers_of(uint64_t message, uint64_t n) {
  std::vector<T> numbers(n);
  for (uint64_t at = 0; at < n; ++at)
    numbers[at] = narrow<T>(float(int(drawn_from(message * 1000003 + at + 1) % 8)));
  return numbers;
}

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
  const uint64_t drawn = drawn_from(call * 1009 + rank + 1);
  const Routing routing = Routing(drawn % 5);
  Batch batch;
  batch.n = drawn % 7 == 0 ? 0 : uint32_t((drawn >> 8) % (with.max_tokens + 1));
  batch.tokens = numbers_of<bf16>(call * 64 + rank, batch.n * with.hidden);
  batch.scales = numbers_of<float>(call * 64 + rank + 7777, uint64_t(batch.n) * with.scales);
  const uint64_t all = uint64_t(with.ranks) * with.experts_per_rank;
  for (uint64_t token = 0; token < batch.n; ++token) {
    std::set<int64_t> named;
    for (uint64_t slot = 0; slot < with.top_k; ++slot) {
      const uint64_t next = drawn_from(drawn + token * 131 + slot + 5);
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
  std::vector<int32_t> counts, wanted, begins;
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
    result.begins.push_back(int32_t(std::min(begin, end)));
    result.counts.push_back(int32_t(std::min(row, std::max(begin, end)) - begin));
    result.wanted.push_back(int32_t(row - begin));
    next = begin + (row - begin + with.alignment - 1) / with.alignment * with.alignment;
  }
  result.begins.push_back(int32_t(with.padded ? with.experts_per_rank * room : std::min(next, room)));
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

}  // namespace chorale::fused::test
