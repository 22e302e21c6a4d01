/// \file
/// Frames of a rendezvous become bytes here, and back. Nothing here knows of sockets.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace chorale::net {

/// The letters are those on the wire.
enum class FrameKind : char {
  hello = 'h',    ///< to rank 0: encode(Hello)
  gave_up = 'g',  ///< to rank 0, from a rank that has its seat: why
  waiting = 'w',  ///< from rank 0: heard; the text names the ranks that are missing
  joined = 'j',   ///< from rank 0: a Membership
  ready = 'r',    ///< to rank 0, from the lowest rank of another host: the last frame of its connection
  failed = 'f'    ///< from rank 0: a letter for the reason, then the message
};

struct Frame {
  FrameKind kind;
  std::string text;
};

/// Every message begins with "chorale/", eight hexadecimal digits for the length of what follows them, and a
/// letter. This is the same for all versions of Chorale, so that they can tell each other that they differ.
inline constexpr std::string_view magic = "chorale/";
inline constexpr size_t length_digits = 8;
inline constexpr size_t head_bytes = magic.size() + length_digits;

/// Makes that beginning of a message.
/// \param bytes  the length of the letter and of what follows it
std::string head_of(size_t bytes, char letter);

std::string encode(const Frame& frame);

/// Takes frames out of a stream of bytes.
class FrameReader {
 public:
  /// The reader refuses longer frames before it keeps their bytes.
  static constexpr size_t most_bytes = size_t(1) << 20;
  /// A frame to rank 0 is at most this long: from a rank that has not said hello yet, and from one that has
  /// its seat.
  static constexpr size_t most_hello_bytes = 4096, most_rank_bytes = size_t(64) << 10;

  void limit(size_t bytes) { limit_ = bytes; }
  void add(std::string_view bytes) { incoming_.append(bytes); }

  /// Returns the next frame, if all of it has come; none when broken().
  std::optional<Frame> next();

  /// Returns whether something came that is no frame, or a frame that is too long. Nothing more is read then.
  bool broken() const { return broken_; }
  size_t held_bytes() const { return incoming_.size(); }

 private:
  size_t limit_ = most_bytes;
  std::string incoming_;
  bool broken_ = false;
};

}  // namespace chorale::net
