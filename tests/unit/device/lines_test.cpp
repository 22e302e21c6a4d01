// These tests check the lines of LL128, and transfers between them and every other kind of end.

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "chorale/device.hpp"
#include "one_after_another.hpp"

namespace chorale {
namespace {

using Lines = std::vector<LL128>;

Lines lines_for(uint64_t bytes) { return Lines(packet_bytes<LL128>(bytes) / sizeof(LL128) + 1, LL128{}); }

/// Returns floats that add without rounding: first, first + 1, ...
std::vector<float> counting(uint64_t bytes, float first) {
  std::vector<float> data(bytes / sizeof(float));
  std::iota(data.begin(), data.end(), first);
  return data;
}

TEST(Lines, TakeALineForEverySevenUnits) {
  EXPECT_EQ(packet_bytes<LL128>(0), 0u);
  EXPECT_EQ(packet_bytes<LL128>(1), 128u);
  EXPECT_EQ(packet_bytes<LL128>(112), 128u);
  EXPECT_EQ(packet_bytes<LL128>(113), 256u);
  EXPECT_EQ(packet_offset<LL128>(224), 256u);
  EXPECT_EQ(packet_bytes<LL16>(17), 64u);
  EXPECT_EQ(packet_offset<LL8>(48), 96u);
  // The scratch that is reserved for other forms also holds whole lines.
  for (uint64_t bytes = 112; bytes < 100000; bytes += 112) EXPECT_LE(packet_bytes<LL128>(bytes), 2 * bytes);
}

TEST(Lines, AreSevenUnitsAndTheFlag) {
  char data[120];
  std::iota(data, data + sizeof data, char(1));
  Lines lines = lines_for(sizeof data);
  std::memset(lines.data(), 0x55, lines.size() * sizeof(LL128));
  transfer(block_group(), sizeof data, Mem(data), Packets<LL128>(lines.data(), 9));
  EXPECT_EQ(std::memcmp(lines[0].data, data, 112), 0);
  EXPECT_EQ(lines[0].flag, 9u);
  EXPECT_EQ(std::memcmp(lines[1].data, data + 112, 8), 0);
  EXPECT_EQ(lines[1].flag, 9u);
  for (size_t at = 8; at < 112; ++at) ASSERT_EQ(reinterpret_cast<const char*>(lines[1].data)[at], 0) << at;
  EXPECT_EQ(lines[2].flag, 0x5555555555555555u) << "nothing behind the last line is written";
}

/// Counts how often each unit of a step's data is moved, by a block of `threads` threads that each take N
/// lines at a time. The data has `bytes` bytes, and its packets have room for `padded` bytes.
template <uint32_t N>
std::vector<int> visits(uint32_t threads, uint64_t padded, uint64_t bytes) {
  std::vector<int> seen(packet_bytes<LL128>(padded) / unit_bytes);
  const uint64_t lines = packet_bytes<LL128>(padded) / sizeof(LL128), stride = threads / 8;
  for (uint32_t thread = 0; thread < threads; ++thread) {
    for (uint64_t first = thread / 32 * 4; first < lines; first += N * stride) {
      const Turn turn = detail::turn_of_lines<true, N, true>(thread % 32, stride, first, 0, lines, bytes);
      EXPECT_LE(turn.n, turn.lines);
      for (uint32_t index = 0; index < turn.n; ++index) ++seen[turn.unit + index * turn.stride];
    }
  }
  return seen;
}

TEST(Lines, AreMovedOnceEachAndNotPastTheEndOfTheData) {
  // The last chunk of a message may be much shorter than the others, so that whole rounds of a block's lines
  // are padding.
  for (const uint32_t threads : {32u, 128u, 512u}) {
    for (const uint64_t padded : {112, 1120, 16464, 65632, 262192}) {
      for (const uint64_t bytes :
           {uint64_t{16}, padded / 1600 * 16 + 16, padded / 320 * 128, padded / 32 * 16, padded}) {
        for (const std::vector<int>& seen :
             {visits<1>(threads, padded, bytes), visits<2>(threads, padded, bytes),
              visits<4>(threads, padded, bytes)}) {
          for (uint64_t unit = 0; unit < seen.size(); ++unit)
            ASSERT_EQ(seen[unit], unit < bytes / unit_bytes ? 1 : 0)
                << "unit " << unit << " of " << bytes << " bytes in " << padded << ", " << threads
                << " threads";
        }
      }
    }
  }
}

TEST(Lines, GoBetweenAllEnds) {
  for (const uint32_t threads : {1u, 3u}) {
    for (const uint64_t bytes : {4, 16, 100, 112, 116, 224, 336, 340, 2016, 2020, 4096, 10000}) {
      const std::vector<float> first = counting(bytes, 1), second = counting(bytes, 1000);
      Lines line_first = lines_for(bytes), line_second = lines_for(bytes), sum_lines = lines_for(bytes);
      std::vector<Unit> packets(packet_bytes<LL16>(bytes) / sizeof(Unit)), sum_packets(packets.size());
      transfer_by(threads, bytes, Mem(first.data()), Packets<LL128>(line_first.data(), 3));
      // The data goes over packets of another form, and back to lines.
      transfer_by(threads, bytes, Mem(second.data()), Packets<LL16>(packets.data(), 5));
      transfer_by(threads, bytes, Packets<LL16>(packets.data(), 5), Packets<LL128>(line_second.data(), 4));

      std::vector<float> sum(first.size()), wanted(first.size());
      for (size_t at = 0; at < wanted.size(); ++at) wanted[at] = first[at] + second[at] + second[at];
      const Packets<LL128> others[] = {Packets<LL128>(line_second.data(), 4),
                                       Packets<LL128>(line_second.data(), 4)};
      const Packets<LL16> remote[] = {Packets<LL16>(sum_packets.data(), 7)};
      transfer_by(
          threads, bytes,
          Reduced<ReduceOp::sum, float, Packets<LL128>, Packets<LL128>>{Packets<LL128>(line_first.data(), 3),
                                                                        others, 2},
          Tee{Mem(sum.data()), Tee{Packets<LL128>(sum_lines.data(), 6), Many<Packets<LL16>>{remote, 1}}});
      EXPECT_EQ(sum, wanted) << bytes;
      std::fill(sum.begin(), sum.end(), 0.0f);
      transfer_by(threads, bytes, Packets<LL16>(sum_packets.data(), 7), Mem(sum.data()));
      EXPECT_EQ(sum, wanted) << bytes;
      std::fill(sum.begin(), sum.end(), 0.0f);
      transfer_by(threads, bytes, Packets<LL128>(sum_lines.data(), 6), Mem(sum.data()));
      EXPECT_EQ(sum, wanted) << bytes;
      // The reduction has memory on both sides, and lines after it.
      const Mem mems[] = {Mem(second.data()), Mem(second.data())};
      Lines again = lines_for(bytes);
      transfer_by(threads, bytes, Reduced<ReduceOp::sum, float>{Mem(first.data()), mems, 2},
                  Packets<LL128>(again.data(), 6));
      EXPECT_EQ(std::memcmp(again.data(), sum_lines.data(), again.size() * sizeof(LL128)), 0) << bytes;
    }
  }
}

}  // namespace
}  // namespace chorale
