#pragma once
/// \file
/// An Algebra describes what tensors contain. Contents are sums of products of parts of the inputs.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "chorale/schedule/concrete.hpp"

namespace chorale::schedule {

/// Names a content. Equal contents have equal numbers.
using Content = uint32_t;

/// Holds contents that share their parts. Sums have no order, because arithmetic is taken as exact here.
class Algebra {
 public:
  static constexpr Content none = 0;  ///< nothing has written it
  Algebra();

  Content zero() const { return zero_; }
  /// Returns a content without parts: a piece of an input, or the result of an unknown function.
  Content atom(const std::string& name);
  Content sum(const std::vector<Content>& addends);
  Content product(Content left, Content right);

  /// Returns an atom that is in `has` but not in `lacks`, such as "A[0:1, 0:2] of rank 1". Returns "" if
  /// there is none.
  std::string difference(Content has, Content lacks) const;

 private:
  /// Lists the terms of a sum. Each is an atom or content, and 0 or the content that it is multiplied by.
  using Terms = std::vector<std::pair<Content, Content>>;
  Content intern(Terms);
  void atoms(Content, std::map<Content, std::string>&) const;

  std::map<Terms, Content> ids_;
  std::vector<Terms> terms_;
  std::map<std::string, Content> atoms_;
  std::map<Content, std::string> names_;
  Content zero_ = 0;
};

/// Divides tensors into cells. Along every axis, a cell is the interval between two neighbouring places where
/// any box begins or ends.
class Cells {
 public:
  /// Collects the cuts of all boxes. Copied and computed boxes pass their cuts on to each other.
  Cells(const Schedule&, const Concrete&);

  using Index = std::vector<size_t>;
  /// Returns the number of cells along each axis.
  const Index& extents(uint32_t tensor) const { return extents_[tensor]; }
  size_t count(uint32_t tensor) const;
  size_t position(uint32_t tensor, const Index&) const;
  /// Returns, per axis, the first cell of a box and the number of cells.
  std::vector<std::pair<size_t, size_t>> range(const Box&) const;
  /// Returns a cell as a box, for messages.
  Box box(uint32_t tensor, const Index&) const;

 private:
  struct Same {
    uint32_t tensor, axis, other, other_axis;
    uint64_t lo, other_lo, length;
  };
  void add(const Box&);
  void same(const Box&, const Box&);
  void same(const Box&, const std::vector<size_t>& axes, const Box&, const std::vector<size_t>& others);
  void of_step(const Schedule&, const Concrete&, const Step&);
  void of_layout(const Schedule&, const Concrete&);
  void spread();

  std::vector<std::vector<std::vector<uint64_t>>> cuts_;  // by tensor and axis, ascending
  std::vector<Same> same_;
  std::vector<Index> extents_;
};

/// Returns the axes of a box that a function sees.
std::vector<size_t> visible(const Concrete&, const Box&);

/// Calls the function for every index of `extents`. The last axis changes first.
void each_index(const Cells::Index& extents, const std::function<void(const Cells::Index&)>&);

/// Describes the cells that a built-in function reads.
struct ReadCells {
  Cells::Index extents;
  std::function<Content(const Cells::Index&)> at;
};
/// Returns whether the cells of the operands are those of the result. Only then computed() has a meaning.
bool alike(const std::string& function, int64_t axis, const Cells::Index& result,
           const std::vector<ReadCells>&);
/// Computes one cell of the result of set, add, sum, matmul or linear.
Content computed(Algebra&, const std::string& function, int64_t axis, const Cells::Index& index,
                 const std::vector<ReadCells>&);

}  // namespace chorale::schedule
