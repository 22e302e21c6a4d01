#pragma once
/// \file
/// A program under construction is the object that every other one records into.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "chorale/dsl/collectives.hpp"
#include "chorale/dsl/common.hpp"
#include "chorale/dsl/rank.hpp"

namespace chorale::dsl {

/// Says what a program is called, computes and asks of its executor. Values out of bounds are findings.
struct ProgramOptions {
  std::string name = {};       ///< not empty
  Collective collective = {};  ///< the collective that it computes, and for how many ranks
  Protocol protocol = Protocol::Simple;
  int64_t instances = 1;  ///< copies that each take a share of every chunk; 1 to 1024
  bool fuse = true;       ///< MSCCL++: instr_fusion
  bool auto_sync = true;  ///< threads are synchronised where operations of a block touch the same memory here
  ReplicationPolicy replication = ReplicationPolicy::interleaved;  ///< MSCCL++: replication_policy
  bool reuse_resources = false;            ///< MSCCL++'s turns of a pipeline share scratch; not here
  int64_t threads_per_block = 1024;        ///< a multiple of 32, to 1024; MSCCL++: num_threads_per_block
  bool use_double_scratch_buffer = false;  ///< launches take two copies of scratch in turns
  int64_t buffer_alignment = 16;           ///< bytes; a power of two
  uint64_t min_message_size = 0, max_message_size = UINT64_MAX;  ///< bytes; min is not above max
  /// When true, thread blocks may compete for semaphores and channels. Then a bounded number of orders is
  /// proved.
  bool bounded_proof = false;
  Target target = Target::chorale;  ///< the executor that it is compiled for
};

/// Holds a compiled plan, and what was found. Do not run a plan with findings.
struct Compiled {
  Plan plan;
  Diagnostics diagnostics;
  bool ok() const { return diagnostics.empty(); }
};

/// Records an algorithm as a Plan. Nothing is global, so you can build several programs at once, one thread
/// each. Moving a Program keeps the handles made from it (Rank, Buffer, channels) valid. When you assign
/// another program to one, every call with the old handles is refused, as a finding of that other program.
///
///   Program program({.name = "mine", .collective = AllReduce{.ranks = 8}, .protocol = Protocol::LL});
///
/// It becomes the top level of the plan. Violated bounds are findings as everywhere.
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

  /// Runs `body` once. What it records becomes a loop over the units of `num_chunks` chunks, in which every
  /// operand advances by `unit_bytes` a turn. See LoopIterationContext.
  template <class Body>
  void loop(int64_t unit_bytes, int64_t num_chunks, Body&& body, Here at = Here::current());

  /// Returns the findings of the calls so far, in order. Equal findings of one line count once.
  Diagnostics diagnostics() const;

  /// Returns the plan as recorded, before any rewrite.
  Plan recorded() const;

  /// Returns the options that are for the compiler.
  CompileOptions compile_options() const;

  /// Runs the checks and the rewrites on a copy of the recording, so a second call gives the same. If the
  /// program has findings of its own, it stops there, and the plan is as recorded.
  /// Source: MSCCL++ to_json().
  Compiled compile() const& { return compile(compile_options()); }
  /// Compiles with other options than those of the program.
  Compiled compile(const CompileOptions&) const&;

  /// Compiles the recording itself, in half the memory. The program is moved from.
  Compiled compile() && { return std::move(*this).compile(compile_options()); }
  Compiled compile(const CompileOptions&) &&;

  /// Returns the number of operations recorded so far. Those of one loop count once.
  uint64_t recorded_ops() const;

 private:
  friend class Recording;
  friend class Schedule;
  Program(Plan, Diagnostics);             // for a schedule: there is nothing to record into
  std::unique_ptr<Recording> recording_;  // on the heap: handles point to it
};

/// Makes operations the body of a loop, from here to the end of the scope.
///
/// At the end they are grouped by rank and thread block, and each group is appended to its block as
///   {"name":"pipeline","iter_context":{"unit_size":unit_bytes,"num_chunks":num_chunks},"ops":[...]}
/// `unit_bytes` and `num_chunks` are 1 to 2^32. Loops do not nest. A scope that is left by an
/// exception records no operation. Program::loop() is the same with a function.
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
