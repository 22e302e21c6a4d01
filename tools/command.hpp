/// \file
/// Declares what all commands share: their options, their exit statuses and their messages.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/progress.hpp"

// Files that read a command line include CLI11. Files that only print do without its 70,000 lines.
namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace chorale::tools {

/// Lists the exit statuses of `chorale`.
enum class Exit : int { well = 0, plan_wrong = 1, command_wrong = 2, run_failed = 3, interrupted = 130 };

/// Ends a command with a message ("error: <message>") and, if there is one, a line "help: <help>".
struct Failure : std::runtime_error {
  Failure(Exit status, const std::string& message, std::string advice = "")
      : std::runtime_error(message), exit(status), help(std::move(advice)) {}
  Exit exit;
  std::string help;
};

/// Names the function that a command runs after its options are parsed.
using Action = std::function<Exit()>;

/// Each function declares its command's options and returns the action to run with them.
namespace command {
#define COMMAND_AS(word, name, summary) Action name(CLI::App&);
#include "tools/commands.def"
}  // namespace command

/// Refuses a word that is not in `known`: "unknown dtype 'f33', expected one of f32, f16, did you mean
/// 'f32'?".
/// \param kind  what the word stands for
CLI::Validator one_of(std::string kind, std::vector<std::string> known);

/// Accept the types and operators of types.def and other_names.def, and turn the words of other systems into
/// ours. They refuse others as one_of() does.
CLI::Validator dtype_word();
CLI::Validator op_word();

/// Refuses a word that is not a decimal number from `least` to `most`. CLI11 itself takes 010 for 8 and 0x2
/// for 2, and refuses 08.
/// \param words  the range in words, for the help; "": "1 to 4096"
CLI::Validator whole_number(uint64_t least, uint64_t most, std::string words = "");

/// Returns a message: "unknown program 'onee', did you mean 'one'?".
std::string unknown(std::string_view kind, std::string_view word, std::span<const std::string> known);

/// Returns the command line of this process in shell syntax, so that the user can repeat it. It begins with
/// "chorale" whatever the path.
std::string command_line();

/// Returns text in single quotes of a shell.
std::string in_shell_quotes(const std::string& text);

/// Returns words in shell syntax, with quotes where they are needed.
std::string shell_line(std::span<const std::string> words);

/// Returns "a, b, c".
std::string join(std::span<const std::string> words);

/// Returns "1 plan", "2 plans".
std::string count(uint64_t number, const std::string& noun);

/// Reads the value of --seed, a number of 64 bits. CLI11 would turn -1 and 2^64 into the largest number.
/// \throws Failure command_wrong
uint64_t parse_seed(const std::string& text);

/// Reads a number of bytes as people write it: "512", "4K", "4KiB", "1M", "2G".
/// \throws Failure command_wrong
uint64_t parse_bytes(const std::string& text);

/// Reads sizes: "4K,1M" is a list; "1K:1M" doubles from 1K to 1M; "1K:1M:4" multiplies by 4.
/// \throws Failure command_wrong
std::vector<uint64_t> parse_sizes(const std::string& text);

/// Returns the shortest text that parse_bytes() reads back as `bytes`.
std::string format_bytes(uint64_t bytes);

/// Writes `text` to a file, all or nothing: to a temporary name beside it, then renamed. "-" is standard
/// output.
/// \throws Failure command_wrong naming the file and the reason; no part of the text is left behind
void write_output(const std::string& path, std::string_view text);

/// Checks that write_output() could write to this path, and writes nothing. Call it before a long run whose
/// output is known only at the end.
/// \throws Failure as write_output() does
void need_writable(const std::string& path);

/// Holds a file that a command line names, and the option that names it, such as "--trace". The option is ""
/// for a command's own argument.
struct NamedFile {
  std::string option, path;
};

/// Refuses outputs that would replace an input or one another, whatever paths name them. Call it before
/// anything is read. It ignores "", "-", devices and pipes.
/// \throws Failure command_wrong
void keep_apart(const std::vector<NamedFile>& read, const std::vector<NamedFile>& written);

}  // namespace chorale::tools
