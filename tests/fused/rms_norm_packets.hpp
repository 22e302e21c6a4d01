#pragma once
#include <cstdint>

#include "tests/fused/rms_norm_all_reduce.hpp"

template <class T>
struct RmsNormPackets {
  chorale::EndpointTable table;
  const T* in;
  T* out;
  uint32_t rows, cols;  ///< a row is whole units
  RmsNormConsume<T> norm;

  static constexpr uint32_t in_unit = chorale::unit_bytes / sizeof(T);

  CHORALE_FN chorale::Unit own(uint64_t row, uint64_t unit) const {
    return chorale::load_unit(reinterpret_cast<const char*>(in + row * cols + unit * in_unit));
  }
  /// Returns how many of `all` turns group.each_strided() gives to this group.
  CHORALE_FN static uint64_t turns_of(const chorale::Group& group, uint64_t all) {
    return all > group.id ? (all - group.id - 1) / group.count + 1 : 0;
  }
};

/// Does the work of RmsNormAllReduce for short messages, in one exchange. Every rank sends its rows to every
/// other, and adds up and normalises them all. All ranks add in rank order, so that they get the same bits.
template <class T, class P = chorale::LL16>
struct RmsNormOneShot : RmsNormPackets<T> {
  CHORALE_FN chorale::Stop operator()(const chorale::Group& group, const chorale::Deadline& deadline) const {
    using namespace chorale;
    const uint64_t units = this->cols / this->in_unit, slot = packet_bytes<P>(units * unit_bytes);
    const uint64_t mine = this->turns_of(group, this->rows);
    if (mine == 0) return Stop::none;
    PacketExchange<P> exchange(group, this->table, deadline);
    Stop stop = exchange.begin(mine * slot);
    if (stop != Stop::none) return stop;
    // The first unit of each row stays in a register until it is added.
    const auto push = [&](uint64_t index) {
      const uint64_t row = group.id + index * group.count;
      Unit first{};
#if defined(__CUDACC__)
#pragma unroll 1
#endif
      for (uint64_t unit = group.rank; unit < units; unit += group.size) {
        const Unit own = this->own(row, unit);
        exchange.send(index * slot, unit, own);
        if (unit == group.rank) first = own;
      }
      return first;
    };
    Unit first = push(0);
    for (uint64_t index = 0; index < mine; ++index) {
      const uint64_t row = group.id + index * group.count;
      const Unit next = index + 1 < mine ? push(index + 1) : Unit{};  // in transit while this group waits
      stop = rms_norm_row<1>(group, this->norm, this->out, row, this->cols, [&](uint64_t unit, Unit& sum) {
        return exchange.template sum<ReduceOp::sum, T>(
            index * slot, unit, unit == group.rank ? first : this->own(row, unit), sum);
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
template <class T, class P = chorale::LL16>
struct RmsNormTwoShot : RmsNormPackets<T> {
  CHORALE_FN chorale::Stop operator()(const chorale::Group& group, const chorale::Deadline& deadline) const {
    using namespace chorale;
    const int32_t ranks = this->table.ranks, self = this->table.self;
    const uint64_t units = this->cols / this->in_unit, slot = packet_bytes<P>(units * unit_bytes);
    const uint64_t mine = this->turns_of(group, this->rows);
    if (mine == 0) return Stop::none;
    PacketExchange<P> exchange(group, this->table, deadline);
    // A row goes from one rank to another at most once: as a part of a sum, or as the sum.
    Stop stop = exchange.begin(mine * slot);
    if (stop != Stop::none) return stop;
    const auto row_of = [&](uint64_t index) { return group.id + index * group.count; };
    const auto owner_of = [&](uint64_t index) { return int32_t(row_of(index) % uint32_t(ranks)); };
    const auto push = [&](uint64_t index) {
      const int32_t owner = owner_of(index);
      for (uint64_t unit = group.rank; unit < units && owner != self; unit += group.size)
        exchange.send_to(owner, index * slot, unit, this->own(row_of(index), unit));
    };
    push(0);
    for (uint64_t index = 0; index < mine; ++index) {
      if (index + 1 < mine) push(index + 1);  // in transit while this group waits
      const uint64_t row = row_of(index), at = index * slot;
      const int32_t owner = owner_of(index);
      stop = rms_norm_row<1>(group, this->norm, this->out, row, this->cols, [&](uint64_t unit, Unit& sum) {
        if (owner != self) return exchange.receive(owner, at, unit, sum);
        const Stop got = exchange.template sum<ReduceOp::sum, T>(at, unit, this->own(row, unit), sum);
        if (got == Stop::none) exchange.send(at, unit, sum);
        return got;
      });
      if (stop != Stop::none) return stop;
    }
    exchange.end();
    return Stop::none;
  }
};
