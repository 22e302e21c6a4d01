/// \file
/// Runs an author's program, which is built in this process and may do whatever C++ can.
#pragma once

#include <csignal>
#include <iterator>
#include <new>
#include <stdexcept>
#include <string>

#include "tools/command.hpp"

namespace chorale::tools {

/// Names the program when it crashes while the note exists. Then the crash goes on as without the note: to a
/// core file, or to the debugger. The note also names a program that calls exit(), and the status is then
/// that of a wrong plan.
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

/// Sends standard output to standard error while it exists, so that an author may print without spoiling the
/// results.
class PrintsAside {
 public:
  PrintsAside();
  ~PrintsAside();
  PrintsAside(const PrintsAside&) = delete;

 private:
  int output_;  // the file descriptor of the real standard output
};

/// Calls `body`, which runs `program`, and returns its result.
/// \throws Failure command_wrong if the program refuses its parameters, plan_wrong for everything else that
/// it throws
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
    throw Failure(Exit::plan_wrong,
                  "program '" + program + "' failed: it threw an object that is not a std::exception");
  }
}

}  // namespace chorale::tools
