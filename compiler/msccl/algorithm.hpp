#pragma once
/// \file
/// What an MSCCL file says, before anything is made of it. Every number has been checked against the sizes
/// that the file gives; sends and receives have not been paired.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chorale/plan.hpp"
#include "findings.hpp"

namespace chorale::msccl {

/// A kind of step: what it does with its thread block's connections, with its source and with its
/// destination.
struct StepType {
  std::string_view name;
  bool receives, sends;
  bool source;       ///< srcbuf and srcoff are read on this gpu; else they only describe the other side
  bool destination;  ///< dstbuf and dstoff are overwritten on this gpu
  bool reduces;      ///< what is received, or the destination, is added to the source
};

inline constexpr StepType step_types[] = {
    {"s", false, true, true, false, false},     {"r", true, false, false, true, false},
    {"rcs", true, true, false, true, false},    {"rrc", true, false, true, true, true},
    {"rrcs", true, true, true, true, true},     {"rrs", true, true, true, false, true},
    {"re", false, false, true, true, true},     {"cpy", false, false, true, true, false},
    {"nop", false, false, false, false, false},
};

/// Chunks of a buffer of the gpu that runs the step.
struct Region {
  BufferKind buffer = BufferKind::input;
  uint64_t index = 0, size = 0;
};

/// A step of another thread block of the same gpu.
struct StepRef {
  uint32_t block = 0, step = 0;
  bool operator==(const StepRef&) const = default;
};

struct Step {
  const StepType* type = nullptr;
  Region source, destination;        ///< as far as the type has them
  uint64_t count = 0;                ///< chunks
  std::optional<StepRef> waits_for;  ///< depid and deps, as they stand in the file
  bool awaited = false;              ///< hasdep
  uint32_t line = 0;

  bool is(std::string_view name) const { return type->name == name; }
};

struct Block {
  int64_t send = -1, receive = -1;  ///< peers; -1: none
  uint32_t channel = 0;
  std::vector<Step> steps;
  uint32_t line = 0;
};

struct AlgorithmGpu {
  uint64_t scratch = 0;       ///< chunks
  std::vector<Block> blocks;  ///< by id
  uint32_t line = 0;
};

struct Algorithm {
  std::string name, collective;  ///< the collective by the word that plans have for it
  bool inplace = false;
  uint64_t min_bytes = 0, max_bytes = UINT64_MAX;
  uint64_t input = 0, output = 0;  ///< chunks of each gpu
  uint32_t root = 0;               ///< of a broadcast
  uint32_t line = 0;
  std::vector<AlgorithmGpu> gpus;  ///< by id
};

/// "gpu 3", "thread block 2 of gpu 3".
std::string gpu_name(uint64_t gpu);
std::string block_name(uint64_t gpu, uint64_t block);

/// What the text says. Only complete if there are no findings.
Algorithm read_algorithm(std::string_view xml, Findings&);

}  // namespace chorale::msccl
