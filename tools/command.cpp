#include "tools/command.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <system_error>

#include "chorale/byte_count.hpp"
#include "chorale/did_you_mean.hpp"
#include "chorale/other_names.hpp"
#include "chorale/plan.hpp"
#include "chorale/usage_error.hpp"
#include "chorale/write_error.hpp"

namespace chorale::tools {
namespace {

[[noreturn]] void cannot_write(const std::string& path, int error) {
  throw Failure(Exit::command_wrong, "cannot write " + path + ": " + write_error(error));
}

/// Returns the file that a link points to, so that writing keeps the link and replaces or creates the file.
std::filesystem::path behind_links(const std::filesystem::path& path) {
  constexpr int most_links = 40;  // Linux follows as many
  std::filesystem::path target = path;
  std::error_code error;
  for (int links = 0; std::filesystem::is_symlink(std::filesystem::symlink_status(target, error)); ++links) {
    if (links == most_links) cannot_write(path, ELOOP);
    target = target.parent_path() / std::filesystem::read_symlink(target, error);
    if (error) cannot_write(path, error.value());
  }
  return target;
}

/// Identifies a file, whatever path names it.
struct Identity {
  dev_t device = 0;
  ino_t inode = 0;
  std::filesystem::path path;  ///< only for a file that does not exist yet
  bool operator==(const Identity&) const = default;
};

/// Returns a file's identity. Returns nothing if the path neither is nor can become a regular file.
std::optional<Identity> identity_of(const std::string& path) {
  if (path.empty() || path == "-") return {};
  struct stat found;
  if (::stat(path.c_str(), &found) == 0) {
    if (!S_ISREG(found.st_mode)) return {};
    return Identity{found.st_dev, found.st_ino, {}};
  }
  std::error_code error;
  const std::filesystem::path whole =
      std::filesystem::weakly_canonical(std::filesystem::absolute(behind_links(path)), error);
  if (error) return {};  // opening the path reports the error
  return Identity{0, 0, whole};
}

/// Writes the whole text. Returns 0, or the errno of the error.
int write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(size_t(written));
  }
  return 0;
}

std::string suggestion(std::string_view word, std::span<const std::string> known) {
  const std::vector<std::string_view> views(known.begin(), known.end());
  return did_you_mean(word, views);
}

}  // namespace

std::string join(std::span<const std::string> words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string count(uint64_t number, const std::string& noun) {
  return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

std::string in_shell_quotes(const std::string& text) {
  std::string quoted = "'";
  for (const char letter : text) quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return quoted + "'";
}

std::string shell_line(std::span<const std::string> words) {
  constexpr const char* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:,=+@%";
  std::string line;
  for (const std::string& word : words) {
    const bool is_plain = !word.empty() && word.find_first_not_of(plain) == word.npos;
    line += (line.empty() ? "" : " ") + (is_plain ? word : in_shell_quotes(word));
  }
  return line;
}

std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  if (words.empty()) return "chorale";  // /proc is not mounted
  words[0] = "chorale";
  return shell_line(words);
}

std::string unknown(std::string_view kind, std::string_view word, std::span<const std::string> known) {
  return "unknown " + std::string(kind) + " '" + std::string(word) + "'" + suggestion(word, known);
}

CLI::Validator one_of(std::string kind, std::vector<std::string> known) {
  const std::string listed = join(known);
  return CLI::Validator(
      [kind = std::move(kind), known = std::move(known)](std::string& word) {
        for (const std::string& name : known) {
          if (word == name) return std::string();
        }
        return "unknown " + kind + " '" + word + "', expected one of " + join(known) +
               suggestion(word, known);
      },
      "{" + listed + "}");
}

namespace {

/// Accepts a word of `ours`, or the word of another system for one of them.
/// \param others  returns true for words that are known, but are not one of `ours`
CLI::Validator word_of(const char* kind, std::vector<std::string> ours, bool (*others)(std::string_view)) {
  CLI::Validator plain = one_of(kind, std::move(ours));
  return CLI::Validator(
      [plain, others](std::string& word) {
        std::string name = name_here(word);
        std::string refusal = others(name) ? "" : plain(name);
        if (refusal.empty()) word = std::move(name);
        return refusal;
      },
      plain.get_description());
}

}  // namespace

CLI::Validator dtype_word() {
  std::vector<std::string> names;
  for (const DType type : all_dtypes) names.push_back(dtype_name(type));
  return word_of("dtype", std::move(names), names_other_dtype);
}

CLI::Validator op_word() {
  return word_of("op", {std::begin(reduce_op_names), std::end(reduce_op_names)}, names_other_op);
}

CLI::Validator whole_number(uint64_t least, uint64_t most, std::string words) {
  const std::string range = std::to_string(least) + " to " + std::to_string(most);
  return CLI::Validator(
      [least, most, range](std::string& word) {
        const bool negative = word.starts_with('-');
        const std::string digits = word.substr(negative);
        if (digits.empty() || digits.find_first_not_of("0123456789") != digits.npos)
          return "'" + word + "' is not a whole number, expected one from " + range;
        uint64_t number = 0;
        const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
        if (negative || error != std::errc() || number < least || number > most)
          return "Value " + word + " not in range " + range;
        word = std::to_string(number);
        return std::string();
      },
      words.empty() ? range : words);
}

uint64_t parse_seed(const std::string& text) {
  uint64_t seed = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, seed);
  if (error == std::errc() && stop == end) return seed;
  throw Failure(Exit::command_wrong,
                "--seed is '" + text + "', but must be a whole number from 0 to 2^64 - 1");
}

