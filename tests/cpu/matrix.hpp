/// \file
/// Runs a shipped algorithm several times back to back and compares every byte with the oracle.
#pragma once

#include <algorithm>
#include <chorale/dsl.hpp>
#include <chorale/executor.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "chorale/collective.hpp"
#include "tests/cpu/oracle.hpp"

namespace matrix {

using chorale::DType;
using chorale::PacketForm;
using chorale::ReduceOp;
using oracle::Bytes;
using oracle::difference;

/// Describes a shipped algorithm and how it is built.
struct Algorithm {
  std::string name, collective;
  bool inplace = false;
  std::vector<int> ranks = {2, 3, 4, 5, 7, 8};
};

/// Returns all algorithms that are linked in, so that none is forgotten. Algorithms that can run in place
/// appear twice. codecs_test.cpp tests those that encode, whose results are not exact.
inline const std::vector<Algorithm>& algorithms() {
  static const std::vector<Algorithm> all = [] {
    std::vector<Algorithm> found;
    for (const chorale::dsl::RegisteredProgram& program : chorale::dsl::programs()) {
      if (!chorale::dsl::build(program.name).recorded().extension.codecs.empty()) continue;
      Algorithm& algorithm = found.emplace_back();
      algorithm.name = program.name;
      algorithm.collective = chorale::dsl::build(program.name).recorded().collective;
      if (program.name == "allreduce_two_level") algorithm.ranks = {3, 4, 6, 8};  // two nodes, or three
      const std::vector<chorale::dsl::Parameter> parameters = chorale::dsl::describe(program.name).parameters;
      const auto is_inplace = [](const auto& parameter) { return parameter.name == "inplace"; };
      if (std::none_of(parameters.begin(), parameters.end(), is_inplace)) continue;
      found.push_back(Algorithm(found.back()));
      found.back().inplace = true;
    }
    return found;
  }();
  return all;
}

inline bool reduces(const Algorithm& algorithm) { return chorale::collective_reduces(algorithm.collective); }

/// Holds a plan and the oracle's setting for it.
struct Built {
  chorale::Plan plan;
  oracle::Setting setting;
  bool inplace = false;
};

/// Builds an algorithm, and caches the result. `instances` 0 means its default.
inline const Built& build(const Algorithm& algorithm, int ranks, int instances = 0) {
  static std::map<std::string, std::unique_ptr<Built>> known;
  chorale::dsl::Parameters::Settings settings{{"ranks", std::to_string(ranks)}};
  oracle::Setting setting{.algorithm = algorithm.name, .collective = algorithm.collective, .ranks = ranks};
  if (algorithm.inplace) settings["inplace"] = "true";
  if (chorale::collective_info(setting.collective).has_root())
    settings["root"] = std::to_string(setting.root = ranks - 1);
  if (instances) settings["instances"] = std::to_string(instances);
  if (setting.algorithm == "allreduce_two_level") {  // 2x2, 2x3, 2x4, and three nodes of one GPU
    setting.gpus_per_node = ranks % 2 ? 1 : ranks / 2;
    settings["gpus_per_node"] = std::to_string(setting.gpus_per_node);
  }
  std::string key = algorithm.name;
  for (const auto& [name, value] : settings) key += " " + name + "=" + value;
  std::unique_ptr<Built>& built = known[key];
  if (!built) {
    chorale::dsl::Compiled compiled = chorale::dsl::build(algorithm.name, settings).compile();
    if (!compiled.ok()) {
      throw std::runtime_error(key +
                               " does not compile: " + chorale::render(compiled.plan, compiled.diagnostics));
    }
    setting.instances =
        int(compiled.plan.gpus[0].threadblocks.size());  // shipped algorithms that reduce have one block each
    built = std::make_unique<Built>(Built{std::move(compiled.plan), setting, algorithm.inplace});
  }
  return *built;
}

struct Case {
  const Built* built = nullptr;
  DType type = DType::f32;
  ReduceOp op = ReduceOp::sum;
  size_t size = 0;     ///< bytes of one rank's part
  bool alias = false;  ///< one buffer serves as input and output
  size_t shift = 0;    ///< bytes by which the buffers are misaligned
  PacketForm packet = PacketForm::ll8;
  int runs = 5;
  uint64_t seed = 1;
};

inline std::string describe(const Case& of) {
  std::ostringstream text;
  text << of.built->setting.algorithm << (of.built->inplace ? " inplace" : "") << ", "
       << of.built->setting.ranks << " ranks, " << of.size << " bytes, " << chorale::dtype_name(of.type)
       << ' ' << chorale::reduce_op_name(of.op) << (of.alias ? ", one buffer" : "") << ", shift " << of.shift
       << ", " << chorale::packet_form_names[size_t(of.packet)];
  return text.str();
}

/// Holds data and results of all runs, by run and rank. They are made before the ranks start, so that the
/// ranks only run.
struct Prepared {
  std::vector<std::vector<Bytes>> inputs, outputs;
};

inline Prepared prepare(const Case& of) {
  Prepared all;
  oracle::Setting setting = of.built->setting;
  setting.type = of.type;
  setting.op = of.op;
  // A line of LL128 packets has seven units of data. Of the algorithms that send packets, only this one
  // depends on where chunks begin.
  if (of.packet == chorale::PacketForm::ll128 && setting.algorithm == "allreduce_two_shot")
    setting.unit = 112;
  const bool parts = setting.collective == "reducescatter" || setting.collective == "alltoall";
  all.inputs.resize(size_t(of.runs));
  all.outputs.resize(size_t(of.runs));
  const auto prepare_run = [&](size_t run) {
    for (int rank = 0; rank < setting.ranks; ++rank) {
      const uint64_t seed = (of.seed * 1000 + run) * 1000 + uint64_t(rank);
      all.inputs[run].push_back(
          oracle::random_elements(of.type, of.size * size_t(parts ? setting.ranks : 1), seed));
    }
    all.outputs[run] = oracle::expected(setting, all.inputs[run]);
  };
  // The oracle takes longer than everything else for long messages, so threads share its work. For short
  // messages the threads would take longer.
  constexpr size_t worth_a_thread = 32768;
  std::vector<std::future<void>> others;
  for (size_t run = 0; run < size_t(of.runs); ++run) {
    if (of.size >= worth_a_thread)
      others.push_back(std::async(std::launch::async, prepare_run, run));
    else
      prepare_run(run);
  }
  for (std::future<void>& other : others) other.get();
  return all;
}

/// Holds a buffer between canaries.
class Guarded {
 public:
  Guarded(size_t bytes, size_t shift) : size_(bytes), begin_(guard + shift), all_(bytes + 2 * guard + shift) {
    fill(std::byte{0xee});
  }
  std::byte* data() { return all_.data() + begin_; }
  void fill(std::byte value) { std::memset(data(), int(value), size_); }
  void arm() {
    std::fill(all_.begin(), begin(), canary);
    std::fill(end(), all_.end(), canary);
  }
  bool intact() {
    const auto is_canary = [](std::byte one) { return one == canary; };
    return std::all_of(all_.begin(), begin(), is_canary) && std::all_of(end(), all_.end(), is_canary);
  }

