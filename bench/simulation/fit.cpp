#include <algorithm>
#include <cmath>
#include <cstdio>

#include "measurements.hpp"

namespace chorale::bench {
namespace {

struct Parameter {
  const char* key;
  double Machine::*value;
  bool rate;
};

constexpr Parameter parameters[] = {
#define CHORALE_NS(name, summary) {#name "_ns", &Machine::name##_ns, false},
#define CHORALE_GB_S(name, summary) {#name "_gb_s", &Machine::name##_gb_s, true},
#include "chorale/machine.def"
};

double error_of(const std::vector<Measurement>& all, Plans& plans, const Machine& machine) {
  double sum = 0;
  size_t n = 0;
  for (const Measurement& one : all) {
    if (one.held_out()) continue;
    sum += std::fabs(std::log(plans.us(one, machine) / one.us));
    ++n;
  }
  return sum / double(std::max<size_t>(n, 1));
}

}  // namespace

Machine fit(Machine machine, const std::vector<Measurement>& all, Plans& plans,
            const std::vector<std::string>& fixed) {
  double best = error_of(all, plans, machine);
  constexpr double first_step = 0.4, last_step = 0.01;
  for (double step = first_step; step > last_step;) {
    const double before = best;
    for (const Parameter& parameter : parameters) {
      if (std::find(fixed.begin(), fixed.end(), parameter.key) != fixed.end()) continue;
      for (const double factor : {1 + step, 1 / (1 + step)}) {
        Machine other = machine;
        double& value = other.*parameter.value;
        // Time parameters may start from and go to zero.
        value = parameter.rate ? value * factor
                               : std::max(0.0, factor > 1 ? value * factor + step : value * factor - step);
        const double error = error_of(all, plans, other);
        if (error >= best) continue;
        best = error;
        machine = other;
        break;
      }
    }
    std::fprintf(stderr, "step %.3f: mean |log| %.4f\n", step, best);
    if (before - best < 0.01 * best) step /= 2;
  }
  return machine;
}

}  // namespace chorale::bench
