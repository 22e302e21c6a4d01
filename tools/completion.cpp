#include "tools/completion.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "tools/command.hpp"

namespace chorale::tools {
namespace {

using Words = std::vector<std::string>;

std::map<const CLI::Option*, std::function<Words()>>& suggested() {
  static std::map<const CLI::Option*, std::function<Words()>> words;
  return words;
}

/// Says what a shell suggests for one option or argument.
struct Completed {
  Words names;  ///< "--output" and "-o"; none for an argument
  std::string value, description;
  bool takes_value = false, repeats = false, files = false;
  Words words;
};

/// Returns "f32" and "f16" of "NAME:{f32, f16}", which is the type of a value that one_of() checks.
Words choices_of(const std::string& type) {
  const size_t open = type.find('{'), close = type.find('}');
  if (open == type.npos || close == type.npos) return {};
  Words words;
  for (std::string& word : CLI::detail::split(type.substr(open + 1, close - open - 1), ','))
    words.push_back(CLI::detail::trim(word));
  return words;
}

Completed completed(const CLI::Option& option) {
  Completed one;
  for (const std::string& name : option.get_lnames()) one.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) one.names.push_back("-" + name);
  const std::string type = option.get_type_name();
  one.value = option.get_positional() ? option.get_name() : type.substr(0, type.find(':'));
  one.description = option.get_description();
  one.takes_value = option.get_items_expected_max() > 0;
  one.repeats = option.get_items_expected_max() > 1;
  one.words = choices_of(type);
  const auto more = suggested().find(&option);
  if (more != suggested().end()) one.words = more->second();
  // An argument is a file unless it is one of some words.
  const bool is_text = type == "TEXT" || type == "FILE";
  one.files = one.takes_value && (type == "FILE" || (option.get_positional() && is_text));
  return one;
}

struct Command {
  std::string name, summary;
  std::vector<Completed> options, arguments;
};

Command command_of(const CLI::App& app) {
  Command command{app.get_name(), app.get_description(), {}, {}};
  for (const CLI::Option* option : app.get_options())
    (option->get_positional() ? command.arguments : command.options).push_back(completed(*option));
  return command;
}

std::vector<Command> commands_of(const CLI::App& app) {
  std::vector<Command> commands;
  for (const CLI::App* one : app.get_subcommands([](const CLI::App*) { return true; }))
    commands.push_back(command_of(*one));
  return commands;
}

Words names_of(const std::vector<Completed>& options) {
  Words names;
  for (const Completed& option : options) names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

/// Returns the row of a `case` in bash that sets what is suggested.
std::string bash_row(const std::string& pattern, const Completed& one) {
  return fmt::format("    {}) words={} files={} ;;\n", pattern,
                     in_shell_quotes(fmt::format("{}", fmt::join(one.words, " "))), int(one.files));
}

/// Returns text for a place in zsh's specifications where brackets and colons have a meaning.
std::string zsh_text(const std::string& text) {
  std::string all;
  for (const char letter : text)
    all += (std::string("[]:\\").find(letter) != std::string::npos ? "\\" : "") + std::string(1, letter);
  return all;
}

/// Returns ":what:action", the part of zsh's specification that says what a value may be.
std::string zsh_value(const Completed& one) {
  std::string action = one.files ? "_files" : " ";
  const std::string words = fmt::format("{}", fmt::join(one.words, " "));
  if (!words.empty()) action = one.files ? " _chorale_words_or_files " + words : "(" + words + ")";
  return ":" + zsh_text(one.value) + ":" + action;
}

std::string zsh_option(const Completed& option) {
  const std::string all = fmt::format("{}", fmt::join(option.names, " "));
  std::string lines;
  for (const std::string& name : option.names) {
    const std::string once = option.repeats ? "*" : "(" + all + ")";
    const char* const joined = !option.takes_value ? "" : name.starts_with("--") ? "=" : "+";
    lines += "        " +
             in_shell_quotes(once + name + joined + "[" + zsh_text(option.description) + "]" +
                             (option.takes_value ? zsh_value(option) : "")) +
             " \\\n";
  }
  return lines;
}

}  // namespace

void suggest(CLI::Option* option, std::function<Words()> words) { suggested()[option] = std::move(words); }

std::string bash_completion(const CLI::App& app) {
  const std::vector<Command> commands = commands_of(app);
  Words names = {"help"};
  std::string values, arguments, options;
  for (const Command& command : commands) {
    names.push_back(command.name);
    for (const Completed& option : command.options) {
      if (!option.takes_value) continue;
      Words patterns;
      for (const std::string& name : option.names)
        patterns.push_back(in_shell_quotes(command.name + " " + name));
      values += bash_row(fmt::format("{}", fmt::join(patterns, "|")), option);
    }
    Completed any;  // bash does not count the arguments
    for (const Completed& argument : command.arguments) {
      any.words.insert(any.words.end(), argument.words.begin(), argument.words.end());
      any.files |= argument.files;
    }
    arguments += bash_row(command.name, any);
    options += fmt::format("    {}) words={} ;;\n", command.name,
                           in_shell_quotes(fmt::format("{}", fmt::join(names_of(command.options), " "))));
  }
  std::sort(names.begin(), names.end());
  const std::string all = fmt::format("{}", fmt::join(names, " "));
  const Words own = names_of(command_of(app).options);
  return fmt::format(
      R"bash(# This script completes the words of chorale in bash. `chorale completion bash` printed it.
_chorale() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}} words= files=0
  # Bash cuts --option=value into three words.
  if [ "$word" = = ]; then word=; elif [ "$before" = = ]; then before=${{COMP_WORDS[COMP_CWORD-2]}}; fi
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    words={}
    case $word in -*) words={} ;; esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
    return
  fi
  case "$command $before" in
{}    'help '*) [ "$COMP_CWORD" -eq 2 ] && words={} ;;
    *)
      case $word in
        -*)
          case $command in
{}          esac ;;
        *)
          case $command in
{}          esac ;;
      esac ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
  if [ "$files" = 1 ]; then
    compopt -o filenames 2>/dev/null
    mapfile -t -O "${{#COMPREPLY[@]}}" COMPREPLY < <(compgen -f -- "$word")
  fi
}}
complete -F _chorale chorale
)bash",
      in_shell_quotes(all), in_shell_quotes(fmt::format("{}", fmt::join(own, " "))), values,
      in_shell_quotes(all), options, arguments);
}

