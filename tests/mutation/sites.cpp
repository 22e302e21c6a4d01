#include "sites.hpp"

#include <algorithm>
#include <array>

namespace chorale::mutation {

std::span<const Operator> operators() {
  static const auto sorted = [] {
    std::array table = {
#define OPERATOR(number, name, summary) Operator{number, #name, summary, make::name},
#include "operators.def"
    };
    std::sort(table.begin(), table.end(), [](auto& a, auto& b) { return a.number < b.number; });
    return table;
  }();
  return sorted;
}

std::vector<Site> sites(const Operator& of, const Plan& plan) {
  Sites found;
  of.list(plan, found);
  return found.list();
}

}  // namespace chorale::mutation
