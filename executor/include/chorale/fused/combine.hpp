#pragma once
// The kernel of combine(), see experts.hpp. For each token that came to it, a rank adds up the rows of its
// experts and sends the sum to the token's rank, which adds up the sums.

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "chorale/fused/expert_view.hpp"

namespace chorale::fused {

namespace detail {

/// Holds the elements of a unit in float while they are added up.
template <class T>
struct FloatSum {
  static constexpr uint32_t n = unit_bytes / sizeof(T);
  float item[n] = {};

  CHORALE_FN void add(const Unit& unit, float weight) {
    const Vector<T> values = elements_of<T>(unit);
#if defined(__CUDACC__)
#pragma unroll
#endif
    for (uint32_t at = 0; at < n; ++at) item[at] += weight * float(widen(values.item[at]));
  }
  CHORALE_FN Unit rounded() const {
    Vector<T> values;
#if defined(__CUDACC__)
#pragma unroll
#endif
    for (uint32_t at = 0; at < n; ++at) values.item[at] = narrow<T>(item[at]);
    return unit_of<T>(values);
  }
};

/// Makes the units of the weighed sum of a token's rows here: weight * row, added in the order of the token's
/// experts.
template <class T>
struct WeighedUnits {
  const char* rows;
  uint64_t row_bytes;
  const Route* routes;  ///< of the token
  uint32_t top_k;

  CHORALE_FN Unit operator()(uint64_t index) const {
    FloatSum<T> sum;
    for (uint32_t slot = 0; slot < top_k; ++slot) {
      const Route route = routes[slot];
      if (route.place < 0) continue;
      sum.add(load_unit(rows + uint64_t(route.place) * row_bytes + index * unit_bytes), route.weight);
    }
    return sum.rounded();
  }
};

/// Is the sum of what the ranks have sent for a token, added in rank order. From(rank) is the source of a
/// rank's part.
template <class T, class Own, class From>
struct SumOfRanks {
  uint64_t ranks;  ///< one bit per rank that has a part
  int32_t self;
  Own own;  ///< the source of this rank's part
  From from;

  using Source = std::decay_t<decltype(std::declval<const From&>()(0))>;
  static constexpr bool waits = true;
  static constexpr bool by_line = chorale::detail::by_line<Source>;
  static constexpr uint32_t at_once = 1;

#if defined(__CUDACC__)
  CHORALE_FN bool may_take_several() const { return false; }
  CHORALE_FN bool whole(uint64_t) const { return true; }
  template <bool Whole, uint32_t N>
  CHORALE_FN Stop read(const Group& group, const Turn& turn, Unit (&to)[N]) const {
    FloatSum<T> sums[N];
    for (int32_t rank = 0; rank < 64 && ranks >> rank != 0; ++rank) {
      if ((ranks >> rank & 1) == 0) continue;
      Unit held[N];
      Stop stop = Stop::none;
      if (rank == self) {
        stop = own.template read<Whole, N>(group, turn, held);
      } else {
        stop = from(rank).template read<Whole, N>(group, turn, held);
      }
      if (stop != Stop::none) return stop;
#pragma unroll
      for (uint32_t index = 0; index < N; ++index) sums[index].add(held[index], 1.0f);
    }
#pragma unroll
    for (uint32_t index = 0; index < N; ++index) to[index] = sums[index].rounded();
    return Stop::none;
  }
#else
  uint64_t run(uint64_t) const { return 0; }
  Stop view(const Group& group, uint64_t at, uint64_t bytes, char* room, const char*& seen) const {
    constexpr uint32_t most = chorale::detail::span_bytes / unit_bytes;
    FloatSum<T> sums[most];
    alignas(16) char held[chorale::detail::span_bytes];
    for (int32_t rank = 0; rank < 64 && ranks >> rank != 0; ++rank) {
      if ((ranks >> rank & 1) == 0) continue;
      const char* part = nullptr;
      const Stop stop = rank == self ? own.view(group, at, bytes, held, part)
                                     : from(rank).view(group, at, bytes, held, part);
      if (stop != Stop::none) return stop;
      for (uint64_t index = 0; index < units_of(bytes); ++index)
        sums[index].add(load_unit(part + index * unit_bytes), 1.0f);
    }
    for (uint64_t index = 0; index < units_of(bytes); ++index) {
      const Unit sum = sums[index].rounded();
      std::memcpy(room + index * unit_bytes, &sum, unit_bytes);
    }
    seen = room;
    return Stop::none;
  }
#endif
};
template <class T, class Own, class From>
CHORALE_FN SumOfRanks<T, Own, From> sum_of_ranks(uint64_t ranks, int32_t self, const Own& own,
                                                 const From& from) {
  return {ranks, self, own, from};
}

}  // namespace detail

/// Sends each token's sum back to its rank. The arguments are those of Combine, see experts.hpp.
template <class T>
struct CombineKernel {
  ExpertView view;
  const char* rows;  ///< of view.result_bytes each
  char* results;     ///< one per token of this rank, of view.result_bytes
  uint32_t n;

