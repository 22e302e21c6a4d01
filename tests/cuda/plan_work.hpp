/// \file
/// Loads plans from files and computes the CPU backend's results for them, for plans_test.
#pragma once

#include <algorithm>
#include <chorale/executor.hpp>
#include <chorale/json.hpp>
#include <chorale/layout.hpp>
#include <chorale/packet_form.hpp>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "tests/cpu/oracle.hpp"

namespace chorale::test {

using oracle::Bytes;

/// Gives the number of launches of each case, with new data and no host synchronisation between.
constexpr int launches = 3;

struct Case {
  uint64_t bytes;
  DType dtype;
  PacketForm packet;

  std::string name() const {
    return std::to_string(bytes) + " bytes of " + dtype_name(dtype) + ", " +
           std::string(packet_form_names[size_t(packet)]);
  }
};

/// Returns small and large cases of the sizes that the plan takes; most sizes are not multiples of 16. The
/// last chunk of 2 MiB is much shorter than the lines of its packets if there are 128 chunks. There is one
/// case for every form of packets if the plan sends packets. Element types are used in turn, beginning with a
/// different one for each plan, so that all are covered. A plan with codecs takes only those that they
/// encode.
/// \param quick  true: only small cases, of two types
inline std::vector<Case> cases_of(const Plan& plan, bool quick) {
  struct Size {
    uint64_t bytes;
    int types;
  };
  static constexpr Size sizes[] = {{1, 3}, {100, 2}, {4104, 2}, {65536, 3}, {2097152, 1}, {3000012, 1}};
  static_assert([] {
    int types = 0;
    for (const Size& size : sizes) types += size.types;
    return types >= int(std::size(all_dtypes));
  }());
  std::vector<Case> cases;
  const bool coded = !plan.extension.codecs.empty();
  const Segmentation segments = segmentation(plan);
  const uint64_t parts = plan.collective == "allgather" ? segments.output : segments.input;
  size_t turn = plan.name.size() + plan.gpus[0].threadblocks.size() + plan.ranks();
  for (const Size& size : sizes) {
    if (quick && size.bytes > 4104) continue;
    for (int type = 0; type < (quick ? 2 : size.types); ++type) {
      const auto next = [&] {
        return quick ? (type    ? DType::bf16
                        : coded ? DType::f32
                                : DType::i32)
                     : all_dtypes[turn++ % std::size(all_dtypes)];
      };
      DType dtype = next();
      while (coded && !has_codecs(dtype)) dtype = next();
      const uint64_t step = parts * dtype_size(dtype);
      uint64_t bytes = std::max<uint64_t>(size.bytes / step, 1) * step;
      bytes = std::max(bytes, (plan.min_message_size + step - 1) / step * step);
      if (bytes > plan.max_message_size) continue;
      if (!sends_packets(plan)) {
        cases.push_back({bytes, dtype, PacketForm::ll16});
        continue;
      }
      for (size_t form = 0; form < std::size(packet_form_names); ++form)
        cases.push_back({bytes, dtype, PacketForm(form)});
    }
  }
  const auto same = [](const Case& a, const Case& b) { return a.name() == b.name(); };
  std::stable_sort(cases.begin(), cases.end(),
                   [](const Case& a, const Case& b) { return a.name() < b.name(); });
  cases.erase(std::unique(cases.begin(), cases.end(), same), cases.end());
  return cases;
}

inline Bytes input_of(const Case& of, uint64_t bytes, int rank, int launch) {
  return oracle::random_elements(of.dtype, bytes, of.bytes * 31 + uint64_t(rank) * 7 + uint64_t(launch));
}

/// Holds outputs by launch.
using Outputs = std::vector<Bytes>;

/// Gives the byte that fills a rank's output before a launch. Some plans write only parts of the output.
constexpr int fresh = 0x5a;

inline Outputs run_on_cpu(World& world, Executor& executor, const Plan& plan, const Case& of) {
  const MessageSizes sizes = message_sizes(plan, of.bytes, of.dtype);
  Outputs outputs;
  for (int launch = 0; launch < launches; ++launch) {
    const Bytes input = input_of(of, sizes.input, world.rank(), launch);
    Bytes output(sizes.output, std::byte(fresh));
    world.barrier();
    executor.execute(plan, {.in = input.data(),
                            .out = output.data(),
                            .bytes = of.bytes,
                            .dtype = of.dtype,
                            .packet = of.packet});
    world.barrier();  // some plans leave it to their author to know when peers are done
    outputs.push_back(std::move(output));
  }
  return outputs;
}

inline std::string difference(const Outputs& seen, const Outputs& wanted, DType dtype) {
  for (size_t launch = 0; launch < wanted.size(); ++launch) {
    const std::string wrong = oracle::difference(seen[launch].data(), wanted[launch], dtype);
    if (!wrong.empty()) return "launch " + std::to_string(launch) + ": " + wrong;
  }
  return "";
}

/// Holds a plan with its expected results, by case and rank.
struct Work {
  std::string file;
  Plan plan;
  std::vector<Case> cases;
  std::vector<std::vector<Outputs>> expected;
};

/// Returns false for a plan of the `test` collective. Such a plan must only end, because its parts need not
/// wait for each other.
inline bool says_its_result(const Plan& plan) { return plan.collective != "test"; }

/// Loads the plan and computes its results on the CPU.
/// \return the reason why this is impossible; empty if it is done
inline std::string prepare(Work& work, bool quick) {
  try {
    work.plan = load(work.file);
    work.cases = cases_of(work.plan, quick);
    if (work.cases.empty()) return "no size suits it";
    if (!says_its_result(work.plan)) return "";
    const int ranks = int(work.plan.ranks());
    Config config = Config::load();
    config.backend = "cpu";
    work.expected.assign(work.cases.size(), std::vector<Outputs>(size_t(ranks)));
    run_local(ranks, [&](World& world) {
      Executor executor(world, config);
      for (size_t at = 0; at < work.cases.size(); ++at) {
        work.expected[at][size_t(world.rank())] = run_on_cpu(world, executor, work.plan, work.cases[at]);
      }
    });
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace chorale::test
