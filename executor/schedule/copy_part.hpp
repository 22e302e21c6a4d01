/// \file
/// In these functions the threads of a group do a copy. CUDA and the CPU share this source.
#pragma once

#include <cstdint>

#include "chorale/device/engine.hpp"
#include "chorale/device/group.hpp"
#include "copy.hpp"

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
CHORALE_FN void copy_words(const Group& group, const Copy& copy) {
  constexpr uint32_t at_once = 8;
  constexpr uint64_t width = sizeof(Word);
  const uint64_t words = copy.bytes / width;
  if (words == 0) return;
  WordPlace read(group, words), write = read;
  while (read.row < copy.rows) {
    Word held[at_once];
    for (uint32_t index = 0; index < at_once; ++index) {
      if (read.row < copy.rows)
        held[index] =
            *reinterpret_cast<const Word*>(copy.from + read.row * copy.from_pitch + read.column * width);
      read.next();
    }
    for (uint32_t index = 0; index < at_once; ++index) {
      if (write.row < copy.rows)
        *reinterpret_cast<Word*>(copy.to + write.row * copy.to_pitch + write.column * width) = held[index];
      write.next();
    }
  }
}

/// Copies all rows in the widest words that the addresses allow, then the remaining bytes. All threads of the
/// group call it.
CHORALE_FN void copy_by_words(const Group& group, const Copy& copy) {
  uint64_t places = reinterpret_cast<uint64_t>(copy.to) | reinterpret_cast<uint64_t>(copy.from);
  if (copy.rows > 1) places |= copy.to_pitch | copy.from_pitch;
  uint32_t width = unit_bytes;
  while (places % width != 0) width /= 2;
  switch (width) {
    case 16:
      copy_words<Unit>(group, copy);
      break;
    case 8:
      copy_words<uint64_t>(group, copy);
      break;
    case 4:
      copy_words<uint32_t>(group, copy);
      break;
    case 2:
      copy_words<uint16_t>(group, copy);
      break;
    default:
      copy_words<uint8_t>(group, copy);
  }
  const uint64_t whole = copy.bytes / width * width;
  if (whole == copy.bytes) return;
  Copy rest = copy;
  rest.to += whole;
  rest.from += whole;
  rest.bytes -= whole;
  copy_words<uint8_t>(group, rest);
}

/// Copies bytes begin .. end-1 of all rows, which count as one message. All threads of the group call it.
CHORALE_FN void copy_part(const Group& group, const Copy& copy, uint64_t begin, uint64_t end) {
  // The bytes are a part of a row, then whole rows, then a part of a row.
  while (begin < end) {
    const uint64_t row = begin / copy.bytes, column = begin % copy.bytes, left = end - begin;
    Copy part = copy;
    part.to += row * copy.to_pitch + column;
    part.from += row * copy.from_pitch + column;
    part.rows = 1;
    if (column == 0 && left >= copy.bytes) {
      part.rows = left / copy.bytes;
    } else {
      const uint64_t here = copy.bytes - column;
      part.bytes = here < left ? here : left;
    }
    copy_by_words(group, part);
    begin += part.bytes * part.rows;
  }
}

}  // namespace chorale::schedule_run
