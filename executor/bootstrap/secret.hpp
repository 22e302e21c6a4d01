/// \file
/// Ranks of a world authenticate each other with a secret.
#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace chorale::net {

/// Holds the key that is made of a secret, and wipes it in the end. The secret itself is not kept.
class Secret {
 public:
  static constexpr size_t key_bytes = 32;
  using Key = std::array<unsigned char, key_bytes>;

  static constexpr size_t most_bytes = 4096;
  /// A text of fewer letters may be guessed by somebody who has heard a greeting.
  static constexpr size_t short_letters = 16;

  /// Makes a key of no secret at all, which everybody can.
  Secret();
  ~Secret();
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;

  /// Reads a setting `secret`: "none" or nothing for none, "file:/path", or the text itself.
  /// \throws UsageError with the remedy, if there is no such file, if others than its owner can read it, or
  ///         if the secret is too long or empty. No message shows a secret
  static Secret read(const std::string& setting);

  bool given() const { return letters_ > 0; }
  bool is_short() const { return given() && letters_ < short_letters; }
  const Key& key() const { return key_; }

 private:
  explicit Secret(const std::string& text);

  Key key_;
  size_t letters_ = 0;
};

/// Checks a setting `secret` without opening its file.
/// \throws UsageError
void check_secret_setting(const std::string& setting);

/// Shows a setting `secret` without the secret: "none", "set" or "set, by file:/path".
std::string secret_setting_text(const std::string& setting);

/// Refuses a file that others than its owner can read or write, because it holds a secret.
/// \throws UsageError
void require_private_file(const std::string& path);

/// Says how to make a secret, for messages.
inline constexpr const char* how_to_make_a_secret =
    "make a secret once and give it to all ranks: export CHORALE_SECRET=$(openssl rand -hex 32)";

}  // namespace chorale::net
