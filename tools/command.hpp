/// \file
/// What all commands share: how one is declared, how it ends and how it speaks.
#pragma once

#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

// What reads a command line includes CLI11; what only speaks to the user does without its 70,000 lines.
namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace chorale::tools {

/// The exit statuses of `chorale`.
enum class Exit : int { well = 0, plan_wrong = 1, command_wrong = 2, run_failed = 3, interrupted = 130 };

/// Ends a command with a message ("error: <message>") and, if there is one, a line "help: <help>".
struct Failure : std::runtime_error {
  Failure(Exit status, const std::string& message, std::string advice = "")
      : std::runtime_error(message), exit(status), help(std::move(advice)) {}
  Exit exit;
  std::string help;
};

/// What a command does once its options are parsed.
using Action = std::function<Exit()>;

/// Each declares its options and returns what is to be done with them.
namespace command {
#define COMMAND(name, summary) Action name(CLI::App&);
#include "tools/commands.def"
}  // namespace command

/// Refuses a word that is not one of `known`: "unknown dtype 'f33', expected one of f32, f16, did you mean
/// 'f32'?".
/// \param kind  what the word stands for
CLI::Validator one_of(std::string kind, std::vector<std::string> known);

/// Takes the types and operators of types.def and other_names.def, also by the words of other systems, which
/// become ours. Refuses others as one_of() does.
CLI::Validator dtype_word();
CLI::Validator op_word();

/// Refuses what is no decimal number from `least` to `most`. CLI11 itself takes 010 for 8 and 0x2 for 2, and
/// refuses 08. \param words  of the range, for the help; "": "1 to 4096"
CLI::Validator whole_number(uint64_t least, uint64_t most, std::string words = "");

/// "unknown program 'onee', did you mean 'one'?".
std::string unknown(std::string_view kind, std::string_view word, std::span<const std::string> known);

/// The command line of this process as a shell takes it, "chorale" whatever the path: for who wants the same
/// again.
std::string command_line();

/// Words as a shell takes them: in quotes where they have to be.
std::string shell_line(std::span<const std::string> words);

/// "a, b, c".
std::string join(std::span<const std::string> words);

/// "1 plan", "2 plans".
std::string count(uint64_t number, const std::string& noun);

/// What --seed is given: a number of 64 bits. CLI11 takes -1 and 2^64 for the largest.
/// \throws Failure command_wrong
uint64_t parse_seed(const std::string& text);

/// Bytes as people write them: "512", "4K", "4KiB", "1M", "2G".
/// \throws Failure command_wrong
uint64_t parse_bytes(const std::string& text);

/// "4K,1M" is a list; "1K:1M" doubles from 1K to 1M; "1K:1M:4" multiplies by 4.
/// \throws Failure command_wrong
std::vector<uint64_t> parse_sizes(const std::string& text);

/// The shortest text that parse_bytes() reads back as `bytes`.
std::string format_bytes(uint64_t bytes);

/// Writes `text` to a file, all or nothing: to a temporary name beside it, then renamed. "-" is standard
/// output. \throws Failure command_wrong naming the file and the reason; no part of the text is left behind
void write_output(const std::string& path, std::string_view text);

/// Looks whether write_output() could write there, and writes nothing: for what is known after a long run
/// only. \throws Failure as write_output()
void need_writable(const std::string& path);

/// A file that a command line names, and what names it: "--trace"; "" for a command's own argument.
struct NamedFile {
  std::string option, path;
};

/// Refuses outputs that would take the place of what is read, or of one another, by whatever paths they are
/// named; to be asked before anything is read. "", "-", devices and pipes are left alone.
/// \throws Failure command_wrong
void keep_apart(const std::vector<NamedFile>& read, const std::vector<NamedFile>& written);

/// One line on stderr that overwrites itself, for work that lasts. Silent for the first two seconds, and
/// always when stderr is no terminal.
class Progress {
 public:
  Progress();
  ~Progress();
  void operator()(const std::string& what);

 private:
  double start_, last_ = 0;
  bool shown_ = false, terminal_;
};

}  // namespace chorale::tools
