#pragma once
#include <chorale/device.hpp>
#include <cmath>
#include <cstdint>

/// Calls f(index, unit) for the thread's first `held` units of a row.
template <uint32_t held, class F>
CHORALE_FN void each_held(const chorale::Group& group, uint64_t units, const F& f) {
#if defined(__CUDACC__)
#pragma unroll
#endif
  for (uint32_t index = 0; index < held; ++index) {
    const uint64_t unit = group.rank + uint64_t(index) * group.size;
    if (unit < units) f(index, unit);
  }
}

/// Computes residual += sum; out = residual / rms(residual) * weight for one row, by a whole group.
/// sum_of(unit, sum) gives 16 bytes of the sum, and may wait. A row is whole units. The first `held` of a
/// thread's units are loaded together and stay in registers, so choose `held` so that threads rarely have
/// more.
template <uint32_t held, class T, class Norm, class SumOf>
CHORALE_FN chorale::Stop rms_norm_row(const chorale::Group& group, const Norm& norm, T* out, uint64_t row,
                                      uint32_t cols, const SumOf& sum_of) {
  using namespace chorale;
  constexpr uint32_t n = unit_bytes / sizeof(T);
  T* const kept = norm.residual + row * cols;
  const uint64_t units = cols / n, behind = group.rank + uint64_t(held) * group.size;
  // Loads that do not depend on peers come before the waits for peers.
  Vector<T> own[held] = {}, weight[held] = {};
  each_held<held>(group, units, [&](uint32_t index, uint64_t unit) {
    own[index] = load_elements<T>(kept, unit * n, n);
    weight[index] = load_elements<T>(norm.weight, unit * n, n);
  });
  Unit sum[held] = {};
  Stop stop = Stop::none;
  each_held<held>(group, units, [&](uint32_t index, uint64_t unit) {
    if (stop == Stop::none) stop = sum_of(unit, sum[index]);
  });
  float squares = 0;
  const auto add = [&](uint64_t unit, Vector<T>& to, const Unit& came) {
    const Vector<T> addend = elements_of<T>(came);
    for (uint32_t item = 0; item < n; ++item) {
      const float value = widen(addend.item[item]) + widen(to.item[item]);
      to.item[item] = narrow<T>(value);
      squares += value * value;
    }
    store_elements<T>(kept, unit * n, to, n);
  };
  if (stop == Stop::none) {
    each_held<held>(group, units, [&](uint32_t index, uint64_t unit) { add(unit, own[index], sum[index]); });
  }
#if defined(__CUDACC__)
#pragma unroll 1  // to save registers
#endif
  for (uint64_t unit = behind; unit < units && stop == Stop::none; unit += group.size) {
    Unit came;
    stop = sum_of(unit, came);
    Vector<T> more = load_elements<T>(kept, unit * n, n);
    if (stop == Stop::none) add(unit, more, came);
  }
  stop = group.agree(stop);
  if (stop != Stop::none) return stop;
  const float scale = 1.0f / std::sqrt(add_up(group, squares) / float(cols) + norm.epsilon);
  const auto put = [&](uint64_t unit, Vector<T> value, const Vector<T>& factor) {
    for (uint32_t item = 0; item < n; ++item) {
      value.item[item] = narrow<T>(widen(value.item[item]) * scale * widen(factor.item[item]));
    }
    store_elements<T>(out + row * cols, unit * n, value, n);
  };
  each_held<held>(group, units, [&](uint32_t index, uint64_t unit) { put(unit, own[index], weight[index]); });
#if defined(__CUDACC__)
#pragma unroll 1
#endif
  for (uint64_t unit = behind; unit < units; unit += group.size) {
    put(unit, load_elements<T>(kept, unit * n, n), load_elements<T>(norm.weight, unit * n, n));
  }
  return Stop::none;
}
