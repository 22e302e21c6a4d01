#pragma once
// rms_norm_row() normalises one row of a sum, by all threads of a group, and gives it to an epilogue. The
// kernels of rms_norm.hpp call it.

#include <cmath>
#include <cstdint>

#include "chorale/device.hpp"
#include "chorale/fused/rows.hpp"

namespace chorale::fused {

/// Describes a call. All ranks pass the same shape, and equal `residual`, `weight` and `epsilon`.
template <class T>
struct RmsNormCall {
  const T* in = nullptr;      ///< this rank's rows. Any alignment; multiples of 16 are fast
  T* residual = nullptr;      ///< rows that are added, and replaced by the sums; null: none
  const T* weight = nullptr;  ///< `cols` elements
  float epsilon = 0;
  uint64_t rows = 0;
  uint32_t cols = 0;  ///< any; rows of whole units of 16 bytes are fast
};

namespace detail {

/// Calls f(index, unit) for the thread's first `held` units of a row.
template <uint32_t held, class F>
CHORALE_FN void each_held(const Group& group, uint32_t units, const F& f) {
#if defined(__CUDACC__)
#pragma unroll
#endif
  for (uint32_t index = 0; index < held; ++index) {
    const uint32_t unit = group.rank + index * group.size;
    if (unit < units) f(index, unit);
  }
}

}  // namespace detail

/// Says what the kernels do with the rows of the sum.
template <class T, class Epilogue>
struct NormRows {
  RmsNormCall<T> call;
  T* room;         ///< memory of this rank for rows without a residual
  uint64_t pitch;  ///< elements from one row in `room` to the next
  Epilogue epilogue;

  CHORALE_FN uint32_t units() const { return detail::units_in_row<T>(call.cols); }
  /// Returns where the row's sum with its residual is kept.
  CHORALE_FN T* kept(uint64_t row) const {
    return call.residual ? call.residual + row * call.cols : room + row * pitch;
  }
  CHORALE_FN Vector<T> own(uint64_t row, uint32_t unit) const {
    return load_elements<T>(call.in + row * call.cols, uint64_t(unit) * per_unit,
                            detail::count_in<T>(unit, call.cols));
  }

  static constexpr uint32_t per_unit = unit_bytes / sizeof(T);
};

/// Gives the elements of a normalised row from memory.
template <class T>
struct RowInMemory {
  const T *kept, *weight;
  uint64_t row;
  uint32_t cols;
  float scale;

  CHORALE_FN static float normalised(const T& value, const T& factor, float scale) {
    return float(widen(value)) * scale * float(widen(factor));
  }
  CHORALE_FN float at(uint32_t col) const { return normalised(kept[col], weight[col], scale); }
};

/// Gives an epilogue one normalised row. The threads of the group have its units, 16 bytes of T each: thread
/// `group.rank` has every group.size-th, from its own number on.
template <class T, uint32_t held>
class NormalisedRow {
 public:
  static constexpr uint32_t per_unit = unit_bytes / sizeof(T);

  CHORALE_FN NormalisedRow(const Group& group, const RowInMemory<T>& memory, const Vector<T> (&values)[held],
                           const Vector<T> (&factors)[held])
      : group_(group), memory_(memory), values_(values), factors_(factors) {}

  CHORALE_FN uint64_t row() const { return memory_.row; }
  CHORALE_FN uint32_t cols() const { return memory_.cols; }

  /// Returns the row as other threads have kept it, for an epilogue that reads_memory(). Call group.sync()
  /// before you read it.
  CHORALE_FN const RowInMemory<T>& memory() const { return memory_; }

  /// Calls f(col, values, count) for each of the thread's units: its first column, its elements as `float
  /// (&)[per_unit]`, and how many of them are in the row. All threads make the same number of calls, so some
  /// have a count of 0. It may be called several times.
  template <class F>
  CHORALE_FN void each(const F& f) const {
    const uint32_t units = detail::units_in_row<T>(cols());
#if defined(__CUDACC__)
#pragma unroll
#endif
    for (uint32_t index = 0; index < held; ++index) {
      give(group_.rank + index * group_.size, values_[index], factors_[index], f);
    }
#if defined(__CUDACC__)
#pragma unroll 1
#endif
    for (uint32_t first = held * group_.size; first < units; first += group_.size) {
      const uint32_t unit = first + group_.rank;
      const uint32_t count = detail::count_in<T>(unit, cols());
      Vector<T> value{}, factor{};
      if (count != 0) value = load_elements<T>(memory_.kept, uint64_t(unit) * per_unit, count);
      if (count != 0) factor = load_elements<T>(memory_.weight, uint64_t(unit) * per_unit, count);
      give(unit, value, factor, f);
    }
  }