  CHORALE_FN Stop operator()(const Group& group, const Deadline& deadline) const {
    if (group.count != view.blocks) refuse("an expert exchange is launched with another number of blocks");
    ExpertView::Calls* const calls = view.calls(group.id);
    const uint64_t call = load_relaxed(&calls->dispatched);
    if (load_relaxed(&calls->combined) == call) {
      return detail::wrong_call("combine() follows a dispatch(), once");
    }
    if (view.came(group.id, view.window.self)[0] != n) {
      return detail::wrong_call("combine() gets another number of tokens than the dispatch() before it");
    }
    group.sync();  // all threads have read the numbers of calls
    uint32_t pieces = pieces_of(view.range(n, group.id));
    for (int32_t sender = 0; sender < view.window.ranks; ++sender) {
      const uint32_t theirs = pieces_of(view.range(view.came(group.id, sender)[0], group.id));
      pieces = theirs < pieces ? pieces : theirs;
    }
    Stop stop = Stop::none;
    for (uint32_t piece = 0; piece <= pieces && stop == Stop::none; ++piece) {
      if (piece < pieces) send_piece(group, call, piece);
      if (piece != 0) stop = take_piece(group, deadline, call, piece - 1);
    }
    if (stop == Stop::none && group.leader()) store_relaxed(&calls->combined, call);
    return stop;
  }

 private:
  CHORALE_FN detail::UnitSource<detail::WeighedUnits<T>, 2> weighed(int32_t sender, uint32_t token) const {
    return {{rows, view.result_bytes, view.routes(sender, token), view.top_k}};
  }

  /// Sends the sums for a piece of each other rank's tokens.
  CHORALE_FN void send_piece(const Group& group, uint64_t call, uint32_t piece) const {
    const Group warp = group.warps();
    for (int32_t step = 1; step < view.window.ranks; ++step) {
      const int32_t to = (view.window.self + step) % view.window.ranks;
      const uint32_t* const came = view.came(group.id, to);
      const TokenRange range = piece_of(view.range(came[0], group.id), piece);
      detail::each_of_warp(group, warp, range.size(), [&](uint64_t item) {
        const uint32_t token = range.begin + uint32_t(item);
        const Route* const routes = view.routes(to, token);
        bool came_here = false;
        for (uint32_t slot = 0; slot < view.top_k; ++slot) came_here |= routes[slot].expert >= 0;
        if (!came_here) return;
        if (came[1] == 0) {
          transfer(warp, view.result_bytes, weighed(to, token),
                   Mem(view.result_row(to, view.window.self, token)));
          return;
        }
        detail::with_form(view, [&](auto form) {
          using P = typename decltype(form)::type;
          void* const slots = view.result_packet(to, view.window.self, token);
          transfer(warp, view.result_bytes, weighed(to, token),
                   Packets<P>(slots, chorale::detail::packet_flag(call)));
        });
      });
    }
    detail::tell_ranks(group, view.window, view.result_signal(group.id), view.signal_value(call, piece + 1),
                       [&](int32_t rank) { return view.came(group.id, rank)[1] == 0; });
  }

  /// Adds up a piece of this rank's tokens.
  CHORALE_FN Stop take_piece(const Group& group, const Deadline& deadline, uint64_t call,
                             uint32_t piece) const {
    const Group warp = group.warps();
    const int32_t self = view.window.self;
    const TokenRange range = piece_of(view.range(n, group.id), piece);
    const bool packets = view.came(group.id, self)[1] != 0;
    Stop stop = Stop::none;
    for (int32_t rank = 0; rank < view.window.ranks && !packets && range.size() != 0; ++rank) {
      if (rank == self) continue;
      stop = wait_signal_from(group, view.window, rank, view.result_signal(group.id), Cmp::ge,
                              view.signal_value(call, piece + 1), deadline);
      if (stop != Stop::none) return stop;
    }
    detail::each_of_warp(group, warp, range.size(), [&](uint64_t item) {
      if (stop != Stop::none) return;
      const uint32_t token = range.begin + uint32_t(item);
      const uint64_t ranks = *view.goes(token);
      const Mem result(results + uint64_t(token) * view.result_bytes);
      const auto own = weighed(self, token);
      if (!packets) {
        const auto row = [&](int32_t rank) -> Mem { return {view.result_row(self, rank, token)}; };
        stop = transfer(warp, view.result_bytes, detail::sum_of_ranks<T>(ranks, self, own, row), result);
        return;
      }
      detail::with_form(view, [&](auto form) {
        using P = typename decltype(form)::type;
        const auto packet = [&](int32_t rank) -> Packets<P> {
          return {static_cast<const void*>(view.result_packet(self, rank, token)),
                  chorale::detail::packet_flag(call), &deadline};
        };
        stop = transfer(warp, view.result_bytes, detail::sum_of_ranks<T>(ranks, self, own, packet), result);
      });
    });
    return group.agree(stop);
  }
};

}  // namespace chorale::fused
