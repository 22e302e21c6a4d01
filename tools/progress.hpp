#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

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
  /// Shows a bar too, and how long the rest of the work takes if it goes on as since the first call.
  /// \param share  the share of the work that is done, from 0 to 1
  void operator()(const std::string& what, double share);
  /// Removes the line, so that others can write to the terminal. The next call shows it again.
  void clear();

 private:
  bool listened() const;
  bool due() const;
  void show(const std::string& line);

  double start_, last_, line_every_;
  double first_time_ = 0, first_share_ = -1;  ///< of the first call with a share
  bool shown_ = false, terminal_;
};

/// Shows the progress of work that cannot call a Progress itself. Its own thread does, as long as the object
/// exists.
class ProgressTicker {
 public:
  /// \param tell  is called ten times a second, in the other thread
  /// \param line_every  see Progress
  explicit ProgressTicker(std::function<void(Progress&)> tell, double line_every = 0);
  /// Shows these words without a bar.
  explicit ProgressTicker(const std::string& what);
  ~ProgressTicker();
  ProgressTicker(const ProgressTicker&) = delete;
  ProgressTicker& operator=(const ProgressTicker&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::thread thread_;  // is last because it uses the other members
};

/// Declares --quiet, with which no Progress shows anything.
void declare_quiet(CLI::App&);

}  // namespace chorale::tools
