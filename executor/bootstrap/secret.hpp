/// \file
/// A Secret authenticates the ranks of a world to each other.
#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace chorale::bootstrap {

/// Holds the key that is derived from a secret. The destructor wipes the key. The secret itself is not
/// stored.
class Secret {
 public:
  static constexpr size_t key_bytes = 32;
  using Key = std::array<unsigned char, key_bytes>;

  static constexpr size_t most_bytes = 4096;
  /// Somebody who has recorded a greeting may guess a secret of fewer letters.
  static constexpr size_t short_letters = 16;

  /// Makes the key for no secret. Anyone can make this key.
  Secret();
  ~Secret();
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;

  /// Reads the setting `secret`, which is "none" or empty for no secret, "file:/path", or the secret itself.
  /// \throws UsageError, with the remedy, if there is no such file, if users other than its owner can read
  ///         it, or if the secret is too long or empty. No message shows a secret
  static Secret read(const std::string& setting);

  bool given() const { return letters_ > 0; }
  bool is_short() const { return given() && letters_ < short_letters; }
  const Key& key() const { return key_; }

 private:
  explicit Secret(const std::string& text);

  Key key_;
  size_t letters_ = 0;
};

/// Checks the setting `secret` without opening its file.
/// \throws UsageError
void check_secret_setting(const std::string& setting);

/// Returns a text for the setting `secret` that does not show the secret: "none", "set" or "set, by
/// file:/path".
std::string secret_setting_text(const std::string& setting);

/// Checks that only its owner can read or write a file that holds a secret.
/// \throws UsageError
void require_private_file(const std::string& path);

/// Messages about secrets end with this remedy.
inline constexpr const char* how_to_make_a_secret =
    "make a secret once and give it to all ranks: export CHORALE_SECRET=$(openssl rand -hex 32)";

}  // namespace chorale::bootstrap
