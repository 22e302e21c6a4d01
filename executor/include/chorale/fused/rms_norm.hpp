/// \file
/// An all-reduce of rows that adds a residual, normalises each row (RMSNorm) and gives it to an epilogue, in
/// one pass.
///
///     fused::RmsNormAllReduce norm(world, 4096, 8192 * sizeof(bf16), {.space = Space::device});
///     norm.run<bf16>({in, residual, weight, 1e-6f, rows, cols}, fused::StoreRow<bf16>{out}, {stream});
///
/// For each row it computes, with the bits of all ranks the same:
///
///     sum       = in of all ranks, added in f32 in rank order, then rounded to T
///     residual += sum, in f32, rounded to T. Without a residual this is the sum
///     out       = epilogue(residual * weight / sqrt(mean of its squares + epsilon)), in f32
///
/// The squares are those of the values before they are rounded. Forms: packets, packets_twice, window.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "chorale/device.hpp"
#include "chorale/fused/buffers.hpp"
#include "chorale/fused/codes.hpp"
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

/// Says what is done with the rows of the sum.
template <class T, class Epilogue>
struct Norm {
  RmsNormCall<T> call;
  T* room;         ///< memory of this rank for rows without a residual
  uint64_t pitch;  ///< elements from one row in `room` to the next
  Epilogue epilogue;

  CHORALE_FN uint32_t units() const { return units_in_row<T>(call.cols); }
  /// Returns where the row's sum with its residual is kept.
  CHORALE_FN T* kept(uint64_t row) const {
    return call.residual ? call.residual + row * call.cols : room + row * pitch;
  }
  CHORALE_FN Vector<T> own(uint64_t row, uint32_t unit) const {
    return load_elements<T>(call.in + row * call.cols, uint64_t(unit) * per_unit,
                            count_in<T>(unit, call.cols));
  }

  static constexpr uint32_t per_unit = unit_bytes / sizeof(T);
};

}  // namespace detail

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

// An epilogue is a function object that all threads of a group call for each row, as in
//   template <class Row> void operator()(const Group& group, const Row& row) const
// It stores what it makes of the row. It may use functions of the group, but does not wait for peers. Its
// reads_memory(group, cols, per_unit) says whether it calls Row::memory().

namespace detail {
/// Stores `count` elements at `to`, at once if they are N and aligned.
template <class O, uint32_t N>
CHORALE_FN void store_few(O* to, const O (&from)[N], uint32_t count) {
#if defined(__CUDACC__)
  using Whole = Pack<O, int(N)>;
  if constexpr (N * sizeof(O) <= 16) {
    if (count == N && reinterpret_cast<uintptr_t>(to) % sizeof(Whole) == 0) {
      Whole whole;
#pragma unroll
      for (uint32_t item = 0; item < N; ++item) whole.item[item] = from[item];
      *reinterpret_cast<Whole*>(to) = whole;
      return;
    }
  }
#pragma unroll
#endif
  for (uint32_t item = 0; item < N; ++item) {
    if (item < count) to[item] = from[item];
  }
}
}  // namespace detail

/// Stores rows as elements of type O, one after the other. `out` may be the `in` of the call if O is T.
template <class O>
struct StoreRow {
  O* out;

  CHORALE_FN bool reads_memory(const Group&, uint32_t, uint32_t) const { return false; }
  template <class Row>
  CHORALE_FN void operator()(const Group&, const Row& row) const {
    O* const to = out + row.row() * row.cols();
    row.each([&](uint32_t col, const auto& values, uint32_t count) {
      O few[Row::per_unit];
      for (uint32_t item = 0; item < Row::per_unit; ++item) few[item] = narrow<O>(values[item]);
      detail::store_few(to + col, few, count);
    });
  }
};

/// Stores rows as codes of type Q, with a scale for each row or for each block of columns; see codes.hpp.
template <class Q>
struct QuantiseRow {
  Q* out;              ///< rows of codes, one after the other
  float* scales;       ///< for each row its scales, one after the other: scale_count(cols) of them
  uint32_t block = 0;  ///< columns that share a scale, any number; 0: a whole row

  CHORALE_HD uint32_t scale_count(uint32_t cols) const { return block == 0 ? 1 : (cols + block - 1) / block; }

  CHORALE_FN bool reads_memory(const Group& group, uint32_t cols, uint32_t per_unit) const {
    return block != 0 && block < cols && lanes(group, per_unit) == 0;
  }

