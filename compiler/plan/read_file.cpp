#include "chorale/read_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string_view>

namespace chorale {
namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw std::runtime_error("cannot read " + name + ": " + why);
}

/// Closes the file descriptor of open().
struct Opened {
  int file;
  ~Opened() { ::close(file); }
};

bool is_device(const struct stat& found) { return S_ISCHR(found.st_mode) || S_ISBLK(found.st_mode); }

/// Some editors write these bytes at the beginning of UTF-8 text.
constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

/// Reads until the end and leaves out a byte order mark. `size` is what the file reports; the kernel's own
/// files report 0.
std::string drain(int file, const std::string& name, uint64_t size, uint64_t most_bytes) {
  constexpr size_t part_bytes = 65536;
  std::string text;
  size_t got = 0;
  for (;;) {
    // It asks for one byte more than expected, so that it finds the end without growing the buffer.
    if (got == text.size()) text.resize(got + (got < size ? size_t(size) - got + 1 : part_bytes));
    const ssize_t part = ::read(file, text.data() + got, text.size() - got);
    if (part < 0 && errno == EINTR) continue;
    if (part < 0) refuse(name, std::strerror(errno));
    got += size_t(part);
    if (got > most_bytes) refuse(name, "it is larger than " + std::to_string(most_bytes) + " bytes");
    if (part == 0) break;
  }
  text.resize(got);
  if (text.starts_with(byte_order_mark)) text.erase(0, byte_order_mark.size());
  return text;
}

std::string read(const std::string& path, bool plain, uint64_t most_bytes) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) refuse(path, std::strerror(errno));
  if (S_ISDIR(found.st_mode)) refuse(path, "it is a folder");
  const std::string expected = plain ? "a plain file" : "a file or a pipe";
  if (is_device(found)) refuse(path, "it is a device, expected " + expected);  // some devices have no end
  if (plain && !S_ISREG(found.st_mode)) refuse(path, "it is a pipe or a socket, expected " + expected);
  const uint64_t size = uint64_t(std::max<off_t>(found.st_size, 0));
  if (size > most_bytes)
    refuse(path, "it has " + std::to_string(size) + " bytes, expected at most " + std::to_string(most_bytes));
  const Opened opened{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (opened.file < 0) refuse(path, std::strerror(errno));
  return drain(opened.file, path, size, most_bytes);
}

}  // namespace

std::string read_file(const std::string& path) { return read(path, false, UINT64_MAX); }

std::string read_plain_file(const std::string& path, uint64_t most_bytes) {
  return read(path, true, most_bytes);
}

std::string read_standard_input() {
  constexpr const char* name = "standard input";
  struct stat found {};
  if (::fstat(STDIN_FILENO, &found) != 0) refuse(name, std::strerror(errno));
  if (is_device(found) && !::isatty(STDIN_FILENO))
    refuse(name, "it is a device, expected a file, a pipe or a terminal");
  return drain(STDIN_FILENO, name, uint64_t(std::max<off_t>(found.st_size, 0)), UINT64_MAX);
}

}  // namespace chorale
