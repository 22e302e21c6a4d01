/// \file
/// Tests the kernels of chorale/fused. Results are small, and are compared on the host.
#pragma once

#include <algorithm>
#include <chorale/fused/gather_permute.hpp>
#include <chorale/fused/quantised.hpp>
#include <chorale/fused/rms_norm.hpp>
#include <chorale/fused/transpose.hpp>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "tests/cuda/tiles_rank.cuh"

namespace tiles_test {

using fused::Form;

inline fused::Setup on_device(Form form, uint32_t blocks = 0, uint32_t threads = 0) {
  fused::Setup setup;
  setup.space = Space::device;
  setup.form = form;
  setup.blocks = blocks;
  setup.threads = threads;
  return setup;
}

inline void fail(const char* what, const char* why, uint64_t at) {
  std::printf("%s: %s, element %llu\n", what, why, (unsigned long long)at);
  ++failures;
}

/// Fails unless all ranks have the same bits.
template <class T>
void expect_same_bits(const Rank& rank, const char* what, const std::vector<T>& values) {
  for (const auto& theirs : rank.world.allgather(std::as_bytes(std::span(values)))) {
    if (theirs.size() != values.size() * sizeof(T) ||
        std::memcmp(theirs.data(), values.data(), theirs.size()) != 0)
      return fail(what, "ranks have different bits", 0);
  }
}

inline float data_of(int rank, uint64_t call, uint64_t at) {
  return (float(value_at(call * 100 + uint64_t(rank), at)) - 500) * (at % 7 == 0 ? 3.7f : 0.01f);
}
template <class T>
std::vector<T> message_of(int rank, uint64_t call, uint64_t n) {
  std::vector<T> values(n);
  for (uint64_t at = 0; at < n; ++at) values[at] = narrow<T>(data_of(rank, call, at));
  return values;
}
template <class T>
void copy_to(const OnDevice<T>& to, const std::vector<T>& values, cudaStream_t stream) {
  check(cudaMemcpyAsync(to.data(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice, stream));
  check(cudaStreamSynchronize(stream));
}

/// Replays one captured call with new data.
inline void test_transpose(const Rank& rank, Form form, uint32_t rows, uint32_t cols, bool stays = false) {
  const uint64_t n = uint64_t(rows) * cols * rank.ranks;
  fused::TransposeAllToAll turn(rank.world, n * 4, on_device(form));
  Buffer in(n), out(n);
  replay(
      rank, 3,
      [&] { turn.run<uint32_t>(in.data(), stays ? nullptr : out.data(), rows, cols, {rank.stream}); },
      [&](uint64_t call) {
        in.fill(rank.stream, call * 100 + rank.self);
        out.clear(rank.stream);
      },
      [&](uint64_t call) {
        expect_values("transposed", rank.stream, stays ? turn.result<uint32_t>() : out.data(), n,
                      Transposed{call * 100, uint32_t(rank.self), uint32_t(rank.ranks), rows, cols});
      });
}

/// Stores the values that another epilogue gets.
template <class Next>
struct Recorded {
  float* values;
  Next next;

  CHORALE_FN bool reads_memory(const Group& group, uint32_t cols, uint32_t per_unit) const {
    return next.reads_memory(group, cols, per_unit);
  }
  template <class Row>
  CHORALE_FN void operator()(const Group& group, const Row& row) const {
    row.each([&](uint32_t col, const auto& items, uint32_t count) {
      for (uint32_t item = 0; item < Row::per_unit; ++item) {
        if (item < count) values[row.row() * row.cols() + col + item] = items[item];
      }
    });
    next(group, row);
  }
};

/// Checks the residual and the normalised values of a call.
template <class T>
bool check_norm(const Rank& rank, const char* what, uint64_t call, uint64_t rows, uint32_t cols,
                const std::vector<T>& residual, const std::vector<float>& values) {
  const double rounding = sizeof(T) == 4 ? 1e-5 : 1e-2;
  for (uint64_t row = 0; row < rows; ++row) {
    double squares = 0;
    std::vector<float> kept(cols);
    for (uint32_t col = 0; col < cols; ++col) {
      const uint64_t at = row * cols + col;
      float sum = widen(narrow<T>(data_of(0, call, at)));
      for (int from = 1; from < rank.ranks; ++from) sum += widen(narrow<T>(data_of(from, call, at)));
      const T expected = narrow<T>(widen(narrow<T>(sum)) + widen(narrow<T>(data_of(77, call, at))));
      kept[col] = widen(expected);
      squares += double(kept[col]) * kept[col];
      if (std::memcmp(&expected, &residual[at], sizeof(T)) != 0) {
        fail(what, "the residual is wrong", at);
        return false;
      }
    }
    const double scale = 1 / std::sqrt(squares / cols + 1e-5);
    for (uint32_t col = 0; col < cols; ++col) {
      const double expected = kept[col] * scale * widen(narrow<T>(data_of(88, call, col)));
      if (std::fabs(values[row * cols + col] - expected) <= rounding * std::fabs(expected) + 1e-30) continue;
      fail(what, "the result is wrong", row * cols + col);
      return false;
    }
  }
  return true;
}

/// Replays one captured call with new data. `block` is of QuantiseRow.
template <class T, class Q>
void test_rms_norm(const Rank& rank, Form form, uint64_t rows, uint32_t cols, uint32_t blocks, uint32_t block,
                   uint32_t threads = 0) {
  const char* const what = "RMSNorm";
  const uint64_t n = rows * cols;
  const uint32_t each = fused::QuantiseRow<Q>{nullptr, nullptr, block}.scale_count(cols);
  fused::RmsNormAllReduce norm(rank.world, rows, (uint64_t(cols) * sizeof(T) + 15) / 16 * 16,
                               on_device(form, blocks, threads));
  const OnDevice<T> in{std::vector<T>(n)}, residual{std::vector<T>(n)}, weight{std::vector<T>(cols)};
  const OnDevice<float> values{std::vector<float>(n)}, scales{std::vector<float>(rows * each)};
  const OnDevice<Q> codes{std::vector<Q>(n)};
  replay(
      rank, 3,
      [&] {
        norm.run<T>({in.data(), residual.data(), weight.data(), 1e-5f, rows, cols},
                    Recorded<fused::QuantiseRow<Q>>{values.data(), {codes.data(), scales.data(), block}},
                    {rank.stream});
      },
      [&](uint64_t call) {
        copy_to(in, message_of<T>(rank.self, call, n), rank.stream);
        copy_to(residual, message_of<T>(77, call, n), rank.stream);
        copy_to(weight, message_of<T>(88, call, cols), rank.stream);
      },
      [&](uint64_t call) {
        const std::vector<float> got = to_host(values.data(), n),
                                 of_blocks = to_host(scales.data(), rows * each);
        const std::vector<Q> stored = to_host(codes.data(), n);
        if (!check_norm<T>(rank, what, call, rows, cols, to_host(residual.data(), n), got)) return;
        for (uint64_t row = 0; row < rows; ++row) {
          for (uint32_t number = 0; number < each; ++number) {
            const uint32_t first = number * block, end = block == 0 ? cols : std::min(cols, first + block);
            float largest = 0;
            for (uint32_t col = first; col < end; ++col)
              largest = std::max(largest, std::fabs(got[row * cols + col]));
            const float scale = chorale::scale_of<Q>(largest);
            if (of_blocks[row * each + number] != scale) return fail(what, "a scale is wrong", row);
            for (uint32_t col = first; col < end; ++col) {
              const Q code = fused::code_of<Q>(got[row * cols + col] * (1.0f / scale));
              if (std::memcmp(&code, &stored[row * cols + col], 1) != 0)
                return fail(what, "a code is wrong", row * cols + col);
            }
          }
        }
        expect_same_bits(rank, what, stored);
      });
}

/// Returns what a message becomes as codes and back.
template <class Q>
std::vector<float> through_codes(std::vector<float> values, uint32_t block) {
  for (size_t first = 0; first < values.size(); first += block) {
    const size_t end = std::min(values.size(), first + block);
    float largest = 0;
    for (size_t at = first; at < end; ++at) largest = std::max(largest, fused::finite_magnitude(values[at]));
    const float scale = chorale::scale_of<Q>(largest), inverse = 1.0f / scale;
    for (size_t at = first; at < end; ++at)
      values[at] = fused::value_of_code(fused::code_of<Q>(values[at] * inverse)) * scale;
  }
  return values;
}
template <class T, class Q>
std::vector<float> codes_of_rank(int rank, uint64_t call, uint64_t n, uint32_t block) {
  std::vector<float> values(n);
  for (uint64_t at = 0; at < n; ++at) values[at] = widen(narrow<T>(data_of(rank, call, at)));
  return through_codes<Q>(std::move(values), block);
}
/// Compares with values that are rounded to T.
template <class T>
void expect_rounded(const char* what, const std::vector<T>& got, uint64_t begin,
                    const std::vector<float>& expected) {
  for (uint64_t at = 0; at < expected.size(); ++at) {
    if (widen(got[begin + at]) != widen(narrow<T>(expected[at])))
      return fail(what, "a value is wrong", begin + at);
  }
}

/// Replays calls with new data. The GPU gives the bits that the host computes.
template <class T, class Q>
void test_quantised(const Rank& rank, Form form, uint64_t n, uint32_t block, uint32_t blocks = 0) {
  const uint64_t ranks = uint64_t(rank.ranks);
  fused::QuantisedAllReduce reduce(rank.world, n, block, on_device(form, blocks));
  fused::QuantisedAllGather gather(rank.world, n, block, on_device(form, blocks));
  const OnDevice<T> in{std::vector<T>(n)}, sums{std::vector<T>(n)}, all{std::vector<T>(n * ranks)};
  replay(
      rank, 3,
      [&] {
        reduce.run<T, Q>(in.data(), sums.data(), n, {rank.stream});
        gather.run<T, Q>(in.data(), all.data(), n, {rank.stream});
      },
      [&](uint64_t call) { copy_to(in, message_of<T>(rank.self, call, n), rank.stream); },
      [&](uint64_t call) {
        const std::vector<T> gathered = to_host(all.data(), n * ranks), reduced = to_host(sums.data(), n);
        std::vector<float> expected(n);
        for (uint64_t from = 0; from < ranks; ++from) {
          const std::vector<float> theirs = codes_of_rank<T, Q>(int(from), call, n, block);
          expect_rounded("quantised all-gather", gathered, from * n, theirs);
          for (uint64_t at = 0; at < n; ++at)
            expected[at] = from == 0 ? theirs[at] : expected[at] + theirs[at];
        }
        if (reduce.form(n) == Form::window) expected = through_codes<Q>(expected, block);
        expect_rounded("quantised all-reduce", reduced, 0, expected);
        expect_same_bits(rank, "quantised all-reduce", reduced);
      });
}

inline void test_gather_permute(const Rank& rank, Form form, uint64_t rows, uint32_t cols,
                                uint32_t blocks = 0) {
  const uint64_t all = rows * uint64_t(rank.ranks), out_rows = all + 5 - uint64_t(rank.self);
  fused::GatherPermute gather(rank.world, rows, (uint64_t(cols) * 4 + 15) / 16 * 16, on_device(form, blocks));
  const OnDevice<float> in{std::vector<float>(rows * cols)}, out{std::vector<float>(out_rows * cols)};
  const OnDevice<int32_t> index{std::vector<int32_t>(out_rows)};
  std::vector<int32_t> chosen(out_rows);
  replay(
      rank, 3,
      [&] {
        gather.run<float, int32_t>({in.data(), out.data(), index.data(), rows, out_rows, cols},
                                   {rank.stream});
      },
      [&](uint64_t call) {
        for (uint64_t row = 0; row < out_rows; ++row)
          chosen[row] = int32_t(value_at(call * 10 + uint64_t(rank.self), row) % (all + 2)) - 1;
        copy_to(index, chosen, rank.stream);
        copy_to(in, message_of<float>(rank.self, call, rows * cols), rank.stream);
      },
      [&](uint64_t call) {
        const std::vector<float> got = to_host(out.data(), out_rows * cols);
        for (uint64_t row = 0; row < out_rows; ++row) {
          const bool exists = chosen[row] >= 0 && uint64_t(chosen[row]) < all;
          for (uint32_t col = 0; col < cols; ++col) {
            const float expected = exists ? data_of(int(uint64_t(chosen[row]) / rows), call,
                                                    uint64_t(chosen[row]) % rows * cols + col)
                                          : 0.0f;
            if (got[row * cols + col] != expected)
              return fail("gather and permute", "a value is wrong", row * cols + col);
          }
        }
      });
}

inline void test_fused(const Rank& rank) {
  for (const Form form : {Form::packets, Form::window, Form::tiles}) {
    test_transpose(rank, form, 300, 37);
    test_transpose(rank, form, 30, 21);
  }
  test_transpose(rank, Form::window, 300, 37, true);
  for (const Form form : {Form::packets, Form::packets_twice, Form::window}) {
    // Rows have fewer units than threads, or more; there are more rows than blocks. Blocks of columns are
    // units of neighbouring lanes, or not.
    test_rms_norm<float, fp8_e4m3>(rank, form, 1, 32, 1, 0, 32);
    test_rms_norm<float, int8_t>(rank, form, 5, 200, 2, 16, 32);
    test_rms_norm<bf16, fp8_e4m3>(rank, form, 23, 2048, 3, 128);
    test_rms_norm<bf16, fp8_e5m2>(rank, form, 7, 1000, 8, 20, 64);
    test_rms_norm<f16, int8_t>(rank, form, 7, 333, 8, 32, 64);
    test_rms_norm<bf16, fp8_e4m3>(rank, form, 3, 16384, 2, 256);
  }
  for (const Form form : {Form::packets, Form::window}) {
    test_quantised<bf16, fp8_e4m3>(rank, form, 128 * 137 + 40, 128);
    test_quantised<float, int8_t>(rank, form, 5000, 16, 3);
    test_quantised<f16, fp8_e5m2>(rank, form, 5000, 512, 7);
    test_quantised<bf16, int8_t>(rank, form, 1, 32);
    test_gather_permute(rank, form, 37, 100);
    test_gather_permute(rank, form, 300, 4, 3);
    test_gather_permute(rank, form, 5, 33, 2);
  }
}

}  // namespace tiles_test