  template <class Row>
  CHORALE_FN void operator()(const Group& group, const Row& row) const {
    const uint32_t cols = row.cols();
    Q* const to = out + row.row() * cols;
    float* const scale_to = scales + row.row() * scale_count(cols);
    if (block == 0 || block >= cols) {
      float largest = 0;
      row.each(
          [&](uint32_t, const auto& values, uint32_t count) { largest = larger(largest, values, count); });
      const float scale = scale_of<Q>(largest_of(group, largest));
      row.each([&](uint32_t col, const auto& values, uint32_t count) {
        store<Row::per_unit>(to + col, values, count, scale);
      });
      if (group.leader()) *scale_to = scale;
      return;
    }
#if defined(__CUDACC__)
    if (const uint32_t by = lanes(group, Row::per_unit)) {
      row.each([&](uint32_t col, const auto& values, uint32_t count) {
        float largest = larger(0.0f, values, count);
        for (uint32_t other = by / 2; other != 0; other /= 2) {
          const float theirs = __shfl_xor_sync(0xffffffffu, largest, int(other));
          largest = largest < theirs ? theirs : largest;
        }
        const float scale = scale_of<Q>(largest);
        store<Row::per_unit>(to + col, values, count, scale);
        if (count != 0 && group.rank % by == 0) scale_to[col / block] = scale;
      });
      return;
    }
#endif
    by_warps(*this, group, row.memory());
  }

 private:
  /// Returns how many neighbouring lanes have the units of a block; 0 if warps do not consist of such lanes.
  CHORALE_FN uint32_t lanes(const Group& group, uint32_t per_unit) const {
#if defined(__CUDACC__)
    const uint32_t by = block / per_unit;
    return block % per_unit == 0 && by <= 32 && chorale::detail::is_power_of_two(by) && group.size % 32 == 0
               ? by
               : 0;
#else
    (void)group, (void)per_unit;
    return 0;  // fibers have no lanes
#endif
  }
  /// Stores a row whose blocks are not units of neighbouring lanes. Each warp takes blocks, and reads what
  /// other threads have kept.
  template <class Memory>
  CHORALE_COLD static void by_warps(QuantiseRow self, Group group, Memory row) {
    group.sync();
    Q* const to = self.out + row.row * row.cols;
    const Group part = group.warps();
    const uint32_t warps = group.size / part.size, each = self.scale_count(row.cols);
    for (uint32_t number = part.id % warps; number < each; number += warps) {
      const uint32_t first = number * self.block;
      const uint32_t end = row.cols - first < self.block ? row.cols : first + self.block;
      float largest = 0;
      for (uint32_t col = first + part.rank; col < end; col += part.size) {
        const float magnitude = finite_magnitude(row.at(col));
        largest = largest < magnitude ? magnitude : largest;
      }
      const float scale = scale_of<Q>(largest_of(part, largest));
      for (uint32_t col = first + part.rank; col < end; col += part.size) {
        to[col] = code_of<Q>(detail::product(row.at(col), 1.0f / scale));
      }
      if (part.leader()) self.scales[row.row * each + number] = scale;
    }
  }
  template <uint32_t N>
  CHORALE_FN static float larger(float largest, const float (&values)[N], uint32_t count) {
    for (uint32_t item = 0; item < N; ++item) {
      const float magnitude = item < count ? finite_magnitude(values[item]) : 0.0f;
      largest = largest < magnitude ? magnitude : largest;
    }
    return largest;
  }
  template <uint32_t N>
  CHORALE_FN static void store(Q* to, const float (&values)[N], uint32_t count, float scale) {
    const float inverse = 1.0f / scale;
    Q few[N];
    for (uint32_t item = 0; item < N; ++item) few[item] = code_of<Q>(detail::product(values[item], inverse));
    detail::store_few(to, few, count);
  }
};