 private:
  static constexpr size_t guard = 64;
  static constexpr std::byte canary{0xc5};
  std::vector<std::byte>::iterator begin() { return all_.begin() + std::ptrdiff_t(begin_); }
  std::vector<std::byte>::iterator end() { return begin() + std::ptrdiff_t(size_); }
  size_t size_, begin_;
  std::vector<std::byte> all_;
};

/// Runs one rank's part of a case. There is no barrier between two runs. The rank overwrites its output and
/// changes its input at once, so that a peer that still reads or writes here causes an error.
/// \return the error; empty: none
inline std::string run_rank(chorale::World& world, const Case& of, const Prepared& all) {
  const size_t rank = size_t(world.rank());
  const size_t input_bytes = all.inputs[0][rank].size(), output_bytes = all.outputs[0][rank].size();
  const std::string& collective = of.built->setting.collective;
  // In one buffer, an all-gather has its input at the rank's place, and a reduce-scatter its output.
  Guarded first(of.alias ? std::max(input_bytes, output_bytes) : output_bytes, of.shift);
  Guarded second(of.alias ? 0 : input_bytes, of.shift);
  std::byte* const output = first.data() + (of.alias && collective == "reducescatter" ? rank * of.size : 0);
  std::byte* const input =
      of.alias ? first.data() + (collective == "allgather" ? rank * of.size : 0) : second.data();
  first.arm();
  second.arm();
  chorale::Arguments arguments{.in = input, .out = output, .bytes = std::max(input_bytes, output_bytes)};
  if (output_bytes == 0 && !of.alias) arguments.out = nullptr;  // this rank gets no result
  arguments.dtype = of.type;
  arguments.packet = of.packet;
  if (chorale::collective_reduces(collective)) arguments.op = of.op;

  chorale::Executor executor(world);
  for (int run = 0; run < of.runs; ++run) {
    first.fill(std::byte{0xee});
    const Bytes& data = all.inputs[size_t(run)][rank];
    std::copy(data.begin(), data.end(), input);
    executor.execute(of.built->plan, arguments);
    std::string wrong = difference(output, all.outputs[size_t(run)][rank], of.type);
    if (wrong.empty() && !of.alias) {
      wrong = difference(input, data, of.type);
      if (!wrong.empty()) wrong = "input changed: " + wrong;
    }
    if (wrong.empty() && !(first.intact() && second.intact())) wrong = "bytes beside a buffer were written";
    if (!wrong.empty()) return "run " + std::to_string(run) + ", rank " + std::to_string(rank) + ": " + wrong;
  }
  return "";
}

/// Runs all ranks as threads or, with a seed, in an order drawn from it.
inline std::string run_threads(const Case& of, std::optional<uint64_t> seed = {}) {
  const Prepared all = prepare(of);
  std::vector<std::string> wrong(size_t(of.built->setting.ranks));
  try {
    chorale::run_local(of.built->setting.ranks,
                       [&](chorale::World& world) { wrong[size_t(world.rank())] = run_rank(world, of, all); },
                       {.seed = seed});
  } catch (const std::exception& error) {
    return error.what();
  }
  for (const std::string& text : wrong) {
    if (!text.empty()) return text;
  }
  return "";
}

}  // namespace matrix
