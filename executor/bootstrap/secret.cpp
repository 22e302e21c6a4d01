#include "secret.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>

#include "chorale/error.hpp"
#include "executor/system/shared_memory.hpp"

namespace chorale::bootstrap {
namespace {

constexpr std::string_view file_prefix = "file:";
constexpr std::string_view none = "none";

/// This text goes into the key, so that another program gets a different key from the same secret.
constexpr std::string_view use_of_key = "chorale: who may join a world";

[[noreturn]] void throw_system_error(const std::string& path, int error) {
  throw UsageError(fmt::format("the secret in '{}' cannot be read: {}; every rank needs the file, or {}",
                               path, std::generic_category().message(error), how_to_make_a_secret));
}

void require_private(const std::string& path, const struct stat& file) {
  if (!S_ISREG(file.st_mode))
    throw UsageError(fmt::format("the secret in '{}': it is not a plain file", path));
  if ((file.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    throw UsageError(
        fmt::format("'{}' has a secret, but users other than its owner may open it (mode {:o}): chmod 600 {}",
                    path, file.st_mode & 07777, path));
  }
}

/// Removes the end of line that an editor or `echo` leaves after a secret.
std::string_view without_line_end(std::string_view text) {
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

std::string read_secret_file(const std::string& path) {
  // O_NONBLOCK keeps open() from waiting for the writer of a pipe.
  const system::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) throw_system_error(path, errno);
  struct stat found {};
  if (::fstat(file.get(), &found) != 0) throw_system_error(path, errno);
  require_private(path, found);
  std::string text(Secret::most_bytes + 2, '\0');
  size_t length = 0;
  for (ssize_t got = 1; got > 0 && length < text.size(); length += size_t(got)) {
    got = ::read(file.get(), text.data() + length, text.size() - length);
    if (got < 0 && errno == EINTR) got = 0;
    if (got < 0) throw_system_error(path, errno);
  }
  std::string secret(without_line_end(std::string_view(text).substr(0, length)));
  sodium_memzero(text.data(), text.size());
  if (secret.empty()) {
    throw UsageError(
        fmt::format("the secret in '{}' is empty: (umask 077; openssl rand -hex 32 > {})", path, path));
  }
  return secret;
}

void start_sodium() {
  if (sodium_init() < 0)
    throw UsageError("libsodium cannot start: it gets no random numbers from this machine");
}

}  // namespace

Secret::Secret() : Secret(std::string()) {}

Secret::Secret(const std::string& text) : letters_(text.size()) {
  start_sodium();
  crypto_generichash(key_.data(), key_.size(), reinterpret_cast<const unsigned char*>(text.data()),
                     text.size(), reinterpret_cast<const unsigned char*>(use_of_key.data()),
                     use_of_key.size());
}

Secret::~Secret() { sodium_memzero(key_.data(), key_.size()); }

Secret Secret::read(const std::string& setting) {
  if (setting.empty() || setting == none) return Secret();
  check_secret_setting(setting);
  if (!setting.starts_with(file_prefix)) return Secret(setting);
  const std::string path = setting.substr(file_prefix.size());
  std::string text = read_secret_file(path);
  const auto too_long = text.size() > most_bytes;
  Secret secret = too_long ? Secret() : Secret(text);
  sodium_memzero(text.data(), text.size());
  if (too_long)
    throw UsageError(fmt::format("the secret in '{}' is longer than {} bytes; {}", path, most_bytes,
                                 how_to_make_a_secret));
  return secret;
}

void check_secret_setting(const std::string& setting) {
  if (setting.empty()) throw UsageError(fmt::format("the secret is empty; {}", how_to_make_a_secret));
  if (setting.starts_with(file_prefix)) {
    if (!setting.starts_with("file:/"))
      throw UsageError(fmt::format("'{}' is not an absolute path of a file: write file:/path", setting));
    return;
  }
  if (setting.size() > Secret::most_bytes) {
    throw UsageError(fmt::format("the secret has {} bytes, but at most {} are allowed; {}", setting.size(),
                                 Secret::most_bytes, how_to_make_a_secret));
  }
}

std::string secret_setting_text(const std::string& setting) {
  if (setting.empty() || setting == none) return std::string(none);
  return setting.starts_with(file_prefix) ? "set, by " + setting : "set";
}

void require_private_file(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) throw_system_error(path, errno);
  require_private(path, found);
}

}  // namespace chorale::bootstrap