uint64_t parse_bytes(const std::string& text) {
  try {
    return read_byte_count(text);
  } catch (const UsageError& error) {
    throw Failure(Exit::command_wrong, error.what(), "sizes are bytes, as 512, 4K, 1M or 2G");
  }
}

std::vector<uint64_t> parse_sizes(const std::string& text) {
  const auto split = [](const std::string& whole, char separator) {
    std::vector<std::string> parts(1);
    for (const char letter : whole)
      letter == separator ? parts.emplace_back() : (parts.back() += letter, parts.back());
    return parts;
  };
  std::vector<uint64_t> sizes;
  for (const std::string& item : split(text, ',')) {
    const std::vector<std::string> range = split(item, ':');
    const uint64_t first = parse_bytes(range[0]);
    if (range.size() == 1) {
      sizes.push_back(first);
      continue;
    }
    const uint64_t last = parse_bytes(range[1]), factor = range.size() > 2 ? parse_bytes(range[2]) : 2;
    if (range.size() > 3 || first == 0 || first > last || factor < 2) {
      throw Failure(
          Exit::command_wrong, "'" + item + "' is not a range of sizes",
          "a range is first:last or first:last:factor, with 0 < first <= last and a factor of 2 or more");
    }
    for (uint64_t size = first; size <= last; size *= factor) {
      sizes.push_back(size);
      if (size > UINT64_MAX / factor) break;
    }
  }
  return sizes;
}

std::string format_bytes(uint64_t bytes) { return byte_count_text(bytes); }

void write_output(const std::string& path, std::string_view text) {
  if (path.empty() || path == "-") {
    std::cout.flush();
    if (const int error = write_all(STDOUT_FILENO, text)) cannot_write("standard output", error);
    return;
  }
  struct stat found;
  const bool exists = ::stat(path.c_str(), &found) == 0;
  if (exists && S_ISDIR(found.st_mode)) cannot_write(path, EISDIR);
  if (exists && !S_ISREG(found.st_mode)) {  // a device or a pipe cannot be replaced, only written
    const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file < 0) cannot_write(path, errno);
    const int error = write_all(file, text);
    ::close(file);
    if (error) cannot_write(path, error);
    return;
  }
  const std::string target = behind_links(path);
  std::string temporary = target + ".XXXXXX";
  const int file = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (file < 0) cannot_write(path, errno);
  const mode_t mask = ::umask(0);
  ::umask(mask);
  int error = write_all(file, text);
  if (!error && ::fchmod(file, exists ? found.st_mode & 07777 : 0666 & ~mask) != 0) error = errno;
  if (!error && ::fsync(file) != 0) error = errno;
  if (::close(file) != 0 && !error) error = errno;
  if (!error && ::rename(temporary.c_str(), target.c_str()) != 0) error = errno;
  if (error) {
    ::unlink(temporary.c_str());
    cannot_write(path, error);
  }
}

void need_writable(const std::string& path) {
  if (path.empty() || path == "-") return;
  struct stat found;
  if (::stat(path.c_str(), &found) == 0) {
    if (S_ISDIR(found.st_mode)) cannot_write(path, EISDIR);
    if (!S_ISREG(found.st_mode)) {
      if (::access(path.c_str(), W_OK) != 0) cannot_write(path, errno);
      return;
    }
  }
  const std::filesystem::path folder = behind_links(path).parent_path();
  if (::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0) cannot_write(path, errno);
}

void keep_apart(const std::vector<NamedFile>& read, const std::vector<NamedFile>& written) {
  for (auto file = written.begin(); file != written.end(); ++file) {
    const std::optional<Identity> identity = identity_of(file->path);
    if (!identity) continue;
    for (const NamedFile& other : read) {
      if (identity_of(other.path) != identity) continue;
      throw Failure(Exit::command_wrong,
                    file->option + " names the file that " +
                        (other.option.empty() ? "is read" : other.option + " reads") + ": " + file->path,
                    "name another file, because this one would overwrite an input");
    }
    for (auto other = written.begin(); other != file; ++other) {
      if (identity_of(other->path) != identity) continue;
      throw Failure(Exit::command_wrong,
                    other->option + " and " + file->option + " name one file: " + file->path,
                    "give each option a different file");
    }
  }
}

}  // namespace chorale::tools