/// Adds the residual to one row of the sum, normalises it and gives it to the epilogue. sum_of(unit, sum)
/// gives 16 bytes of the sum, and may wait. The first `held` of a thread's units are loaded together and stay
/// in registers, so choose `held` so that threads rarely have more.
template <uint32_t held, class T, class Epilogue, class SumOf>
CHORALE_FN Stop rms_norm_row(const Group& group, const detail::Norm<T, Epilogue>& norm, uint64_t row,
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

namespace detail {
/// Returns how many of `all` turns group.each_strided() gives to this group.
CHORALE_FN uint64_t turns_of(const Group& group, uint64_t all) {
  return all > group.id ? (all - group.id - 1) / group.count + 1 : 0;
}
}  // namespace detail

/// Sends rows in one exchange of packets. Every rank sends its rows to every other, and adds up and
/// normalises them all.
template <class T, class Epilogue, class P = LL16>
struct RmsNormPackets {
  EndpointTable table;
  detail::Norm<T, Epilogue> norm;

  CHORALE_FN Stop operator()(const Group& group, const Deadline& deadline) const {
    const uint32_t units = norm.units();
    const uint64_t slot = packet_bytes<P>(uint64_t(units) * unit_bytes);
    const uint64_t mine = detail::turns_of(group, norm.call.rows);
    if (mine == 0) return Stop::none;
    PacketExchange<P> exchange(group, table, deadline);
    Stop stop = exchange.begin(mine * slot);
    if (stop != Stop::none) return stop;
    // The first unit of each row stays in a register until it is added.
    const auto push = [&](uint64_t index) {
      const uint64_t row = group.id + index * group.count;
      Unit first{};
#if defined(__CUDACC__)
#pragma unroll 1
#endif
      for (uint32_t unit = group.rank; unit < units; unit += group.size) {
        const Unit own = unit_of<T>(norm.own(row, unit));
        exchange.send(index * slot, unit, own);
        if (unit == group.rank) first = own;
      }
      return first;
    };
    Unit first = push(0);
    for (uint64_t index = 0; index < mine; ++index) {
      const uint64_t row = group.id + index * group.count;
      const Unit next = index + 1 < mine ? push(index + 1) : Unit{};  // in transit while this group waits
      stop = rms_norm_row<1>(group, norm, row, [&](uint32_t unit, Unit& sum) {
        return exchange.template sum<ReduceOp::sum, T>(
            index * slot, unit, unit == group.rank ? first : unit_of<T>(norm.own(row, unit)), sum);
      });
      if (stop != Stop::none) return stop;
      first = next;
    }
    exchange.end();
    return Stop::none;
  }
};

/// Does the same in two exchanges, with a `ranks`-th of the data. One rank adds up each row: the others send
/// it their rows, and it sends them the sum. If there are groups for all rows, each row has its own group.
template <class T, class Epilogue, class P = LL16>
struct RmsNormPacketsTwice {
  EndpointTable table;
  detail::Norm<T, Epilogue> norm;

  CHORALE_FN Stop operator()(const Group& group, const Deadline& deadline) const {
    const int32_t ranks = table.ranks, self = table.self;
    const uint32_t units = norm.units();
    const uint64_t slot = packet_bytes<P>(uint64_t(units) * unit_bytes);
    const uint64_t mine = detail::turns_of(group, norm.call.rows);
    if (mine == 0) return Stop::none;
    PacketExchange<P> exchange(group, table, deadline);
    // A row goes from one rank to another at most once: as a part of a sum, or as the sum.
    Stop stop = exchange.begin(mine * slot);
    if (stop != Stop::none) return stop;
    const auto row_of = [&](uint64_t index) { return group.id + index * group.count; };
    const auto owner_of = [&](uint64_t index) { return int32_t(row_of(index) % uint32_t(ranks)); };
    const auto push = [&](uint64_t index) {
      const int32_t owner = owner_of(index);
      for (uint32_t unit = group.rank; unit < units && owner != self; unit += group.size)
        exchange.send_to(owner, index * slot, unit, unit_of<T>(norm.own(row_of(index), unit)));
    };
    push(0);
    for (uint64_t index = 0; index < mine; ++index) {
      if (index + 1 < mine) push(index + 1);  // in transit while this group waits
      const uint64_t row = row_of(index), at = index * slot;
      const int32_t owner = owner_of(index);
      stop = rms_norm_row<1>(group, norm, row, [&](uint32_t unit, Unit& sum) {
        if (owner != self) return exchange.receive(owner, at, unit, sum);
        const Stop got =
            exchange.template sum<ReduceOp::sum, T>(at, unit, unit_of<T>(norm.own(row, unit)), sum);
        if (got == Stop::none) exchange.send(at, unit, sum);
        return got;
      });
      if (stop != Stop::none) return stop;
    }
    exchange.end();
    return Stop::none;
  }
};

namespace detail {
/// Adds up what is `from` bytes into all windows, and writes the sums `to` bytes into all of them. It is not
/// inlined, so that it does not take registers from its caller.
template <class T>
CHORALE_COLD void add_up_rows(Group group, char* const* windows, uint32_t ranks, uint64_t from, uint64_t to,
                              uint64_t bytes) {
  transfer(group, bytes, Multi<ReduceOp::sum, T>{windows, ranks, from}, MultiStore{windows, ranks, to});
}
}  // namespace detail

/// Sends long messages through windows. Each rank adds up its part of the rows from all ranks' windows and
/// writes the sums into all of them, where each rank then normalises them. In windows a row is whole units,
/// padded with zeros. It uses barriers 2 * group and 2 * group + 1.
template <class T, class Epilogue>
struct RmsNormWindow {
  WindowView window;               ///< a rank's input, then the sums
  uint64_t sums_at;                ///< the offset of the sums
  detail::Norm<T, Epilogue> norm;  ///< `room` is where the sums are

  CHORALE_FN Stop operator()(const Group& group, const Deadline& deadline) const {
    const uint32_t ready = 2 * group.id, added = ready + 1, ranks = uint32_t(window.ranks);
    // The last launch has ended on all ranks when they arrive here: each of its groups waited for all ranks.
    for (int32_t rank = 0; rank < window.ranks; ++rank) {
      const Leg part = part_of(group, rank);
      detail::copy_rows(group, norm.call.in, norm.call.cols, window.base[window.self],
                        part.begin / row_bytes(), part.bytes / row_bytes());
    }
    Stop stop = barrier(group, window, ready, deadline);
    if (stop != Stop::none) return stop;
    const Leg mine = part_of(group, window.self);
    detail::add_up_rows<T>(group, window.base, ranks, mine.begin, sums_at + mine.begin, mine.bytes);
    arrive_all(group, window, added);
    for (int32_t step = 0; step < window.ranks && stop == Stop::none; ++step) {
      // The group's own rows are already here.
      if (step == 1) stop = wait_all(group, window, added, deadline);
      if (stop == Stop::none) normalise(group, part_of(group, (window.self + step) % window.ranks));
    }
    return stop;
  }

 private:
  CHORALE_FN uint64_t row_bytes() const { return uint64_t(norm.units()) * unit_bytes; }

  /// Returns the rows that the group adds up at a rank. Each rank's rows begin with a different group. So
  /// with fewer rows than groups, no group has rows of several ranks while another has none.
  CHORALE_FN Leg part_of(const Group& group, int32_t rank) const {
    Leg all;
    all.bytes = norm.call.rows * row_bytes();
    const uint32_t ranks = uint32_t(window.ranks),
                   at = (group.id + uint32_t(rank) * (group.count / ranks)) % group.count;
    return share_of(share_of(all, uint32_t(rank), ranks, row_bytes()), at, group.count, row_bytes());
  }

  CHORALE_FN void normalise(const Group& group, const Leg& part) const {
    const char* const sums = window.base[window.self] + sums_at;
    for (uint64_t at = part.begin; at < part.begin + part.bytes; at += row_bytes()) {
      rms_norm_row<2>(group, norm, at / row_bytes(), [row = sums + at](uint32_t unit, Unit& sum) {
        sum = detail::load_whole(row + uint64_t(unit) * unit_bytes);
        return Stop::none;
      });
    }
  }
};

/// Has the links and windows for calls of RMSNorm of a stated size.
class RmsNormAllReduce : public Buffers {
 public:
  /// Makes it; collective. It takes 2 * `max_rows` * `max_row_bytes` bytes of memory, and up to eight times
  /// the bytes that go as packets, for each rank.
  /// \throws as Buffers
  RmsNormAllReduce(World& world, uint64_t max_rows, uint64_t max_row_bytes, const Setup& setup = {});

  /// Returns the form of a call. Every rank gets the same.
  Form form(uint64_t rows, uint64_t row_bytes) const;

  /// Returns memory for the input of calls in the form `window`, which then copy nothing. Rows there are
  /// whole units of 16 bytes. A call may overwrite it.
  template <class T>
  T* input() const {
    return reinterpret_cast<T*>(window_memory());
  }

  /// Makes a call, as launch() does. `out` of the epilogue may be `call.in`.
  /// \throws UsageError if the call is too long, or if a pointer is null; otherwise as launch()
  template <class T, class Epilogue, class = chorale::detail::Side>
  void run(const RmsNormCall<T>& call, const Epilogue& epilogue, LaunchStream on = {}) {
    const uint64_t row_bytes = uint64_t(call.cols) * sizeof(T);
    const bool whole = row_bytes % unit_bytes == 0;
    check(call.rows, call.cols, sizeof(T), call.in && call.weight,
          !whole && static_cast<const void*>(call.in) == window_memory());
    if (call.rows == 0 || call.cols == 0) return;
    const Form chosen = form(call.rows, row_bytes);
    const uint64_t units = (row_bytes + unit_bytes - 1) / unit_bytes;
    T* const sums = reinterpret_cast<T*>(window_memory() + capacity());
    const detail::Norm<T, Epilogue> norm{call, sums, units * unit_bytes / sizeof(T), epilogue};
    const LaunchConfig shape = shape_of(chosen, call.rows, units);
    const LaunchName name{"RmsNormAllReduce"};
    if (chosen == Form::packets) {
      launch(transport(), RmsNormPackets<T, Epilogue>{transport().table(), norm}, shape, on, name);
    } else if (chosen == Form::packets_twice) {
      launch(transport(), RmsNormPacketsTwice<T, Epilogue>{transport().table(), norm}, shape, on, name);
    } else {
      launch(transport(), RmsNormWindow<T, Epilogue>{window(), capacity(), norm}, shape, on, name);
    }
  }

 private:
  void check(uint64_t rows, uint64_t cols, uint64_t element_bytes, bool pointers, bool ragged_input) const;
};

}  // namespace chorale::fused
