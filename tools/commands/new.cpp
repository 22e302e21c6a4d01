// chorale new writes a program for a collective, for its author to change.

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>

#include "chorale/collective.hpp"
#include "tools/command.hpp"
#include "tools/skeletons.hpp"

namespace chorale::tools {
namespace {

/// Returns the skeleton of a collective; null if there is none.
const Skeleton* skeleton_of(std::string_view collective) {
  const auto found = std::find_if(skeletons.begin(), skeletons.end(),
                                  [&](const Skeleton& one) { return one.collective == collective; });
  return found == skeletons.end() ? nullptr : &*found;
}

/// Lists the collectives that have a skeleton.
std::vector<std::string> collectives() {
  std::vector<std::string> words;
  for (const CollectiveInfo& row : collective_table)
    if (skeleton_of(row.word)) words.emplace_back(row.word);
  return words;
}

/// Returns a name for the program, from its file's: "2nd-try" becomes "program_2nd_try".
std::string program_name(const std::string& stem) {
  std::string name = stem;
  for (char& letter : name) {
    if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
  }
  return name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) ? "program_" + name : name;
}

std::string with(std::string text, const std::string& word, const std::string& replacement) {
  for (size_t at = 0; (at = text.find(word, at)) != text.npos; at += replacement.size())
    text.replace(at, word.size(), replacement);
  return text;
}

/// Writes a file that must not exist yet.
void write_new(const std::string& path, const std::string& text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0 && errno == EEXIST)
    throw Failure(Exit::command_wrong, path + " exists, and is not overwritten", "name a new file");
  if (file < 0) throw Failure(Exit::command_wrong, "cannot write " + path + ": " + std::strerror(errno));
  ::close(file);
  try {
    write_output(path, text);
  } catch (...) {
    ::unlink(path.c_str());
    throw;
  }
}

}  // namespace

Action command::create(CLI::App& app) {
  struct NewArguments {
    std::string collective, file;
  };
  auto options = std::make_shared<NewArguments>();
  app.add_option("collective", options->collective, "The collective that the program computes")
      ->required()
      ->check(one_of("collective", collectives()));
  app.add_option("file", options->file, "The new source, in C++ (*.cpp) or Python (*.py)")
      ->type_name("FILE")
      ->required();
  app.footer(
      "The program takes the number of ranks as the parameter `ranks`: chorale run my.cpp --set ranks=8.");
  return [options] {
    const std::filesystem::path path = options->file;
    const std::string ending = path.extension().string();
    if (ending != ".cpp" && ending != ".py") {
      throw Failure(Exit::command_wrong, "'" + options->file + "' ends neither in .cpp nor in .py",
                    "the ending says whether the program is in C++ or in Python");
    }
    const Skeleton& of = *skeleton_of(options->collective);
    const std::string placeholder = "my_" + options->collective;
    std::string text = ending == ".cpp" ? of.cpp : of.py;
    // The first of these begins with the second, and so is replaced before it.
    text = with(std::move(text), placeholder + ending, "\x01");
    text = with(std::move(text), placeholder, program_name(path.stem().string()));
    text = with(std::move(text), "\x01", path.filename().string());
    write_new(options->file, text);
    const std::string word = shell_line(std::vector<std::string>{options->file});
    std::cerr << "written to " << options->file << "\nnext: chorale check " << word << "\n      chorale run "
              << word << '\n';
    return Exit::well;
  };
}

}  // namespace chorale::tools
