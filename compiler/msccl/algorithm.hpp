#pragma once
/// \file
/// An Algorithm holds an MSCCL file before it becomes a plan. read_algorithm() reads the elements. settle()
/// fills in what the file leaves out and checks every chunk against the sizes. Sends and receives are not
/// paired yet.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chorale/plan.hpp"
#include "findings.hpp"

namespace chorale::msccl {

/// Describes a kind of step: what it does with its thread block's connections, its source and its
/// destination.
struct AlgorithmStepType {
  std::string_view name;
  bool receives, sends;
  bool source;       ///< srcbuf and srcoff are read on this gpu; if false, they only describe the other side
  bool destination;  ///< dstbuf and dstoff are written on this gpu
  bool reduces;      ///< the source is combined with what is received, or with the destination
};

inline constexpr AlgorithmStepType step_types[] = {
    {"s", false, true, true, false, false},     {"r", true, false, false, true, false},
    {"rcs", true, true, false, true, false},    {"rrc", true, false, true, true, true},
    {"rrcs", true, true, true, true, true},     {"rrs", true, true, true, false, true},
    {"re", false, false, true, true, true},     {"cpy", false, false, true, true, false},
    {"nop", false, false, false, false, false},
};

/// Returns the type of a name that the table has.
constexpr const AlgorithmStepType* step_type(std::string_view name) {
  const AlgorithmStepType* type = step_types;
  while (type->name != name) ++type;
  return type;
}

/// Lists the words that MSCCL's runtimes have for collectives. Some are not Chorale's, which lacks a row for
/// them.
inline constexpr std::string_view collective_words[] = {
    "allreduce", "allgather", "reducescatter", "alltoall", "broadcast", "reduce",
    "custom",    "gather",    "scatter",       "send",     "recv",      "alltoallv"};

/// Names chunks of a buffer of the gpu that runs the step.
struct Region {
  BufferKind buffer = BufferKind::input;
  uint64_t index = 0, size = 0;
  bool operator==(const Region&) const = default;
};

/// Names a step of another thread block of the same gpu.
struct StepRef {
  uint32_t block = 0, step = 0;
  bool operator==(const StepRef&) const = default;
};

struct AlgorithmStep {
  const AlgorithmStepType* type = nullptr;
  Region source, destination;      ///< only if the type has them
  uint64_t count = 0;              ///< chunks
  std::vector<StepRef> waits_for;  ///< depid and deps of the file, and the copies before it
  std::optional<bool> awaited;     ///< hasdep, if the file has it
  uint32_t line = 0;

  bool is(std::string_view name) const { return type->name == name; }
};

struct Block {
  int64_t send = -1, receive = -1;  ///< peers; -1: none
  uint32_t channel = 0;
  std::vector<AlgorithmStep> steps;
  uint32_t line = 0;
};

/// Describes a <copy>: before any step, this chunk of the input is copied to this chunk of the output.
struct InitialCopy {
  uint64_t from = 0, to = 0;
  uint32_t line = 0;
};

struct AlgorithmGpu {
  std::optional<uint64_t> input, output;  ///< i_chunks and o_chunks, if the file has them
  std::optional<uint64_t> said_scratch;   ///< s_chunks, if the file has it
  uint64_t scratch = 0;                   ///< chunks, set by settle()
  std::vector<InitialCopy> copies;
  std::vector<Block> blocks;  ///< by id
  uint32_t line = 0;
};

struct Algorithm {
  std::string name;
  std::string collective;  ///< MSCCL's word, empty if there is none; after settle(), the word of plans
  std::optional<bool> said_inplace, said_outofplace;
  bool inplace = false;                 ///< set by settle()
  std::optional<uint64_t> said_chunks;  ///< nchunksperloop, if the file has it
  uint64_t min_bytes = 0, max_bytes = UINT64_MAX;
  uint64_t input = 0, output = 0;  ///< chunks of each gpu, set by settle()
  uint32_t root = 0;               ///< of a broadcast or a reduce
  /// Says of which inputs each output is the sum, like Plan::extension.post, if a custom collective's result
  /// is known.
  std::vector<std::vector<std::vector<Contribution>>> post;
  uint32_t line = 0;
  std::vector<AlgorithmGpu> gpus;  ///< by id
  /// Holds sentences that findings of proofs show. They say what the file left out and what was assumed
  /// instead.
  std::vector<std::string> assumed;
};

/// Returns a name such as "gpu 3". block_name() returns a name such as "thread block 2 of gpu 3".
std::string gpu_name(uint64_t gpu);
std::string block_name(uint64_t gpu, uint64_t block);

/// Reads an algorithm from the text. The result is complete only if there are no findings.
Algorithm read_algorithm(std::string_view xml, Findings&);

/// Decides what the file leaves out: the collective, whether it is in place, the sizes, the root. If a writer
/// placed regions past the end of the output, they are moved to scratch.
void settle(Algorithm&, Findings&);

/// Turns each <copy> that changes something into a step of an additional thread block. In an algorithm in
/// place, most copies change nothing, because both chunks are the same.
void write_copies(Algorithm&);

/// Says where a region of a gpu is in memory. Input and output of an algorithm in place are one memory. For
/// an all-gather or a reduce-scatter, the smaller of the two is the rank's part of the larger one.
struct MemoryPlace {
  BufferKind memory = BufferKind::input;
  uint64_t begin = 0;
  bool operator==(const MemoryPlace&) const = default;
};
MemoryPlace memory_place(const Algorithm&, uint32_t gpu, const Region&);

/// Returns whether two regions of a gpu have memory in common.
bool overlap(const Algorithm&, uint32_t gpu, const Region&, const Region&);

}  // namespace chorale::msccl