 private:
  template <class F>
  CHORALE_FN void give(uint32_t unit, const Vector<T>& value, const Vector<T>& factor, const F& f) const {
    float values[per_unit];
    for (uint32_t item = 0; item < per_unit; ++item) {
      values[item] = RowInMemory<T>::normalised(value.item[item], factor.item[item], memory_.scale);
    }
    f(unit * per_unit, values, detail::count_in<T>(unit, cols()));
  }

  const Group& group_;
  const RowInMemory<T> memory_;
  const Vector<T> (&values_)[held], (&factors_)[held];
};

/// Adds the residual to one row of the sum, normalises it and gives it to the epilogue. sum_of(unit, sum)
/// gives 16 bytes of the sum, and may wait. The first `held` of a thread's units are loaded together and stay
/// in registers, so choose `held` so that threads rarely have more.
template <uint32_t held, class T, class Epilogue, class SumOf>
CHORALE_FN Stop rms_norm_row(const Group& group, const NormRows<T, Epilogue>& norm, uint64_t row,
                             const SumOf& sum_of) {
  constexpr uint32_t n = unit_bytes / sizeof(T);
  const uint32_t cols = norm.call.cols;
  T* const kept = norm.kept(row);
  const bool has_residual = norm.call.residual != nullptr;
  const uint32_t units = norm.units(), behind = group.rank + held * group.size;
  const bool keeps = has_residual || units > held * group.size || norm.epilogue.reads_memory(group, cols, n);
  // Loads that do not depend on peers come before the waits for peers.
  Vector<T> own[held] = {}, weight[held] = {};
  detail::each_held<held>(group, units, [&](uint32_t index, uint32_t unit) {
    const uint32_t count = detail::count_in<T>(unit, cols);
    if (has_residual) own[index] = load_elements<T>(kept, uint64_t(unit) * n, count);
    weight[index] = load_elements<T>(norm.call.weight, uint64_t(unit) * n, count);
  });
  Unit sum[held] = {};
  Stop stop = Stop::none;
  detail::each_held<held>(group, units, [&](uint32_t index, uint32_t unit) {
    if (stop == Stop::none) stop = sum_of(unit, sum[index]);
  });
  float squares = 0;
  const auto add = [&](uint32_t unit, Vector<T>& to, const Unit& came) {
    const Vector<T> addend = elements_of<T>(came);
    const uint32_t count = detail::count_in<T>(unit, cols);
    for (uint32_t item = 0; item < n; ++item) {
      // Without a residual, adding its zero would change the sign of a zero.
      float value = widen(addend.item[item]);
      if (has_residual) value += widen(to.item[item]);
      to.item[item] = narrow<T>(value);
      if (item < count) squares += value * value;
    }
    if (keeps) store_elements<T>(kept, uint64_t(unit) * n, to, count);
  };
  if (stop == Stop::none) {
    detail::each_held<held>(group, units,
                            [&](uint32_t index, uint32_t unit) { add(unit, own[index], sum[index]); });
  }
#if defined(__CUDACC__)
#pragma unroll 1  // to save registers
#endif
  for (uint32_t unit = behind; unit < units && stop == Stop::none; unit += group.size) {
    Unit came;
    stop = sum_of(unit, came);
    Vector<T> more{};
    if (has_residual) more = load_elements<T>(kept, uint64_t(unit) * n, detail::count_in<T>(unit, cols));
    if (stop == Stop::none) add(unit, more, came);
  }
  stop = group.agree(stop);
  if (stop != Stop::none) return stop;
  const float scale = 1.0f / std::sqrt(add_up(group, squares) / float(cols) + norm.call.epsilon);
  norm.epilogue(group,
                NormalisedRow<T, held>(group, {kept, norm.call.weight, row, cols, scale}, own, weight));
  return Stop::none;
}

}  // namespace chorale::fused
