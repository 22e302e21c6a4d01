#pragma once
#include <chorale/device.hpp>
#include <cstdint>

// These kernels send tokens to the ranks of their experts, and back. A router has sorted the tokens by rank
// and counted them; none of its numbers leaves the GPU.

/// Calls f(row, column, first, n) for runs of a vector's elements that are in one row of `cols`: elements
/// first to first + n - 1 of the vector. Each vector in rows of whole vectors is one run.
template <class X, class F>
CHORALE_FN void each_row(const chorale::Ctx<X>& ctx, uint32_t cols, const F& f) {
  for (uint32_t done = 0; done < ctx.count;) {
    const uint64_t at = ctx.first + ctx.index + done, col = at % cols;
    const uint32_t left = ctx.count - done, n = col + left <= cols ? left : uint32_t(cols - col);
    f(at / cols, col, done, n);
    done += n;
  }
}

/// Sends row order[i] of the table `tokens` as the i-th of all rows that this rank sends.
template <class T>
struct RoutedProduce {
  const T* tokens;
  const int32_t* order;
  uint32_t cols;

  template <class X>
  CHORALE_FN chorale::Vector<T> produce(const chorale::Ctx<X>& ctx) const {
    chorale::Vector<T> values{};
    each_row(ctx, cols, [&](uint64_t row, uint64_t col, uint32_t first, uint32_t n) {
      const T* const from = tokens + uint64_t(order[row]) * cols + col;
      const chorale::Vector<T> part = chorale::load_elements<T>(from, 0, n);
      for (uint32_t item = 0; item < n; ++item) values.item[first + item] = part.item[item];
    });
    return values;
  }
};

/// Sends to[p] tokens to rank p for its experts. Tokens arrive in rank order, and those of one rank in the
/// order in which it sent them. came[p] is the number of rank p's tokens.
template <class T>
struct DispatchTokens {
  chorale::EndpointTable table;
  const T* tokens;
  T* arrived;
  uint32_t cols;
  const int32_t* order;
  const int32_t* to;
  int32_t* came;
  uint64_t room;  ///< tokens that `arrived` can hold; further ones are dropped, and `came` shows it

  CHORALE_FN chorale::Stop operator()(const chorale::Group& group, const chorale::Deadline& deadline) const {
    chorale::Leg leg;
    leg.out = arrived;
    const chorale::Counts<int32_t> counts{to, nullptr, came, nullptr, cols, chorale::unlimited, room};
    return chorale::all_to_all_v<T>(group, table, leg, counts, RoutedProduce<T>{tokens, order, cols},
                                    chorale::CopyConsume{}, deadline);
  }
};

/// Multiplies each token that arrives by its weight, and stores it in the row from which it was sent.
template <class T>
struct WeighedConsume {
  T* tokens;
  const int32_t* order;
  const float* weights;  ///< one per token
  uint32_t cols;

  template <class X>
  CHORALE_FN void consume(const chorale::Ctx<X>& ctx, const chorale::Vector<T>& values) const {
    each_row(ctx, cols, [&](uint64_t row, uint64_t col, uint32_t first, uint32_t n) {
      const uint64_t token = uint64_t(order[row]);
      const float weight = weights[token];
      T* const to = tokens + token * cols + col;
      chorale::Vector<T> weighed = values;
      for (uint32_t item = 0; item < n; ++item) {
        weighed.item[item] = chorale::narrow<T>(float(chorale::widen(values.item[first + item])) * weight);
      }
      chorale::store_elements<T>(to, 0, weighed, n);
    });
  }
};

/// Sends the tokens back: those of rank p go to rank p, which still knows their order.
template <class T>
struct CombineTokens {
  chorale::EndpointTable table;
  const T* arrived;
  T* tokens;
  uint32_t cols;
  const int32_t* order;
  const int32_t* came;
  const float* weights;

  CHORALE_FN chorale::Stop operator()(const chorale::Group& group, const chorale::Deadline& deadline) const {
    chorale::Leg leg;
    leg.in = arrived;
    const chorale::Counts<int32_t> counts{came, nullptr, nullptr, nullptr, cols};
    return chorale::all_to_all_v<T>(group, table, leg, counts, chorale::CopyProduce{},
                                    WeighedConsume<T>{tokens, order, weights, cols}, deadline);
  }
};
