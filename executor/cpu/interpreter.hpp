/// \file
/// This interpreter runs a device program on the CPU: each thread block is a fiber, whose group has one
/// thread. executor/cuda/kernels/interpreter.cuh does the same on a GPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "chorale/device/engine.hpp"
#include "executor/fibers/scheduler.hpp"
#include "run.hpp"

namespace chorale::cpu {

class Interpreter {
 public:
  /// \param memory memory_bytes() bytes that no other block uses
  Interpreter(Run& run, uint32_t block, fibers::BlockHost& host, char* memory);

  static size_t memory_bytes(const lowering::DeviceProgram& program);

  /// Runs the block from beginning to end. A Stop other than none ends it at once, and it publishes nothing
  /// after that.
  Stop run();

 private:
  struct Page;

  template <class P>
  Stop run_pages();
  void enter(uint32_t op);
  void expect(uint64_t value, const uint64_t* word, int peer);
  void compute(uint32_t op);

  Stop control(const Page& page, const lowering::ProgramStep& step);
  Stop await(const lowering::SyncItem::Await& item, bool relaxed);
  Stop arrive(const lowering::SyncItem::Barrier& item);
  Stop push(const Page& page, const lowering::ProgramStep& step, const lowering::SyncItem::Push& item);

  template <class P>
  Stop data(const Page& page, const lowering::ProgramStep& step);
  template <class P, class Source>
  Stop move(const lowering::ProgramStep& step, const Source& source, const Mem* plain,
            const Packets<P>* packets);

  Stop settle(const Page& page, uint32_t place, char*& address);
  Stop settle_at_peer(char*& address);
  Stop reach(uint32_t rank);

  Run& run_;
  const uint32_t block_;
  fibers::BlockHost& host_;
  const Group group_;
  char* const memory_;
  uint64_t* const counts_;  ///< the numbers of posts that this block has waited for
  uint64_t turn_ = 0;       ///< the current turn of the loop
  uint32_t op_ = ~0u;       ///< the current operation
};

}  // namespace chorale::cpu