std::string zsh_completion(const CLI::App& app) {
  std::string list, cases;
  for (const Command& command : commands_of(app)) {
    list += "        " + in_shell_quotes(zsh_text(command.name) + ":" + command.summary) + "\n";
    std::string lines;
    for (const Completed& option : command.options) lines += zsh_option(option);
    size_t position = 0;
    for (const Completed& argument : command.arguments) {
      const std::string place = argument.repeats ? "*" : std::to_string(++position);
      lines += "        " + in_shell_quotes(place + zsh_value(argument)) + " \\\n";
    }
    cases += fmt::format("      {})\n        _arguments -S -s \\\n{} && return 0 ;;\n", command.name,
                         lines.substr(0, lines.size() - 3));
  }
  std::string own;
  for (const Completed& option : command_of(app).options) own += zsh_option(option);
  return fmt::format(R"zsh(#compdef chorale
# This script completes the words of chorale in zsh. `chorale completion zsh` printed it.
_chorale_words_or_files() {{
  _alternative "words:word:($*)" 'files:file:_files'
}}
_chorale() {{
  local curcontext=$curcontext state line
  typeset -A opt_args
  _arguments -C \
{}        '1:command:->command' '*::argument:->argument'
  case $state in
    command)
      local -a commands=(
        'help:List what a command takes.'
{}      )
      _describe command commands && return 0 ;;
    argument)
      case $line[1] in
{}      esac ;;
  esac
  return 1
}}
if [ "$funcstack[1]" = _chorale ]; then _chorale "$@"; else compdef _chorale chorale; fi
)zsh",
                     own, list, cases);
}

}  // namespace chorale::tools
