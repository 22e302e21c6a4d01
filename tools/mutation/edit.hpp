#pragma once
/// \file
/// Changes of a plan that can be taken back, so that a thousand mutants need one copy of it.

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "chorale/diagnostic.hpp"
#include "chorale/plan.hpp"

namespace chorale::mutation {

/// Changes a plan. Its end takes all changes back.
class Edit {
 public:
  explicit Edit(Plan& plan) : plan_(plan) {}
  ~Edit();
  Edit(const Edit&) = delete;
  Edit& operator=(const Edit&) = delete;

  const Plan& plan() const { return plan_; }

  /// A part of plan(), to be changed in place. Parts of a part that was changed before stay where they are.
  template <class Part>
  Part& change(const Part& part) {
    Part& mine = const_cast<Part&>(part);  // it is a part of plan_, which is not const
    undo_.push_back([&mine, before = part]() mutable { mine = std::move(before); });
    return mine;
  }

  /// The thread block and the rank of a place.
  ThreadBlock& block(const OpPlace& at);
  Gpu& gpu(uint32_t rank) { return change(plan_.gpus[rank]); }

  /// Operations. Pipelines keep what is inside: something put beside an operation of the body is in it too.
  Op& op(const OpPlace& at) { return block(at).ops[at.op]; }
  void erase(const OpPlace& at);
  void insert(const OpPlace& before, const Op&);
  void insert_behind(const OpPlace& at, const Op&);
  /// Moves an operation before another one of its block, which comes earlier.
  void move_before(const OpPlace& at, uint32_t before);

  /// Lists of an operation of its own, to be changed at will.
  void set_operands(const OpPlace& at, std::vector<Operand> sources, std::vector<Operand> dests);
  void set_ids(const OpPlace& at, std::vector<uint32_t> ids);
  /// Without one of its ids; the operation goes with its last.
  void erase_id(const OpPlace& at, uint32_t position);

  /// Positions in the lists of a block, which get longer where something is missing there.
  uint32_t channel(const OpPlace& at, ChannelType, uint32_t of_rank);
  uint32_t remote_buffer(const OpPlace& at, ChannelType via, uint32_t peer, BufferKind);
  /// A channel that pairs with a new one of `peer`; as the rank counts them.
  uint32_t add_channel(uint32_t rank, uint32_t peer, ChannelType);

  /// Cuts every chunk in two, so that each operand has an even number of them.
  /// \return false if the plan says of its chunks what would no longer be true
  bool cut_chunks();

 private:
  Plan& plan_;
  std::vector<std::function<void()>> undo_;
};

}  // namespace chorale::mutation
