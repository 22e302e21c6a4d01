#pragma once
/// \file
/// Provides plans that several tests read and write.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "chorale/json.hpp"
#include "helpers.hpp"

namespace chorale {

/// Returns the plans of MSCCL++; empty if they are not there.
inline std::vector<std::filesystem::path> given_plans() {
  const char* variable = std::getenv("CHORALE_SHARED");
  const std::filesystem::path shared = variable ? std::filesystem::path(variable)
                                                : std::filesystem::path(CHORALE_SOURCE_DIR) / ".." / "shared";
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(shared / "mscclpp-plans", error)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Returns a plan that contains one of everything.
inline Plan rich() {
  Plan plan = two_ranks();
  plan.name = "na\"me \xc3\xa9\n";
  plan.collective = "custom";
  ThreadBlock& ops = block(plan);
  add(ops, Opcode::copy, {in(0)}, {out(0)}).at = 2;
  add(ops, Opcode::put, {in(0), in(1)}, {at(1, 0), at(1, 1)}, {}, ChannelType::memory);
  Op& sliced = add(ops, Opcode::reduce, {in(0), in(1)}, {in(0)});
  sliced.group_index = 1;
  sliced.group_size = 4;
  sliced.reduce_op = ReduceOp::max;
  add(ops, Opcode::switch_broadcast, {in(0)}, {at(0, 3)}, {}, ChannelType::switched);
  add(ops, Opcode::switch_reduce, {at(0, 3)}, {in(0)}, {}, ChannelType::switched);
  Op& loop = add(ops, Opcode::pipeline);
  loop.body = 2;
  loop.unit_bytes = 1024;
  loop.chunks = 2;
  loop.at = 1;
  add(ops, Opcode::put_with_signal, {in(0)}, {at(1, 0)}, {1}, ChannelType::port);
  add(ops, Opcode::sem_release, {}, {}, {2});
  add(ops, Opcode::barrier, {}, {}, {7}).participants = 2;
  plan.source = {{"dir:with/colon.cpp", 11}, {"b.cpp", 2}};
  plan.extension.requirements = {"reduce_op"};
  plan.extension.input_segments = plan.extension.output_segments = 8;
  plan.extension.post = {{{{0, 1}, {1, 1}}, {}}, {{{1, 7}}}};
  plan.extension.verified = "{ \"lanes\" : [1.5e3, -2, null, true] }";
  return plan;
}

}  // namespace chorale
