#pragma once
#include "tests/fused/rms_norm_all_reduce.hpp"

/// As RmsNormAllReduce, for long messages in windows: each rank adds up its part of the rows from everybody's
/// input and writes the sums into everybody's result, where each then normalises them. All ranks add in rank
/// order. In several turns a group normalises the rows of one while those of the next are on their way.
/// Barriers (turns + 1) * group and following. A row is whole units.
template <class T>
struct RmsNormWindow {
  chorale::WindowView window;  ///< a rank's input, then its result
  uint32_t rows, cols;
  RmsNormConsume<T> norm;
  uint32_t turns = 1;

  CHORALE_FN chorale::Stop operator()(const chorale::Group& group, const chorale::Deadline& deadline) const {
    using namespace chorale;
    const uint32_t ready = (turns + 1) * group.id, added = ready + 1, ranks = uint32_t(window.ranks);
    const uint64_t out = uint64_t(rows) * cols * sizeof(T);
    arrive_all(group, window, ready);
    Stop stop = wait_all(group, window, ready, deadline);
    for (uint32_t turn = 0; turn <= turns && stop == Stop::none; ++turn) {
      if (turn < turns) {
        const Leg mine = part_of(group, window.self, turn);
        transfer(group, mine.bytes, Multi<ReduceOp::sum, T>{window.base, ranks, mine.begin},
                 MultiStore{window.base, ranks, out + mine.begin});
        arrive_all(group, window, added + turn);
        stop = normalise(group, mine);  // while the others' come
      }
      if (turn > 0 && stop == Stop::none) stop = receive(group, turn - 1, added, deadline);
    }
    return stop;
  }

  /// Waits for what the others have added in a turn, and normalises it.
  CHORALE_FN chorale::Stop receive(const chorale::Group& group, uint32_t turn, uint32_t added,
                                   const chorale::Deadline& deadline) const {
    using namespace chorale;
    Stop stop = wait_all(group, window, added + turn, deadline);
    for (int32_t step = 1; step < window.ranks && stop == Stop::none; ++step) {
      stop = normalise(group, part_of(group, (window.self + step) % window.ranks, turn));
    }
    return stop;
  }

  /// The rows that the group adds up at a rank in a turn. Each rank's begin with another group: where there
  /// are fewer rows than groups, none has rows of several ranks while another has none.
  CHORALE_FN chorale::Leg part_of(const chorale::Group& group, int32_t rank, uint32_t turn) const {
    using namespace chorale;
    Leg all;
    all.bytes = uint64_t(rows) * cols * sizeof(T);
    const uint64_t row_bytes = cols * sizeof(T);
    const uint32_t ranks = uint32_t(window.ranks),
                   at = (group.id + uint32_t(rank) * (group.count / ranks)) % group.count;
    const Leg part = share_of(share_of(all, uint32_t(rank), ranks, row_bytes), at, group.count, row_bytes);
    return share_of(part, turn, turns, row_bytes);
  }

  CHORALE_FN chorale::Stop normalise(const chorale::Group& group, const chorale::Leg& part) const {
    using namespace chorale;
    char* const result = window.base[window.self] + uint64_t(rows) * cols * sizeof(T);
    const uint64_t row_bytes = cols * sizeof(T);
    for (uint64_t at = part.begin; at < part.begin + part.bytes; at += row_bytes) {
      const Stop stop = rms_norm_row(group, norm, reinterpret_cast<T*>(result), at / row_bytes, cols,
                                     [row = result + at](uint64_t unit, Unit& sum) {
                                       sum = load_unit(row + unit * unit_bytes);
                                       return Stop::none;
                                     });
      if (stop != Stop::none) return stop;
    }
    return Stop::none;
  }
};
