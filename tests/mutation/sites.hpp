#pragma once
/// \file
/// Lists the places where a plan can be mutated.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "edit.hpp"

namespace chorale::mutation {

/// Describes one place where an operator can be applied.
struct Site {
  OpPlace at;  ///< the operation's place
  /// If false, the site is a part of the plan, of a rank or of a block, with which `at` begins.
  bool of_operation = true;
  std::string what;  ///< the part of it, if the place alone is not enough
  std::function<void(Edit&)> change;
};

class Sites {
 public:
  void add(const OpPlace& at, std::function<void(Edit&)> change, std::string what = {}) {
    list_.push_back({at, true, std::move(what), std::move(change)});
  }
  /// Adds a site that is not an operation.
  void add_part(const OpPlace& at, std::function<void(Edit&)> change, std::string what) {
    list_.push_back({at, false, std::move(what), std::move(change)});
  }
  const std::vector<Site>& list() const { return list_; }

 private:
  std::vector<Site> list_;
};

struct Operator {
  uint32_t number;
  std::string_view name, summary;
  void (*list)(const Plan&, Sites&);
};

/// Returns the rows of operators.def, by number.
std::span<const Operator> operators();

/// Returns all sites of an operator in a plan.
std::vector<Site> sites(const Operator&, const Plan&);

namespace make {
#define OPERATOR(number, name, summary) void name(const Plan&, Sites&);
#include "operators.def"
}  // namespace make

}  // namespace chorale::mutation
