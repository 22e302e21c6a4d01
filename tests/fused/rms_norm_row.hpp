#pragma once
#include <chorale/device.hpp>
#include <cmath>

/// residual += sum; out = residual / rms(residual) * weight, of one row, by a whole group. sum_of(unit, sum)
/// gives 16 bytes of the sum, and may wait. A row is whole units.
template <class T, class Norm, class SumOf>
CHORALE_FN chorale::Stop rms_norm_row(const chorale::Group& group, const Norm& norm, T* out, uint64_t row,
                                      uint32_t cols, const SumOf& sum_of) {
  using namespace chorale;
  constexpr uint32_t n = unit_bytes / sizeof(T);
  T* const kept = norm.residual + row * cols;
  const uint64_t units = cols / n;
  // A thread's first unit stays in registers, as a rule its only one; what does not depend on peers is loaded
  // before they are waited for.
  Vector<T> first{}, first_weight{};
  if (group.rank < units) {
    first = load_elements<T>(kept, group.rank * n, n);
    first_weight = load_elements<T>(norm.weight, group.rank * n, n);
  }
  float squares = 0;
  Stop stop = Stop::none;
#if defined(__CUDACC__)
#pragma unroll 1  // a row is a turn or few, and registers are few, too
#endif
  for (uint64_t unit = group.rank; unit < units; unit += group.size) {
    Unit came;
    stop = sum_of(unit, came);
    if (stop != Stop::none) break;
    const Vector<T> sum = elements_of<T>(came);
    Vector<T> own = unit == group.rank ? first : load_elements<T>(kept, unit * n, n);
    for (uint32_t item = 0; item < n; ++item) {
      const float value = widen(sum.item[item]) + widen(own.item[item]);
      own.item[item] = narrow<T>(value);
      squares += value * value;
    }
    store_elements<T>(kept, unit * n, own, n);
    if (unit == group.rank) first = own;
  }
  stop = group.agree(stop);
  if (stop != Stop::none) return stop;
  const float scale = 1.0f / std::sqrt(add_up(group, squares) / float(cols) + norm.epsilon);
#if defined(__CUDACC__)
#pragma unroll 1
#endif
  for (uint64_t unit = group.rank; unit < units; unit += group.size) {
    const bool held = unit == group.rank;
    Vector<T> own = held ? first : load_elements<T>(kept, unit * n, n);
    const Vector<T> weight = held ? first_weight : load_elements<T>(norm.weight, unit * n, n);
    for (uint32_t item = 0; item < n; ++item) {
      own.item[item] = narrow<T>(widen(own.item[item]) * scale * widen(weight.item[item]));
    }
    store_elements<T>(out + row * cols, unit * n, own, n);
  }
  return Stop::none;
}
