#pragma once
#include <cstdint>

#include "tests/fused/rms_norm_all_reduce.hpp"

/// Does the work of RmsNormAllReduce for long messages in windows. Each rank adds up its part of the rows
/// from all ranks' inputs and writes the sums into all ranks' results, where each rank then normalises them.
/// All ranks add in rank order. It uses barriers 2 * group and 2 * group + 1. A row is whole units.
template <class T>
struct RmsNormWindow {
  chorale::WindowView window;  ///< a rank's input, then its result
  uint32_t rows, cols;
  RmsNormConsume<T> norm;

  CHORALE_FN chorale::Stop operator()(const chorale::Group& group, const chorale::Deadline& deadline) const {
    using namespace chorale;
    const uint32_t ready = 2 * group.id, added = ready + 1, ranks = uint32_t(window.ranks);
    Stop stop = barrier(group, window, ready, deadline);
    if (stop != Stop::none) return stop;
    const Leg mine = part_of(group, window.self);
    transfer(group, mine.bytes, Multi<ReduceOp::sum, T>{window.base, ranks, mine.begin},
             MultiStore{window.base, ranks, result_at() + mine.begin});
    arrive_all(group, window, added);
    for (int32_t step = 0; step < window.ranks && stop == Stop::none; ++step) {
      // The group's own rows are already here.
      if (step == 1) stop = wait_all(group, window, added, deadline);
      if (stop == Stop::none) normalise(group, part_of(group, (window.self + step) % window.ranks));
    }
    return stop;
  }

 private:
  CHORALE_FN uint64_t row_bytes() const { return cols * sizeof(T); }
  CHORALE_FN uint64_t result_at() const { return rows * row_bytes(); }

  /// Returns the rows that the group adds up at a rank. Each rank's rows begin with a different group. So
  /// with fewer rows than groups, no group has rows of several ranks while another has none.
  CHORALE_FN chorale::Leg part_of(const chorale::Group& group, int32_t rank) const {
    using namespace chorale;
    Leg all;
    all.bytes = rows * row_bytes();
    const uint32_t ranks = uint32_t(window.ranks),
                   at = (group.id + uint32_t(rank) * (group.count / ranks)) % group.count;
    return share_of(share_of(all, uint32_t(rank), ranks, row_bytes()), at, group.count, row_bytes());
  }

  CHORALE_FN void normalise(const chorale::Group& group, const chorale::Leg& part) const {
    using namespace chorale;
    char* const result = window.base[window.self] + result_at();
    for (uint64_t at = part.begin; at < part.begin + part.bytes; at += row_bytes()) {
      rms_norm_row<2>(group, norm, reinterpret_cast<T*>(result), at / row_bytes(), cols,
                      [row = result + at](uint64_t unit, Unit& sum) {
                        sum = load_unit(row + unit * unit_bytes);
                        return Stop::none;
                      });
    }
  }
};
