/// \file
/// These functions encode and decode the frames of a rendezvous. They do not use sockets.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace chorale::bootstrap {

/// Names the kinds of frames, by their letter on the wire.
enum class FrameKind : char {
  hello = 'h',    ///< to the server: encode(Hello)
  gave_up = 'g',  ///< to the server, from a rank that has a seat: why it gives up
  waiting = 'w',  ///< from the server: the hello has arrived; the text names the missing ranks
  joined = 'j',   ///< from the server: the encoded membership
  ready = 'r',    ///< to the server, from the lowest rank of another host: the last frame of its connection
  failed = 'f'    ///< from the server: a letter for the reason, then the error message
};

struct Frame {
  FrameKind kind;
  std::string text;
};

/// Every message begins with "chorale/", eight hexadecimal digits for the length of the rest, and a letter.
/// This head is the same in all versions of Chorale, so that versions can tell each other that they differ.
inline constexpr std::string_view magic = "chorale/";
inline constexpr size_t length_digits = 8;
inline constexpr size_t head_bytes = magic.size() + length_digits;

/// Returns the head of a message.
/// \param bytes  the length of the letter and the bytes after it
std::string head_of(size_t bytes, char letter);

std::string encode(const Frame& frame);

/// Extracts frames from a stream of bytes.
class FrameReader {
 public:
  /// The reader refuses longer frames before it stores their bytes.
  static constexpr size_t most_bytes = size_t(1) << 20;
  /// These limits are for frames to the server, from a rank that has not sent a hello yet and from one with a
  /// seat.
  static constexpr size_t most_hello_bytes = 4096, most_rank_bytes = size_t(64) << 10;

  void limit(size_t bytes) { limit_ = bytes; }
  void add(std::string_view bytes) { incoming_.append(bytes); }

  /// Returns the next frame if it has arrived completely; none when broken().
  std::optional<Frame> next();

  /// Returns whether data arrived that is not a frame, or a frame that is too long. Then the reader reads no
  /// more.
  bool broken() const { return broken_; }
  size_t held_bytes() const { return incoming_.size(); }

 private:
  size_t limit_ = most_bytes;
  std::string incoming_;
  bool broken_ = false;
};

}  // namespace chorale::bootstrap
