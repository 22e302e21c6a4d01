/// \file
/// Tests hooks over rings in types other than 32 bits. Results are small, and are computed on the host, which
/// rounds as a GPU does.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "tests/cuda/tiles_rank.cuh"

namespace tiles_test {

/// Every rank sends to the next; T is the type that is sent.
template <class T, class Produce, class Consume>
struct HookedToTheRight : ToTheRight {
  Produce produce;
  Consume consume;
  __device__ Stop operator()(const Group& group, const Deadline& deadline) const {
    const Leg share = share_of(message, group.id, group.count);
    return sendrecv_tiles<T>(group, table.at(right(), group.id), table.at(left(), group.id), share, share,
                             produce, consume, deadline);
  }
};

/// Gives the number of elements of a message, which is not whole units of any type, nor whole tiles.
constexpr uint64_t typed_elements = 10007;

/// \param T         the type that is sent
/// \param expected  expected(value) is the result for an element that was sent
template <class T, class From, class To, class Produce, class Consume, class Expected>
void test_hooks(const Rank& rank, const char* what, const std::vector<std::vector<From>>& data,
                const Produce& produce, const Consume& consume, const Expected& expected) {
  const uint64_t n = typed_elements;
  const auto transport = direct_rendezvous(rank.world, Rank::rings(2, 2, 1024));
  const OnDevice<From> in(data[size_t(rank.self)]);
  const OnDevice<To> out(std::vector<To>(n + 1));
  Leg leg;
  leg.in = in.data();
  leg.out = out.data();
  leg.bytes = n * sizeof(T);
  leg.elem = sizeof(T);
  rank.ready();
  launch(*transport, HookedToTheRight<T, Produce, Consume>{{transport->table(), leg}, produce, consume},
         {2, 128}, {rank.stream});
  rank.ended();
  const std::vector<To> got = to_host(out.data(), n + 1);
  const std::vector<From>& theirs = data[size_t(rank.left)];
  for (uint64_t at = 0; at <= n; ++at) {
    const To wanted = at < n ? expected(theirs[at]) : To{};  // the element after the end must not change
    if (std::memcmp(&got[at], &wanted, sizeof(To)) == 0) continue;
    std::printf("%s: element %llu is %g, not %g\n", what, (unsigned long long)at, double(widen(got[at])),
                double(widen(wanted)));
    ++failures;
    return;
  }
}

/// Sends values that each of the types can hold, together with their doubles. With one added they are
/// rounded.
template <class T>
void test_arithmetic(const Rank& rank, const char* what) {
  std::vector<std::vector<T>> data(size_t(rank.ranks));
  for (int from = 0; from < rank.ranks; ++from) {
    for (uint64_t at = 0; at < typed_elements; ++at) {
      data[size_t(from)].push_back(narrow<T>(float(value_at(uint64_t(from), at) % 8)));
    }
  }
  test_hooks<T, T, T>(rank, what, data, ScaleProduce<T>{2}, AddConsume<T>{1},
                      [](T value) { return narrow<T>(widen(value) * 2 + 1); });
}

/// Sends From as F and stores it as To. Some values are beyond the range of F.
template <class From, class F, class To>
void test_quantised(const Rank& rank, const char* what, float scale) {
  std::vector<std::vector<From>> data(size_t(rank.ranks));
  for (int from = 0; from < rank.ranks; ++from) {
    for (uint64_t at = 0; at < typed_elements; ++at) {
      data[size_t(from)].push_back(narrow<From>(float(value_at(uint64_t(from), at)) * 0.37f - 100));
    }
  }
  const OnDevice<float> by(std::vector<float>{scale});
  test_hooks<F, From, To>(rank, what, data, QuantizeFp8<From, F>{by.data()}, DequantizeFp8<To, F>{by.data()},
                          [scale](From value) {
                            const float sent = widen(narrow<F>(clamp_to<F>(float(widen(value)) / scale)));
                            return narrow<To>(sent * scale);
                          });
}

inline void test_types(const Rank& rank) {
  test_arithmetic<bf16>(rank, "hooks of bf16");
  test_arithmetic<fp8_e4m3>(rank, "hooks of fp8_e4m3");
  test_arithmetic<fp8_e5m2>(rank, "hooks of fp8_e5m2");
  test_quantised<float, fp8_e4m3, float>(rank, "floats as fp8_e4m3", 0.25f);
  test_quantised<bf16, fp8_e4m3, float>(rank, "bf16 as fp8_e4m3", 0.7f);
  test_quantised<f16, fp8_e5m2, bf16>(rank, "f16 as fp8_e5m2", 0.003f);
}

}  // namespace tiles_test
