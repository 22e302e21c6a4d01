#pragma once
// A codec says how elements are encoded in scratch: blocks of `block` elements share a scale, and each
// element is one byte. The encoded block k of a chunk begins where block k of the plain chunk would begin. It
// holds the encoded elements, and then the scale as f32. docs/decisions/0031-codecs.md says why.
//
// Host and device code include this header, so it is C++17 without CUDA headers.

#include <cstddef>
#include <cstdint>

#include "chorale/types.hpp"

namespace chorale {

/// Names a format of encoded elements. Each format is a row of codecs.def.
enum class CodecFormat : uint8_t {
#define CHORALE_CODEC(name, element, most, steps) name,
#include "chorale/codecs.def"
};

inline constexpr CodecFormat all_codec_formats[] = {
#define CHORALE_CODEC(name, element, most, steps) CodecFormat::name,
#include "chorale/codecs.def"
};
inline constexpr size_t codec_format_count = sizeof(all_codec_formats) / sizeof(all_codec_formats[0]);

/// Returns the word in plans and messages.
constexpr const char* codec_format_name(CodecFormat format) {
  switch (format) {
#define CHORALE_CODEC(name, element, most, steps) \
  case CodecFormat::name: \
    return #name;
#include "chorale/codecs.def"
  }
  return "?";
}

/// Returns by what part of the largest magnitude of a block one encoding changes an element at most: 1 /
/// steps.
constexpr uint32_t codec_steps(CodecFormat format) {
  switch (format) {
#define CHORALE_CODEC(name, element, most, steps) \
  case CodecFormat::name: \
    return steps;
#include "chorale/codecs.def"
  }
  return 1;
}

/// Says how the elements of an operand are encoded.
struct Codec {
  CodecFormat format = CodecFormat::fp8_e4m3;
  uint32_t block = 128;  ///< elements that share a scale: a power of two from least_block to most_block

  static constexpr uint32_t least_block = 32, most_block = 1024;
  constexpr bool is_valid() const {
    return size_t(format) < codec_format_count && block >= least_block && block <= most_block &&
           (block & (block - 1)) == 0;
  }
  /// Returns the bytes of an encoded block. The scale follows the elements.
  constexpr uint64_t block_bytes() const { return block + sizeof(float); }

  /// Returns the codec as a number that is not 0, for records of device programs. unpacked() of
  /// device/codec.hpp reads it.
  constexpr uint16_t packed() const { return uint16_t((block << 4) | (uint32_t(format) + 1)); }

  friend constexpr bool operator==(const Codec& a, const Codec& b) {
    return a.format == b.format && a.block == b.block;
  }
};

/// Returns whether elements of a type can be encoded: whether they are floats that are combined in f32.
constexpr bool has_codecs(DType type) {
  return type == DType::f32 || type == DType::f16 || type == DType::bf16;
}

static_assert(codec_format_count < 15 && Codec::most_block < 1 << 12, "Codec::packed() has 16 bits");

}  // namespace chorale
