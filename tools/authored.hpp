/// \file
/// Runs what an author wrote: a program is built in this process, and may do whatever C++ can.
#pragma once

#include <csignal>
#include <iterator>
#include <new>
#include <stdexcept>
#include <string>

#include "tools/command.hpp"

namespace chorale::tools {

/// While it lives, a crash first says whose it is. Then it goes on as without: to a core file, or to the
/// debugger. Who calls exit() is named, too, and the status is that of a plan that is wrong.
class CrashNote {
 public:
  explicit CrashNote(const std::string& program);
  ~CrashNote();
  CrashNote(const CrashNote&) = delete;

 private:
  static constexpr int signals_[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
  struct sigaction old_[std::size(signals_)];
  stack_t old_stack_;
  char stack_[1 << 16];
};

/// While it lives, what is written to standard output goes to standard error: an author may print, and
/// results stay alone.
class PrintsAside {
 public:
  PrintsAside();
  ~PrintsAside();
  PrintsAside(const PrintsAside&) = delete;

 private:
  int output_;  // the real one
};

/// What `body`, which runs `program`, returns.
/// \throws Failure command_wrong if the program refuses its parameters, plan_wrong for all else that it
/// throws
template <class Body>
auto authored(const std::string& program, const Body& body) {
  const CrashNote note(program);
  const PrintsAside aside;
  try {
    return body();
  } catch (const std::invalid_argument& error) {
    throw Failure(Exit::command_wrong, error.what());
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw Failure(Exit::plan_wrong, "program '" + program + "' failed: " + error.what());
  } catch (...) {
    throw Failure(Exit::plan_wrong, "program '" + program + "' failed: it threw what is no std::exception");
  }
}

}  // namespace chorale::tools
