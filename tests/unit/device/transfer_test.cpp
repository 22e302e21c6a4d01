// These tests compare the transfer loop with an oracle that works on one element at a time: all types,
// operations, sizes and group sizes.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ios>
#include <random>
#include <vector>

#include "chorale/combine.hpp"
#include "chorale/device.hpp"
#include "one_after_another.hpp"

namespace chorale {
namespace {

using Bytes = std::vector<char>;

template <class T>
T load(const Bytes& bytes, size_t element, size_t shift = 0) {
  T value;
  std::memcpy(&value, bytes.data() + shift + element * sizeof(T), sizeof(T));
  return value;
}

/// Returns random bytes of elements of T: any bits for integers; floats of moderate size, so that sums round
/// but stay meaningful.
template <class T>
Bytes random_data(std::mt19937& random, size_t bytes) {
  Bytes data(bytes);
  for (size_t element = 0; element < bytes / sizeof(T); ++element) {
    T value;
    if constexpr (std::is_integral_v<T>) {
      value = T(uint64_t(random()) << 32 | random());
    } else if constexpr (is_narrow_float<T>) {
      value = from_float<T>(std::uniform_real_distribution<float>(-20, 20)(random));
    } else {
      value = T(std::uniform_real_distribution<double>(-20, 20)(random));
    }
    std::memcpy(data.data() + element * sizeof(T), &value, sizeof(T));
  }
  return data;
}

/// Computes one element of the oracle, without the library's combine().
template <class T>
T reduce_scalar(ReduceOp op, const std::vector<T>& values, uint32_t average_over) {
  using A = Accumulator<T>;
  A sum = widen(values[0]);
  for (size_t index = 1; index < values.size(); ++index)
    sum = reference::combine<A>(op, sum, widen(values[index]));
  if (op == ReduceOp::avg && average_over > 1) {
    if constexpr (std::is_unsigned_v<A>) {
      sum = A(sum / uint64_t(average_over));
    } else if constexpr (std::is_integral_v<A>) {
      sum = A(int64_t(sum) / int64_t(average_over));
    } else {
      sum = A(sum / A(average_over));
    }
  }
  return narrow<T>(sum);
}

template <class T>
std::vector<uint64_t> sizes() {
  std::vector<uint64_t> result;
  for (uint64_t bytes = 0; bytes <= 200; bytes += sizeof(T)) result.push_back(bytes);
  for (const uint64_t bytes : {2048, 2056, 6000}) result.push_back(bytes);
  return result;
}

/// Reduces memory to memory with guard bytes, at odd addresses; and the packets of the same data to packets.
template <ReduceOp Op, class T>
void check_reduced(uint32_t threads) {
  std::mt19937 random(uint32_t(sizeof(T)) * 31 + uint32_t(Op));
  for (const uint64_t bytes : sizes<T>()) {
    const uint32_t others = uint32_t(bytes / sizeof(T)) % 4;
    std::vector<Bytes> data;
    std::vector<Mem> mems;
    std::vector<std::vector<Unit>> slots;
    std::vector<Packets<LL16>> packets;
    for (uint32_t source = 0; source <= others; ++source) data.push_back(random_data<T>(random, bytes));
    for (Bytes& source : data) {
      slots.emplace_back(packet_bytes<LL16>(bytes) / sizeof(Unit) + 1, Unit{});
      transfer_by(threads, bytes, Mem(source.data()), Packets<LL16>(slots.back().data(), 9));
      source.insert(source.begin(), 'x');  // moves the elements to an odd address
    }
    for (uint32_t other = 1; other <= others; ++other) {
      mems.emplace_back(data[other].data() + 1);
      packets.emplace_back(slots[other].data(), 9);
    }
    Bytes wanted(bytes);
    for (size_t element = 0; element < bytes / sizeof(T); ++element) {
      std::vector<T> values;
      for (const Bytes& source : data) values.push_back(load<T>(source, element, 1));
      const T value = reduce_scalar(Op, values, 3);
      std::memcpy(wanted.data() + element * sizeof(T), &value, sizeof(T));
    }

    Bytes got(bytes + 6, 'g');
    const Reduced<Op, T> from_memory{Mem(data[0].data() + 1), mems.data(), others, 3};
    transfer_by(threads, bytes, from_memory, Mem(got.data() + 3, bytes));
    ASSERT_EQ(Bytes(got.begin() + 3, got.end() - 3), wanted) << bytes << " bytes from memory";
    ASSERT_EQ(Bytes(got.begin(), got.begin() + 3), Bytes(3, 'g'));
    ASSERT_EQ(Bytes(got.end() - 3, got.end()), Bytes(3, 'g'));

    Bytes plain(bytes + 1, 'g');
    std::vector<Unit> own(slots[0].size()), away(slots[0].size());
    const Packets<LL16> remote[] = {Packets<LL16>(away.data(), 4)};
    const Reduced<Op, T, Mem, Packets<LL16>> from_packets{Mem(data[0].data() + 1), packets.data(), others, 3};
    transfer_by(threads, bytes, from_packets,
                Tee{Mem(plain.data()), Tee{Packets<LL16>(own.data(), 4), Many<Packets<LL16>>{remote, 1}}});
    ASSERT_EQ(Bytes(plain.begin(), plain.end() - 1), wanted) << bytes << " bytes from packets";
    ASSERT_EQ(plain.back(), 'g');
    for (std::vector<Unit>* sent : {&own, &away}) {
      Bytes unpacked(bytes);
      transfer_by(threads, bytes, Packets<LL16>(sent->data(), 4), Mem(unpacked.data()));
      ASSERT_EQ(unpacked, wanted) << bytes << " bytes through packets";
    }
  }
}

template <class T>
struct TransferOf : testing::Test {};
using ElementTypes = testing::Types<float, f16, bf16, double, int32_t, uint32_t, int64_t, uint8_t, int8_t,
                                    fp8_e4m3, fp8_e5m2, uint64_t>;
TYPED_TEST_SUITE(TransferOf, ElementTypes);

TYPED_TEST(TransferOf, Reductions) {
  for (const uint32_t threads : {1u, 3u}) {
    check_reduced<ReduceOp::sum, TypeParam>(threads);
    check_reduced<ReduceOp::min, TypeParam>(threads);
    check_reduced<ReduceOp::max, TypeParam>(threads);
    check_reduced<ReduceOp::prod, TypeParam>(threads);
    check_reduced<ReduceOp::avg, TypeParam>(threads);
  }
}

TYPED_TEST(TransferOf, SwitchReducesInRankOrderAndStoresToAll) {
  std::mt19937 random(5);
  for (const uint64_t bytes : sizes<TypeParam>()) {
    std::vector<Bytes> data;
    std::vector<char*> members;
    for (uint32_t rank = 0; rank < 3; ++rank) data.push_back(random_data<TypeParam>(random, bytes + 8));
    Bytes wanted(bytes);
    for (size_t element = 0; element < bytes / sizeof(TypeParam); ++element) {
      std::vector<TypeParam> values;
      for (const Bytes& source : data) values.push_back(load<TypeParam>(source, element, 8));
      const TypeParam value = reduce_scalar(ReduceOp::sum, values, 0);
      std::memcpy(wanted.data() + element * sizeof(TypeParam), &value, sizeof value);
    }
    for (Bytes& source : data) members.push_back(source.data());
    transfer_by(2, bytes, Multi<ReduceOp::sum, TypeParam>{members.data(), 3, 8},
                MultiStore{members.data(), 3, 8});
    for (const Bytes& source : data) ASSERT_EQ(Bytes(source.begin() + 8, source.end()), wanted);
  }
}

/// Compares the span code with the scalar conversions for all bit patterns, which include special values and
/// every rounding.
template <class T>
void check_all_bits() {
  constexpr uint32_t patterns = 1u << (8 * sizeof(T));
  std::vector<T> in(patterns), out(patterns);
  for (uint32_t bits = 0; bits < patterns; ++bits) in[bits].bits = decltype(in[bits].bits)(bits);
  std::mt19937 random(3);
  std::vector<T> other(patterns);
  for (T& value : other) value.bits = decltype(value.bits)(random());
  const Mem others[] = {Mem(other.data())};
  transfer(block_group(), patterns * sizeof(T), Reduced<ReduceOp::sum, T>{Mem(in.data()), others, 1},
           Mem(out.data()));
  for (uint32_t bits = 0; bits < patterns; ++bits) {
    ASSERT_EQ(out[bits].bits, narrow<T>(widen(in[bits]) + widen(other[bits])).bits) << std::hex << bits;
  }
  transfer(block_group(), patterns * sizeof(T), Reduced<ReduceOp::max, T>{Mem(in.data()), others, 1},
           Mem(out.data()));
  for (uint32_t bits = 0; bits < patterns; ++bits) {
    const float a = widen(in[bits]), b = widen(other[bits]);
    const float wanted = std::isnan(a) || std::isnan(b) ? NAN : a > b ? a : b;
    ASSERT_EQ(out[bits].bits, narrow<T>(wanted).bits) << std::hex << bits;
  }
}

TEST(Transfer, NarrowFloatsOfAllBits) {
  check_all_bits<f16>();
  check_all_bits<bf16>();
  check_all_bits<fp8_e4m3>();
  check_all_bits<fp8_e5m2>();
}

TEST(Transfer, KeepsTheOrderOfAddends) {
  // In any other order the small addends would survive, or the large ones would not cancel in time.
  for (const uint32_t threads : {1u, 2u}) {
    for (const uint64_t elements : {1, 7, 16, 1000}) {
      const std::vector<float> large(elements, 1e8f), one(elements, 1.0f), back(elements, -1e8f);
      const Mem order[] = {Mem(one.data()), Mem(back.data()), Mem(one.data())};
      const Mem other_order[] = {Mem(back.data()), Mem(one.data()), Mem(one.data())};
      std::vector<float> sum(elements);
      transfer_by(threads, elements * 4, Reduced<ReduceOp::sum, float>{Mem(large.data()), order, 3},
                  Mem(sum.data()));
      EXPECT_EQ(sum, std::vector<float>(elements, 1.0f));
      transfer_by(threads, elements * 4, Reduced<ReduceOp::sum, float>{Mem(large.data()), other_order, 3},
                  Mem(sum.data()));
      EXPECT_EQ(sum, std::vector<float>(elements, 2.0f));
    }
  }
}

TEST(Transfer, RoundsOnce) {
  // 2048 + 1 + 1 is 2050 in f16; rounding after each addend would stay at 2048.
  const f16 large = from_float<f16>(2048), one = from_float<f16>(1);
  const Mem others[] = {Mem(&one), Mem(&one)};
  f16 sum{};
  transfer(block_group(), 2, Reduced<ReduceOp::sum, f16>{Mem(&large), others, 2}, Mem(&sum));
  EXPECT_EQ(to_float(sum), 2050.0f);
}

TEST(Transfer, MayReduceInPlace) {
  std::vector<int32_t> mine(1000, 1), other(1000, 2);
  const Mem others[] = {Mem(other.data())};
  transfer(block_group(), 4000, Reduced<ReduceOp::sum, int32_t>{Mem(mine.data()), others, 1},
           Mem(mine.data()));
  EXPECT_EQ(mine, std::vector<int32_t>(1000, 3));
}

TEST(Transfer, CopiesToMemoryOfAnySizeAndPlace) {
  std::mt19937 random(1);
  for (const uint32_t threads : {1u, 3u}) {
    for (uint64_t bytes = 0; bytes < 300; ++bytes) {
      const Bytes from = random_data<uint8_t>(random, bytes + 3);
      Bytes one(bytes + 10, 'g'), two(bytes + 10, 'g');
      const Mem sinks[] = {Mem(one.data() + 5), Mem{}, Mem(two.data() + 2)};
      transfer_by(threads, bytes, Mem(from.data() + 3), Many<Mem>{sinks, 3});
      Bytes wanted(bytes + 10, 'g');
      std::copy(from.begin() + 3, from.end(), wanted.begin() + 5);
      ASSERT_EQ(one, wanted);
      std::fill(wanted.begin(), wanted.end(), 'g');
      std::copy(from.begin() + 3, from.end(), wanted.begin() + 2);
      ASSERT_EQ(two, wanted);
    }
  }
  const Bytes large = random_data<uint8_t>(random, 300007);
  Bytes copy(large.size() + 1, 'g');
  transfer(block_group(), large.size(), Mem(large.data()), Mem(copy.data()));
  EXPECT_EQ(copy.back(), 'g');
  copy.pop_back();
  EXPECT_EQ(copy, large);
}

TEST(Transfer, ValidEndsReadsAndWrites) {
  std::mt19937 random(2);
  for (const uint32_t threads : {1u, 2u}) {
    for (const uint64_t bytes : {0, 1, 15, 16, 17, 40, 64, 100, 4500}) {
      for (const uint64_t valid : {0, 1, 5, 16, 31, 33, 64, 4490, 9999}) {
        const uint64_t readable = std::min<uint64_t>(bytes, valid);
        // The source ends where its valid data end, so that a sanitizer sees a read beyond it.
        const Bytes from = random_data<uint8_t>(random, readable);
        Bytes wanted(bytes);
        std::copy(from.begin(), from.end(), wanted.begin());
        Bytes got(bytes, 'g');
        transfer_by(threads, bytes, Mem(from.data(), valid), Mem(got.data()));
        ASSERT_EQ(got, wanted) << bytes << " bytes, of which " << valid << " can be read";

        const Bytes all = random_data<uint8_t>(random, bytes);
        Bytes cut(bytes + 1, 'g');
        transfer_by(threads, bytes, Mem(all.data()), Mem(cut.data(), valid));
        Bytes wanted_cut(bytes + 1, 'g');
        std::copy(all.begin(), all.begin() + long(readable), wanted_cut.begin());
        ASSERT_EQ(cut, wanted_cut) << bytes << " bytes, of which " << valid << " can be written";

        // The data goes through packets, which always carry a whole unit: zeros where the source had nothing.
        std::vector<Unit> slots(packet_bytes<LL8>(bytes) / sizeof(Unit) + 1);
        std::vector<Unit> forwarded(slots.size());
        const Packets<LL8> next[] = {Packets<LL8>(forwarded.data(), 3)};
        transfer_by(threads, bytes, Mem(from.data(), valid), Packets<LL8>(slots.data(), 2));
        transfer_by(threads, bytes, Packets<LL8>(slots.data(), 2), Many<Packets<LL8>>{next, 1});
        Unit last{};
        if (bytes != 0) {
          ASSERT_TRUE(
              try_read_unit(reinterpret_cast<LL8*>(forwarded.data()) + (units_of(bytes) - 1) * 4, 3, last));
        }
        std::fill(got.begin(), got.end(), 'g');
        transfer_by(threads, bytes, Packets<LL8>(forwarded.data(), 3), Mem(got.data()));
        ASSERT_EQ(got, wanted);
      }
    }
  }
}

TEST(Transfer, APaddedPacketEndsInZeros) {
  const char data[5] = {1, 2, 3, 4, 5};
  alignas(16) LL16 slots[2] = {};
  transfer(block_group(), 5, Mem(data), Packets<LL16>(slots, 1));
  Unit unit;
  ASSERT_TRUE(try_read_unit(slots, 1, unit));
  char wanted[16] = {1, 2, 3, 4, 5};
  EXPECT_EQ(std::memcmp(&unit, wanted, 16), 0);
}

TEST(Transfer, NoMemoryReadsAsZeros) {
  Bytes got(5000, 'g');
  transfer(block_group(), got.size(), Mem{}, Mem(got.data()));
  EXPECT_EQ(got, Bytes(5000));
}

}  // namespace
}  // namespace chorale
