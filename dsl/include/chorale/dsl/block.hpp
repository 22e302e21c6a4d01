#pragma once
/// \file
/// An operation runs on one thread block, or on several that share it.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "chorale/dsl/common.hpp"

namespace chorale::dsl {

/// Names thread blocks that share one operation. Each takes a slice of every operand.
///
/// The member at position k of n records the operation with
///   "tbg_info":{"tb_id":k,"tbg_size":n}
/// The list must not be empty and must name no block twice. A group belongs to no program. So the first call
/// that uses a wrong group reports it, with the line of the group.
/// Source: MSCCL++ ThreadBlockGroup(tb_list).
class ThreadBlockGroup {
 public:
  explicit ThreadBlockGroup(const NumberList& tb_list, Here at = Here::current())
      : tb_list_(tb_list.numbers()), at_(at) {}
  ThreadBlockGroup(std::initializer_list<int64_t> tb_list, Here at = Here::current())
      : tb_list_(tb_list), at_(at) {}

  /// Returns the number of blocks in the group (MSCCL++: numtb).
  size_t numtb() const { return tb_list_.size(); }
  const std::vector<int64_t>& tb_list() const { return tb_list_; }
  Here at() const { return at_; }

 private:
  std::vector<int64_t> tb_list_;
  Here at_;
};

/// Is the type of parameters that take a thread block or a group of them. Pass the number of the block, or
/// the group. Use it for parameters only, because it does not keep the group alive.
class Block {
 public:
  template <std::integral Number>
  requires(!std::same_as<Number, bool>) Block(Number tb) : tb_(static_cast<int64_t>(tb)) {}
  Block(const ThreadBlockGroup& group) : group_(&group) {}

  const ThreadBlockGroup* group() const { return group_; }  ///< null: one block
  int64_t tb() const { return tb_; }

 private:
  int64_t tb_ = 0;
  const ThreadBlockGroup* group_ = nullptr;
};

}  // namespace chorale::dsl
