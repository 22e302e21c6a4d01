/// \file
/// Shows the progress of long work on a terminal.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace chorale::tools {

/// Shows the progress of long work as one line on stderr that overwrites itself. It is silent for the first
/// two seconds, and with --quiet. It is also silent when stderr is not a terminal, unless the caller asks for
/// separate lines.
class Progress {
 public:
  /// \param line_every  seconds between lines when stderr is no terminal; 0: none
  explicit Progress(double line_every = 0);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Shows what is done now.
  void operator()(const std::string& what);
  /// Shows a bar too, and how long the rest of the work takes if it goes on like this.
  /// \param share  of the work since the constructor that is done, 0 to 1
  void operator()(const std::string& what, double share);
  /// Removes the line, so that others can write to the terminal. The next call shows it again.
  void clear();

 private:
  bool due() const;
  void show(const std::string& line);

  double start_, last_, line_every_;
  bool shown_ = false, terminal_;
};

/// Declares --quiet, with which no Progress shows anything.
void declare_quiet(CLI::App&);

}  // namespace chorale::tools
