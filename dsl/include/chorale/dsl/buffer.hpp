#pragma once
/// \file
/// Programs name the buffers of a rank, and the chunks in them, with the types of this header.

#include <concepts>
#include <cstdint>
#include <optional>

#include "chorale/dsl/common.hpp"

namespace chorale::dsl {

/// Names `size` chunks of a buffer of a rank, from chunk `index` on. You get one by slicing a buffer. You may
/// also make one by hand; the call that uses it then checks it.
/// Source: MSCCL++ Chunk(rank, buffer, index, size).
struct Chunk {
  Chunk(int64_t rank, BufferKind buffer, int64_t index, int64_t size)
      : rank(rank), buffer(buffer), index(index), size(size) {}

  /// Returns the same chunks, with their elements encoded: one byte each, and a scale for each block of them.
  ///
  ///   scratch[1].encoded({.format = CodecFormat::int8, .block = 64})
  ///   becomes {"type":"s","index":1,"size":1,"codec":0}
  ///
  /// An operation that writes encoded chunks encodes, and one that reads them decodes. Between chunks with
  /// one codec a copy copies the encoded bytes. The chunks are in scratch, and only copy, put, get and reduce
  /// take them, over memory channels. The elements of a message are then f32, f16 or bf16.
  Chunk encoded(const Codec&) const;

  int64_t rank;
  BufferKind buffer;
  int64_t index, size;
  std::optional<Codec> codec;

 private:
  friend class Recording;
  friend class BaseBuffer;
  uint64_t owner_ = 0;     // number of its recording; 0: made by hand
  bool poisoned_ = false;  // the call that made it has reported an error
};

/// Names a slice: `buffer[{a, b}]` is chunks a to b - 1, `buffer[i]` is chunk i. A Slice records the author's
/// line, because operator[] cannot do so before C++23.
struct Slice {
  template <std::integral Number>
  requires(!std::same_as<Number, bool>) Slice(Number index, Here at = Here::current())
      : start(static_cast<int64_t>(index)), stop(start + 1), at(at) {}
  template <std::integral First, std::integral Last>
  Slice(First start, Last stop, Here at = Here::current())
      : start(static_cast<int64_t>(start)), stop(static_cast<int64_t>(stop)), at(at) {}

  int64_t start, stop;
  Here at;
};

/// Names consecutive chunks of one rank's input, output or scratch. You get it from Rank or Buffer.
/// Source: MSCCL++ BaseBuffer.
class BaseBuffer {
 public:
  /// Returns chunks [start, stop) of this buffer.
  ///
  ///   input[{2, 4}]   of rank 1 becomes {"type":"i","index":2,"size":2}
  ///
  /// It refuses slices that are negative, reversed, empty, or past the end. The result is then a chunk that
  /// every call ignores.
  Chunk operator[](Slice) const;
  /// Returns the same chunks as operator[].
  Chunk slice(int64_t start, int64_t stop, Here at = Here::current()) const;

  int64_t rank() const { return rank_; }
  BufferKind kind() const { return kind_; }
  int64_t offset() const { return offset_; }  ///< first chunk; not 0 for most scratch buffers
  int64_t size() const { return size_; }      ///< in chunks

 protected:
  friend class Rank;
  BaseBuffer(Recording* recording, int64_t rank, BufferKind kind, int64_t offset, int64_t size, bool poisoned)
      : recording_(recording), rank_(rank), kind_(kind), offset_(offset), size_(size), poisoned_(poisoned) {}

  Recording* recording_;
  int64_t rank_;
  BufferKind kind_;
  int64_t offset_, size_;
  bool poisoned_;
};

/// Reserves the next `size` chunks of one rank's scratch, for the whole program.
///
/// All scratch buffers of a rank share one allocation, in the order of their creation. The plan has only its
/// size: "scratch_chunks". `size` is 1 to 2^32, and the sizes of a rank add up to at most 2^32.
/// Source: MSCCL++ Buffer(rank, size).
class Buffer : public BaseBuffer {
 public:
  Buffer(Program&, int64_t rank, int64_t size, Here at = Here::current());
};

}  // namespace chorale::dsl
