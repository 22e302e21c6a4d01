/// \file
/// Runs plans on CPU ranks and compares the results with the collective's expected results. Elements are
/// small whole numbers, so that sums are exact in any order.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chorale/executor.hpp>
#include <chorale/json.hpp>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <regex>
#include <string>
#include <system_error>
#include <vector>

namespace chorale::test {

using Ints = std::vector<int32_t>;

/// Returns element `at` of rank `rank`'s input in launch `launch`.
inline int32_t element(uint32_t rank, uint64_t at, int launch) {
  return int32_t((at * 7 + rank * 1000003 + uint64_t(launch) * 97) % 100003) - 50000;
}

/// Adds a rank's elements from `first` on to `count` numbers.
inline void add_elements(int32_t* to, size_t count, uint32_t rank, uint64_t first, int launch) {
  for (size_t at = 0; at < count; ++at) to[at] += element(rank, first + at, launch);
}

inline Ints input_of(uint32_t rank, uint64_t bytes, int launch) {
  Ints data(bytes / 4);
  add_elements(data.data(), data.size(), rank, 0, launch);
  return data;
}

/// Returns the expected output of rank `rank`; empty if the plan does not write it.
inline Ints output_of(const Plan& plan, uint32_t rank, MessageSizes sizes, int launch) {
  const uint32_t ranks = plan.ranks();
  const size_t n = sizes.output / 4, part = n / ranks;
  Ints data(n);
  if (plan.collective == "reduce" && rank != plan.extension.root) return {};
  if (plan.collective == "allreduce" || plan.collective == "reduce") {
    for (uint32_t from = 0; from < ranks; ++from) add_elements(data.data(), n, from, 0, launch);
  } else if (plan.collective == "reducescatter") {
    for (uint32_t from = 0; from < ranks; ++from) add_elements(data.data(), n, from, rank * n, launch);
  } else if (plan.collective == "allgather") {
    for (uint32_t from = 0; from < ranks; ++from)
      add_elements(data.data() + from * part, part, from, 0, launch);
  } else if (plan.collective == "alltoall") {
    for (uint32_t from = 0; from < ranks; ++from)
      add_elements(data.data() + from * part, part, from, rank * part, launch);
  } else if (plan.collective == "broadcast") {
    add_elements(data.data(), n, plan.extension.root, 0, launch);
  } else if (plan.collective == "sendrecv") {
    add_elements(data.data(), n, (rank + ranks - 1) % ranks, 0, launch);
  }
  return data;
}

/// Returns whether a plan of the same folder differs from this one only in its number of thread blocks:
/// allreduce_ring_b64_8.json is allreduce_ring_8.json with 64 blocks.
inline bool differs_only_in_blocks(const std::filesystem::path& plan) {
  const std::string name = plan.filename().string();
  const std::string other = std::regex_replace(name, std::regex("_b[0-9]+(_[0-9]+[.]json)$"), "$1");
  std::error_code none;
  return other != name && std::filesystem::exists(plan.parent_path() / other, none);
}

enum class Where { apart, in_place, allocated };

struct Runs {
  uint64_t bytes = 0;
  Where where = Where::apart;
  int launches = 3;
  PacketForm packet = PacketForm::ll8;
};

/// Runs the plan on one rank, with new data each time. Returns "" or the first error.
inline std::string run_rank(World& world, Executor& executor, const Plan& plan, const Runs& runs) {
  constexpr size_t guard = 16;  // elements
  const uint32_t rank = uint32_t(world.rank());
  const MessageSizes sizes = message_sizes(plan, runs.bytes, DType::i32);
  const size_t most = std::max(sizes.input, sizes.output) / 4;
  Ints own_in(most + guard), own_out(most + guard);
  int32_t *in = own_in.data(), *out = own_out.data();
  if (runs.where == Where::allocated) {
    in = static_cast<int32_t*>(executor.allocate((most + guard) * 4));
    out = static_cast<int32_t*>(executor.allocate((most + guard) * 4));
  }
  int32_t* end = out + sizes.output / 4;
  if (runs.where == Where::in_place) {
    in = out;
    if (plan.collective == "allgather") in += rank * sizes.input / 4;
    if (plan.collective == "reducescatter") {
      out += rank * sizes.output / 4;
      end = in + sizes.input / 4;
    }
  }
  for (int launch = 0; launch < runs.launches; ++launch) {
    if (runs.where != Where::in_place) std::fill(out, out + sizes.output / 4, -7);
    std::fill(end, end + guard, -9);
    const Ints data = input_of(rank, sizes.input, launch);
    std::copy(data.begin(), data.end(), in);
    executor.execute(plan,
                     {.in = in, .out = out, .bytes = runs.bytes, .dtype = DType::i32, .packet = runs.packet});
    const Ints expected = output_of(plan, rank, sizes, launch);
    const auto [wanted, found] = std::mismatch(expected.begin(), expected.end(), out);
    if (wanted != expected.end()) {
      return "rank " + std::to_string(rank) + " launch " + std::to_string(launch) + " element " +
             std::to_string(found - out) + ": " + std::to_string(*found) + ", not " + std::to_string(*wanted);
    }
    for (size_t at = 0; at < guard; ++at) {
      if (end[at] != -9) return "rank " + std::to_string(rank) + " wrote behind its output";
    }
  }
  return "";
}

/// Runs the plan on threads, or as fibers if options.seed is set. Returns "" or the first error on any rank.
inline std::string run_threads(const Plan& plan, const std::vector<Runs>& all, LocalOptions options = {}) {
  std::vector<std::string> wrong(plan.ranks());
  run_local(
      int(plan.ranks()),
      [&](World& world) {
        Executor executor(world);
        for (const Runs& runs : all) {
          std::string& mine = wrong[size_t(world.rank())];
          if (mine.empty()) {
            mine = run_rank(world, executor, plan, runs);
            if (!mine.empty()) mine += " (" + std::to_string(runs.bytes) + " bytes)";
          } else {
            run_rank(world, executor, plan, runs);
          }
        }
      },
      options);
  for (const std::string& one : wrong) {
    if (!one.empty()) return one;
  }
  return "";
}

/// Returns the message sizes, in bytes, that have these numbers of elements in each part and that the plan
/// takes.
inline std::vector<uint64_t> some_sizes(const Plan& plan, std::vector<uint64_t> parts) {
  const Segmentation segments = segmentation(plan);
  const uint64_t step = 4 * (plan.collective == "allgather" ? segments.output : segments.input);
  std::vector<uint64_t> sizes;
  for (const uint64_t elements : parts) {
    const uint64_t bytes = elements * step;
    if (bytes >= plan.min_message_size && bytes <= plan.max_message_size) sizes.push_back(bytes);
  }
  return sizes;
}

inline std::filesystem::path source_dir() { return CHORALE_SOURCE_DIR; }

}  // namespace chorale::test
