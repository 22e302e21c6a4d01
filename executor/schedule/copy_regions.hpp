/// \file
/// In these functions the threads of a group copy strided regions. CUDA and the CPU share this source.
#pragma once

#include <cstdint>

#include "chorale/device/engine.hpp"
#include "chorale/device/group.hpp"
#include "strided_region.hpp"

namespace chorale::schedule_run {

/// Maps a thread to its words in strided rows without a division per word.
struct WordPlace {
  uint64_t row, column, words, rows_on, columns_on;

  CHORALE_FN WordPlace(const Group& group, uint64_t words)
      : row(group.rank / words),
        column(group.rank % words),
        words(words),
        rows_on(group.size / words),
        columns_on(group.size % words) {}

  CHORALE_FN void next() {
    row += rows_on;
    column += columns_on;
    if (column >= words) {
      column -= words;
      ++row;
    }
  }
};

/// Copies the whole words of all rows. Thread w % size copies word w, so neighbouring threads copy
/// neighbouring words, whatever the length of the rows. Addresses and pitches are multiples of the word.
template <class Word>
CHORALE_FN void copy_words(const Group& group, const StridedRegion& region) {
  constexpr uint32_t at_once = 8;
  constexpr uint64_t width = sizeof(Word);
  const uint64_t words = region.bytes / width;
  if (words == 0) return;
  WordPlace read(group, words), write = read;
  while (read.row < region.rows) {
    Word held[at_once];
    for (uint32_t index = 0; index < at_once; ++index) {
      if (read.row < region.rows)
        held[index] =
            *reinterpret_cast<const Word*>(region.from + read.row * region.from_pitch + read.column * width);
      read.next();
    }
    for (uint32_t index = 0; index < at_once; ++index) {
      if (write.row < region.rows)
        *reinterpret_cast<Word*>(region.to + write.row * region.to_pitch + write.column * width) =
            held[index];
      write.next();
    }
  }
}

/// Copies all rows in the widest words that the addresses allow, then the remaining bytes. All threads of the
/// group call it.
CHORALE_FN void copy_by_words(const Group& group, const StridedRegion& region) {
  uint64_t places = region.to | region.from;
  if (region.rows > 1) places |= region.to_pitch | region.from_pitch;
  uint32_t width = unit_bytes;
  while (places % width != 0) width /= 2;
  switch (width) {
    case 16:
      copy_words<Unit>(group, region);
      break;
    case 8:
      copy_words<uint64_t>(group, region);
      break;
    case 4:
      copy_words<uint32_t>(group, region);
      break;
    case 2:
      copy_words<uint16_t>(group, region);
      break;
    default:
      copy_words<uint8_t>(group, region);
  }
  const uint64_t whole = region.bytes / width * width;
  if (whole == region.bytes) return;
  StridedRegion rest = region;
  rest.to += whole;
  rest.from += whole;
  rest.bytes -= whole;
  copy_words<uint8_t>(group, rest);
}

/// Copies all rows. All threads of the group call it.
#if defined(__CUDACC__)
/// It is not inlined; otherwise each kind of link would have a copy of it, and all of them would take its
/// registers.
__device__ __noinline__ inline void copy_rows(const Group& group, const StridedRegion& region) {
  copy_by_words(group, region);
}
#else
inline void copy_rows(const Group& group, const StridedRegion& region) {
  for (uint64_t row = 0; row < region.rows; ++row) {
    transfer(group, region.bytes, Mem(reinterpret_cast<const void*>(region.from + row * region.from_pitch)),
             Mem(reinterpret_cast<void*>(region.to + row * region.to_pitch)));
  }
}
#endif

/// Copies bytes begin .. end-1 of a message. All threads of the group call it.
/// \param to, from added to the addresses of the strided regions
CHORALE_FN void copy_regions(const Group& group, const StridedRegion* regions, uint32_t count, uint64_t begin,
                             uint64_t end, uint64_t to, uint64_t from) {
  // Find the last strided region that begins at or before `begin`.
  uint32_t at = 0;
  for (uint32_t above = count; at + 1 < above;) {
    const uint32_t middle = at + (above - at) / 2;
    (regions[middle].begin <= begin ? at : above) = middle;
  }
  for (; at < count && regions[at].begin < end; ++at) {
    const StridedRegion region = regions[at];
    const uint64_t bytes = region.bytes * region.rows;
    uint64_t first = begin > region.begin ? begin - region.begin : 0;
    const uint64_t last = end - region.begin < bytes ? end - region.begin : bytes;
    // The bytes are a part of a row, then whole rows, then a part of a row.
    while (first < last) {
      const uint64_t row = first / region.bytes, column = first % region.bytes, left = last - first;
      StridedRegion part = region;
      part.to += to + row * region.to_pitch + column;
      part.from += from + row * region.from_pitch + column;
      part.rows = 1;
      if (column == 0 && left >= region.bytes) {
        part.rows = left / region.bytes;
      } else {
        const uint64_t here = region.bytes - column;
        part.bytes = here < left ? here : left;
      }
      copy_rows(group, part);
      first += part.bytes * part.rows;
    }
  }
}

}  // namespace chorale::schedule_run
