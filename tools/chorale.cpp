// Starts the command `chorale`, which compiles, checks, compares, runs and times GPU collectives.

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <iostream>
#include <map>
#include <new>

#include "chorale/did_you_mean.hpp"
#include "chorale/error.hpp"
#include "chorale/timeout_remedy.hpp"
#include "chorale/write_error.hpp"
#include "tools/command.hpp"
#include "tools/version.hpp"

namespace {

using namespace chorale;
using namespace chorale::tools;

constexpr const char* start =
    "Chorale: write GPU collectives, check them, run them.\n\n"
    "Start here:\n"
    "  chorale new allgather my.cpp    # write a collective: a skeleton, for you to change\n"
    "  chorale check my.cpp            # prove that it is right, or see what goes wrong\n"
    "  chorale run my.cpp              # run it on this machine and compare every result\n\n"
    "chorale --help lists all commands.\n";

constexpr const char* footer =
    "A plan '-' is standard input. Results go to stdout, messages to stderr.\n"
    "exit status: 0 all is well, 1 the plan is wrong, 2 the command is wrong, 3 the run failed";

int fail(Exit status, const std::string& message, const std::string& help = "") {
  std::cout.flush();
  std::cerr << "error: " << with_timeout_remedy(message, "say --timeout") << '\n';
  if (!help.empty()) std::cerr << "help: " << help << '\n';
  return int(status);
}

/// Ends a command, and reports an error if its results could not be written, for example to a full disk.
int end(Exit status) {
  std::cout.flush();
  if (!std::cout || std::ferror(stdout)) {
    rlimit limit{};
    const off_t written = ::lseek(STDOUT_FILENO, 0, SEEK_CUR);
    const bool limited =
        written > 0 && ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && rlim_t(written) >= limit.rlim_cur;
    return fail(Exit::command_wrong,
                "cannot write the results to standard output" + (limited ? ": " + write_error(EFBIG) : ""));
  }
  return int(status);
}

std::vector<std::string> names_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

/// Turns `chorale help run` into `chorale run --help`, and `chorale help` into `chorale --help`.
std::vector<char*> as_option(int argc, char** argv) {
  static char option[] = "--help";
  std::vector<char*> words(argv, argv + argc);
  const auto asks = [&] { return words.size() > 1 && std::string_view(words[1]) == "help"; };
  if (!asks()) return words;
  while (asks()) words.erase(words.begin() + 1);
  words.insert(words.begin() + (words.size() > 1 ? 2 : 1), option);
  return words;
}

/// Refuses misspelt commands and options before CLI11 parses. CLI11 would complain about words that are
/// missing as a result.
void refuse_unknown_words(CLI::App& app, int argc, char** argv) {
  const CLI::App* at = &app;
  int next = 1;
  if (argc > 1 && argv[1][0] != '-') {
    std::vector<std::string> names = names_of(app);
    names.push_back("help");
    if (std::find(names.begin(), names.end(), argv[1]) == names.end()) {
      throw Failure(Exit::command_wrong, unknown("command", argv[1], names),
                    "chorale --help lists the commands");
    }
    at = app.get_subcommand(argv[1]);
    next = 2;
  }
  const std::vector<std::string> known = options_of(*at);
  for (; next < argc; ++next) {
    std::string word = argv[next];
    if (word == "--") return;
    if (word.size() < 2 || word[0] != '-' || std::isdigit(static_cast<unsigned char>(word[1]))) continue;
    word = word[1] == '-' ? word.substr(0, word.find('=')) : word.substr(0, 2);
    if (std::find(known.begin(), known.end(), word) == known.end()) {
      // Some commands only make a plan, whose number of ranks is a parameter like any other.
      if (word == "--ranks" && std::find(known.begin(), known.end(), "--set") != known.end()) {
        const std::string given = argv[next] == word && next + 1 < argc ? argv[next + 1]
                                  : argv[next] == word                  ? "N"
                                                                        : argv[next] + word.size() + 1;
        throw Failure(Exit::command_wrong, "chorale " + at->get_name() + " has no option --ranks",
                      "a program gets its number of ranks as a parameter: --set ranks=" + given);
      }
      const std::string command = at == &app ? "chorale" : "chorale " + at->get_name();
      throw Failure(Exit::command_wrong, unknown("option", word, known),
                    command + " --help lists the options");
    }
  }
}

/// Refuses empty values. "--bytes '$SIZE'" without such a variable would count as no --bytes.
void refuse_empty_values(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    const std::vector<std::string>& values = option->results();
    if (option->get_positional() || std::find(values.begin(), values.end(), "") == values.end()) continue;
    throw Failure(Exit::command_wrong, option->get_name() + " is given, but its value is empty",
                  "chorale " + command.get_name() + " --help lists the options");
  }
}

