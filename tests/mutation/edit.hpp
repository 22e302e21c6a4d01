#pragma once
/// \file
/// Changes a plan and can undo the changes, so that a thousand mutants need one copy of it.

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "chorale/diagnostic.hpp"
#include "chorale/plan.hpp"

namespace chorale::mutation {

/// Changes a plan. The destructor undoes all changes.
class Edit {
 public:
  explicit Edit(Plan& plan) : plan_(plan) {}
  ~Edit();
  Edit(const Edit&) = delete;
  Edit& operator=(const Edit&) = delete;

  const Plan& plan() const { return plan_; }

  /// Returns a part of plan(), for changes in place. Parts of a part that was changed before keep their
  /// addresses.
  template <class Part>
  Part& change(const Part& part) {
    Part& mine = const_cast<Part&>(part);  // it is a part of plan_, which is not const
    undo_.push_back([&mine, before = part]() mutable { mine = std::move(before); });
    return mine;
  }

  /// Return the thread block and the rank of a place, for changes.
  ThreadBlock& block(const OpPlace& at);
  Gpu& gpu(uint32_t rank) { return change(plan_.gpus[rank]); }

  /// These functions change operations. Pipelines keep their contents: an operation that is inserted beside
  /// one of the body is also in the body.
  Op& op(const OpPlace& at) { return block(at).ops[at.op]; }
  void erase(const OpPlace& at);
  void insert(const OpPlace& before, const Op&);
  void insert_behind(const OpPlace& at, const Op&);
  /// Moves an operation before another one of its block, which comes earlier.
  void move_before(const OpPlace& at, uint32_t before);

  /// Give an operation its own lists, which may be changed freely.
  void set_operands(const OpPlace& at, std::vector<Operand> sources, std::vector<Operand> dests);
  void set_ids(const OpPlace& at, std::vector<uint32_t> ids);
  /// Removes one of an operation's ids, and the operation with the last one.
  void erase_id(const OpPlace& at, uint32_t position);

  /// Return positions in the lists of a block, and add the entry if it is missing.
  uint32_t channel(const OpPlace& at, ChannelType, uint32_t of_rank);
  uint32_t remote_buffer(const OpPlace& at, ChannelType via, uint32_t peer, BufferKind);
  /// Adds a channel that pairs with a new one of `peer`. Returns its number as the rank counts them.
  uint32_t add_channel(uint32_t rank, uint32_t peer, ChannelType);

  /// Cuts every chunk in two, so that each operand has an even number of chunks.
  /// \return false if the plan states something about its chunks that would no longer be true
  bool cut_chunks();

 private:
  Plan& plan_;
  std::vector<std::function<void()>> undo_;
};

}  // namespace chorale::mutation
