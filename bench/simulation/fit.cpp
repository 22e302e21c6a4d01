// The fit minimises the mean of |log(predicted / measured)|. Each round solves a least-squares problem with
// the derivatives of all predictions, in which calls that are far off count less (iteratively reweighted,
// Levenberg-Marquardt). It stops where no step of any length makes the mean smaller. There are many such
// places, so the fit begins at several machines, and keeps the best result.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>

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

using Vector = std::vector<double>;

/// Solves a symmetric system of equations by elimination.
Vector solved(std::vector<Vector> matrix, Vector right) {
  const size_t n = right.size();
  for (size_t at = 0; at < n; ++at) {
    for (size_t below = at + 1; below < n; ++below) {
      const double factor = matrix[below][at] / matrix[at][at];
      for (size_t column = at; column < n; ++column) matrix[below][column] -= factor * matrix[at][column];
      right[below] -= factor * right[at];
    }
  }
  for (size_t at = n; at-- > 0;) {
    for (size_t column = at + 1; column < n; ++column) right[at] -= matrix[at][column] * right[column];
    right[at] /= matrix[at][at];
  }
  return right;
}

class Fit {
 public:
  Fit(const std::vector<Measurement>& all, Plans& plans, const std::vector<std::string>& fitted)
      : plans_(plans) {
    for (const Measurement& one : all) {
      if (!one.held_out()) measured_.push_back(one);
    }
    for (const Parameter& parameter : parameters) {
      if (std::find(fitted.begin(), fitted.end(), parameter.key) != fitted.end()) free_.push_back(parameter);
    }
  }

  /// Fits from the given machine and from others, whose parameters are up to e^0.7 times as large or as
  /// small.
  Machine run(const Machine& given, int starts) {
    std::mt19937 random(1);
    Machine best;
    double least = std::numeric_limits<double>::infinity();
    for (int start = 0; start < starts; ++start) {
      Vector by(free_.size(), 0);
      for (double& one : by) {
        constexpr double spread = 0.7;
        const double part = double(random()) / double(std::mt19937::max());
        if (start != 0) one = spread * (2 * part - 1);
      }
      const Machine found = fitted(moved(given, by));
      const double error = mean(errors_of(found));
      std::fprintf(stderr, "start %d: mean |log| %.4f\n", start, error);
      if (error >= least) continue;
      least = error;
      best = found;
    }
    return best;
  }

 private:
  Machine fitted(Machine machine) {
    Vector errors = errors_of(machine);
    double best = mean(errors), damping = 0.1;
    for (int round = 0; round < most_rounds && damping < most_damping; ++round) {
      const std::vector<Vector> slopes = slopes_of(machine, errors);
      bool better = false;
      for (; !better && damping < most_damping; damping *= better ? 0.3 : 4) {
        const Machine other = moved(machine, step(slopes, errors, damping));
        const Vector found = errors_of(other);
        better = mean(found) < best * (1 - least_gain);
        if (!better) continue;
        machine = other;
        errors = found;
        best = mean(found);
      }
    }
    return machine;
  }

  static constexpr int most_rounds = 60;
  static constexpr double most_damping = 1e4, least_gain = 1e-4;

  Vector errors_of(const Machine& machine) {
    Vector errors;
    for (const Measurement& one : measured_) errors.push_back(std::log(plans_.us(one, machine) / one.us));
    return errors;
  }

  static double mean(const Vector& errors) {
    double sum = 0;
    for (const double error : errors) sum += std::fabs(error);
    return sum / double(std::max<size_t>(errors.size(), 1));
  }

  /// Changes a parameter by a factor of e to the `by`. A time may start from 0.
  static void change(Machine& machine, const Parameter& parameter, double by) {
    double& value = machine.*parameter.value;
    constexpr double first_ns = 20;
    if (parameter.rate) {
      value *= std::exp(by);
    } else {
      value = std::max(0.0, (value + first_ns) * std::exp(by) - first_ns);
    }
  }

  std::vector<Vector> slopes_of(const Machine& machine, const Vector& errors) {
    constexpr double by = 0.02;
    std::vector<Vector> slopes;
    for (const Parameter& parameter : free_) {
      Machine other = machine;
      change(other, parameter, by);
      slopes.push_back(errors_of(other));
      for (size_t at = 0; at < errors.size(); ++at) slopes.back()[at] = (slopes.back()[at] - errors[at]) / by;
    }
    return slopes;
  }

  static Vector step(const std::vector<Vector>& slopes, const Vector& errors, double damping) {
    const size_t n = slopes.size();
    constexpr double least_error = 0.02;
    std::vector<Vector> matrix(n, Vector(n, 0));
    Vector right(n, 0);
    for (size_t at = 0; at < errors.size(); ++at) {
      const double weight = 1 / std::max(least_error, std::fabs(errors[at]));
      for (size_t row = 0; row < n; ++row) {
        right[row] -= weight * slopes[row][at] * errors[at];
        for (size_t column = 0; column < n; ++column)
          matrix[row][column] += weight * slopes[row][at] * slopes[column][at];
      }
    }
    for (size_t row = 0; row < n; ++row) matrix[row][row] += damping * (matrix[row][row] + 1);
    Vector by = solved(std::move(matrix), std::move(right));
    constexpr double most = 0.5;
    for (double& one : by) one = std::clamp(one, -most, most);
    return by;
  }

  Machine moved(Machine machine, const Vector& by) const {
    for (size_t at = 0; at < free_.size(); ++at) change(machine, free_[at], by[at]);
    return machine;
  }

  Plans& plans_;
  std::vector<Measurement> measured_;
  std::vector<Parameter> free_;
};

}  // namespace

Machine fit(const Machine& machine, const std::vector<Measurement>& all, Plans& plans,
            const std::vector<std::string>& fitted, int starts) {
  return Fit(all, plans, fitted).run(machine, starts);
}

}  // namespace chorale::bench