/// Opens closed standard streams so that their use still fails. Otherwise a file that is opened later would
/// get the number of such a stream, and receive its output.
void keep_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF)
      ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

struct Example {
  const char *command, *summary, *line;
};
constexpr Example examples[] = {
#define EXAMPLE(command, summary, line) {#command, summary, line},
#include "tools/examples.def"
};

/// Returns the examples of a command, as its help shows them.
std::string examples_of(std::string_view command) {
  std::string text = "Examples:\n";
  for (const Example& example : examples) {
    if (example.command == command)
      text += std::string("  # ") + example.summary + "\n  " + example.line + '\n';
  }
  return text + '\n';
}

int run(int argc, char** argv) {
  CLI::App app("Chorale: write GPU collectives, check them, run them.", "chorale");
  app.footer(footer);
  app.set_version_flag("--version", "chorale " CHORALE_VERSION);
  app.require_subcommand(1);
  app.get_formatter()->column_width(32);
  std::map<const CLI::App*, Action> actions;
  const auto add = [&](const char* name, const char* summary, Action (*declare)(CLI::App&)) {
    CLI::App* command = app.add_subcommand(name, summary);
    actions[command] = declare(*command);
    command->footer(examples_of(name) + command->get_footer());
  };
#define COMMAND_AS(word, name, summary) add(#word, summary, command::name);
#include "tools/commands.def"

  app.footer(
      std::string("chorale help COMMAND, or chorale COMMAND --help, lists what a command takes.\n") +
      footer);  // is set after the commands, because commands inherit the footer that exists before them

  if (argc < 2) {
    std::cerr << start;
    return int(Exit::command_wrong);
  }
  refuse_unknown_words(app, argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    app.exit(asked);
    return end(Exit::well);
  } catch (const CLI::ParseError& error) {
    std::string message = error.what();
    const size_t excludes = message.find(" excludes ");
    if (dynamic_cast<const CLI::ExcludesError*>(&error) && excludes != std::string::npos)
      message = message.replace(excludes, 10, " and ") + " exclude each other";
    const std::vector<CLI::App*> used = app.get_subcommands();
    const std::string command = used.empty() ? "chorale" : "chorale " + used.front()->get_name();
    return fail(Exit::command_wrong, message, command + " --help lists the arguments");
  }
  const CLI::App* const command = app.get_subcommands().front();
  refuse_empty_values(*command);
  return end(actions.at(command)());
}

}  // namespace

int main(int argc, char** argv) {
  keep_closed_streams();
  ::signal(SIGXFSZ, SIG_IGN);  // a write past RLIMIT_FSIZE is then an error that names the file
  try {
    std::vector<char*> words = as_option(argc, argv);
    return run(int(words.size()), words.data());
  } catch (const Failure& failure) {
    return fail(failure.exit, failure.what(), failure.help);
  } catch (const UsageError& error) {
    return fail(Exit::command_wrong, error.what());
  } catch (const RunError& error) {
    return fail(Exit::run_failed, error.what());
  } catch (const std::bad_alloc&) {
    return fail(Exit::run_failed, "out of memory");
  } catch (const std::exception& error) {
    return fail(Exit::run_failed, error.what());
  }
}
