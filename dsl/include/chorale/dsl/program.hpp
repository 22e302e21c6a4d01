#pragma once
/// \file
/// A Program collects the operations of an algorithm and compiles them into a plan.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "chorale/dsl/collectives.hpp"
#include "chorale/dsl/common.hpp"
#include "chorale/dsl/rank.hpp"

namespace chorale::dsl {

/// Holds the name of a program, its collective, and options for the compiler and the executor. A value that
/// is out of its bounds gives a finding.
struct ProgramOptions {
  std::string name = {};       ///< not empty
  Collective collective = {};  ///< the collective that it computes, and for how many ranks
  Protocol protocol = Protocol::Simple;
  int64_t instances = 1;  ///< copies that each take an equal share of every operand; 1 to 1024
  bool fuse = true;       ///< MSCCL++: instr_fusion
  bool auto_sync = true;  ///< synchronises threads where operations of a block access the same memory here
  ReplicationPolicy replication = ReplicationPolicy::interleaved;  ///< MSCCL++: replication_policy
  bool reuse_resources = false;            ///< MSCCL++: turns of a pipeline share scratch; ignored here
  int64_t threads_per_block = 1024;        ///< 32 to 1024, a multiple of 32; MSCCL++: num_threads_per_block
  bool use_double_scratch_buffer = false;  ///< launches alternate between two copies of plain scratch
  int64_t buffer_alignment = 16;           ///< bytes; a power of two
  uint64_t min_message_size = 0, max_message_size = UINT64_MAX;  ///< bytes; min is not above max
  /// If true, thread blocks may compete for semaphores and channels. The proofs then cover only a bounded
  /// number of orders.
  bool bounded_proof = false;
  Target target = Target::chorale;  ///< the executor that it is compiled for
};

/// Holds a compiled plan and the findings. Do not run a plan that has findings.
struct Compiled {
  Plan plan;
  Diagnostics diagnostics;
  bool ok() const { return diagnostics.empty(); }
};

/// Records an algorithm as a Plan. Nothing is global, so you can build several programs at once, one per
/// thread. The handles made from a Program (Rank, Buffer, channels) stay valid when it is moved. If you
/// assign another program to it, calls with old handles are refused. The assigned program has the finding.
///
///   Program program({.name = "mine", .collective = AllReduce{.ranks = 8}, .protocol = Protocol::LL});
///
/// The options become the top level of the plan.
/// Source: MSCCL++ CollectiveProgram(name, collective, num_ranks, ...).
class Program {
 public:
  explicit Program(ProgramOptions, Here at = Here::current());
  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;
  ~Program();

  Rank rank(int64_t rank, Here at = Here::current()) { return Rank(*this, rank, at); }

  const std::string& name() const;
  int64_t num_ranks() const;

  /// Runs `body` once. The operations that it records become the body of a loop over the units of
  /// `num_chunks` chunks. A unit has `unit_bytes` bytes, and each turn advances every operand by one unit.
  /// Bounds and the plan's form are those of LoopIterationContext.
  template <class Body>
  void loop(int64_t unit_bytes, int64_t num_chunks, Body&& body, Here at = Here::current());

  /// Returns the findings of the calls so far, in order. Equal findings at one line count once.
  Diagnostics diagnostics() const;

  /// Returns the plan as recorded, before any rewrite.
  Plan recorded() const;

  /// Returns the options of the program that the compiler needs.
  CompileOptions compile_options() const;

  /// Runs the checks and the rewrites on a copy of the recording, so a second call gives the same result. If
  /// the calls of the program had findings, it does not compile and returns the plan as recorded.
  /// Source: MSCCL++ to_json().
  Compiled compile() const& { return compile(compile_options()); }
  /// Compiles with the given options instead of those of the program.
  Compiled compile(const CompileOptions&) const&;

  /// Compiles the recording itself instead of a copy, which takes half the memory. Afterwards you can only
  /// destroy the program or assign another to it.
  Compiled compile() && { return std::move(*this).compile(compile_options()); }
  Compiled compile(const CompileOptions&) &&;

  /// Returns the number of operations recorded so far. The operations of a loop count once.
  uint64_t recorded_ops() const;

 private:
  friend class Recording;
  friend class Schedule;
  Program(Plan, Diagnostics);             // for a schedule: there is nothing to record into
  std::unique_ptr<Recording> recording_;  // on the heap: handles point to it
};

/// Makes the operations recorded until the end of the scope the body of a loop.
///
/// At the end it groups them by rank and thread block and appends each group to its block as
///   {"name":"pipeline","iter_context":{"unit_size":unit_bytes,"num_chunks":num_chunks},"ops":[...]}
/// `unit_bytes` and `num_chunks` are 1 to 2^32 - 1. Loops do not nest. If an exception leaves the scope, no
/// operation is recorded. Program::loop() does the same with a function.
/// Source: MSCCL++ LoopIterationContext(unit, num_chunks).
class LoopIterationContext {
 public:
  LoopIterationContext(Program&, int64_t unit_bytes, int64_t num_chunks, Here at = Here::current());
  LoopIterationContext(const LoopIterationContext&) = delete;
  LoopIterationContext& operator=(const LoopIterationContext&) = delete;
  ~LoopIterationContext();

 private:
  Recording* recording_;
  int exceptions_;  // number in flight when the scope was entered
};

template <class Body>
void Program::loop(int64_t unit_bytes, int64_t num_chunks, Body&& body, Here at) {
  LoopIterationContext context(*this, unit_bytes, num_chunks, at);
  std::forward<Body>(body)();
}

}  // namespace chorale::dsl
