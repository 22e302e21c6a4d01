/// \file
/// Makes the scripts by which shells complete the words of `chorale`.
#pragma once

#include <functional>
#include <string>
#include <vector>

// The file includes no CLI11, see command.hpp.
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace chorale::tools {

/// Says which words a shell suggests for the value of an option, besides the names of files. A value that
/// one_of() checks needs no such words.
/// \param words  is called when a script is made
void suggest(CLI::Option*, std::function<std::vector<std::string>()> words);

/// Return the script for a shell. It has what `chorale --help` and the help of each command list.
/// \param app  with all commands
std::string bash_completion(const CLI::App& app);
std::string zsh_completion(const CLI::App& app);

}  // namespace chorale::tools
