#include "tools/authored.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>

namespace chorale::tools {
namespace {

std::string text;  // the text of the note that exists; a signal handler gets no argument for it

std::string ended;  // the message if the process exits; empty while no note exists

/// Refuses exit() in a program, because it would end the command with success.
extern "C" void refuse_exit() {
  if (ended.empty()) return;
  std::fflush(nullptr);  // the program's output may tell why
  [[maybe_unused]] const auto written = ::write(2, ended.data(), ended.size());
  ::_exit(int(Exit::plan_wrong));
}

extern "C" void say(int) { [[maybe_unused]] const auto written = ::write(2, text.data(), text.size()); }

}  // namespace

CrashNote::CrashNote(const std::string& program) {
  text = "error: program '" + program +
         "' crashed while it was built\nhelp: to see where, run CXX='c++ -g' gdb --args chorale ... with the "
         "arguments of this command\n";
  ended = "error: program '" + program +
          "' ended the process\nhelp: leave exit() out: a program returns, or throws an exception that says "
          "what is wrong\n";
  [[maybe_unused]] static const int registered = std::atexit(refuse_exit) | std::at_quick_exit(refuse_exit);
  stack_t stack = {};  // an endless recursion uses up the other stack
  stack.ss_sp = stack_;
  stack.ss_size = sizeof stack_;
  ::sigaltstack(&stack, &old_stack_);
  struct sigaction action = {};
  action.sa_handler = say;
  // The handler is reset first. Then the process ends when the instruction runs again, or abort() is called.
  action.sa_flags = SA_RESETHAND | SA_ONSTACK;
  for (size_t which = 0; which < std::size(signals_); ++which) {
    ::sigaction(signals_[which], nullptr, &old_[which]);
    const bool taken = (old_[which].sa_flags & SA_SIGINFO) || old_[which].sa_handler != SIG_DFL;
    if (!taken) ::sigaction(signals_[which], &action, nullptr);  // a sanitizer's handler says more
  }
}

CrashNote::~CrashNote() {
  ended.clear();
  for (size_t which = 0; which < std::size(signals_); ++which)
    ::sigaction(signals_[which], &old_[which], nullptr);
  ::sigaltstack(&old_stack_, nullptr);
}

PrintsAside::PrintsAside() {
  std::cout.flush();
  std::fflush(stdout);
  output_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (output_ >= 0) ::dup2(STDERR_FILENO, STDOUT_FILENO);
}

PrintsAside::~PrintsAside() {
  if (output_ < 0) return;
  const bool failed = !std::cout || std::ferror(stdout);
  std::cout.flush();
  std::fflush(stdout);
  if (!failed) {  // results are not lost if standard error cannot take the output
    std::cout.clear();
    std::clearerr(stdout);
  }
  ::dup2(output_, STDOUT_FILENO);
  ::close(output_);
}

}  // namespace chorale::tools
