#include "tools/doctor/examination.hpp"

#include <fmt/format.h>

#include <iostream>

namespace chorale::tools {

void Examination::row(const char* verdict, const std::string& what, const std::string& found) {
  // At once: the look that hangs or crashes is the one behind the last row.
  std::cout << fmt::format("{:<6} {:<12}  {}\n", verdict, what, found) << std::flush;
}

void Examination::fail(const std::string& what, const std::string& found, const std::string& remedy) {
  row("FAIL", what, found);
  more("remedy: " + remedy);
  well_ = false;
}

void Examination::more(const std::string& text) {
  std::cout << std::string(21, ' ') << text << '\n' << std::flush;
}

std::string mebibytes(uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

}  // namespace chorale::tools
