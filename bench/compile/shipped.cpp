// Measures the time to record and compile each shipped algorithm, the least of several builds. The goal is 10
// ms per algorithm at 8 ranks.

#include <algorithm>
#include <chorale/dsl.hpp>
#include <chorale/json.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

int main(int argc, char** argv) try {
  using Clock = std::chrono::steady_clock;
  const auto milliseconds = [](Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration<double, std::milli>(to - from).count();
  };
  const std::string ranks = argc > 1 ? argv[1] : "8";
  const int times = argc > 2 ? std::max(1, std::atoi(argv[2])) : 20;
  bool slow = false;
  std::printf("%s ranks, least of %d, milliseconds\n", ranks.c_str(), times);
  std::printf("%-24s %8s %8s %8s %10s\n", "", "record", "compile", "write", "JSON bytes");
  for (const chorale::dsl::RegisteredProgram& program : chorale::dsl::programs()) {
    double record = 1e9, compile = 1e9, write = 1e9;
    size_t bytes = 0;
    for (int time = 0; time < times; ++time) {
      const auto start = Clock::now();
      const chorale::dsl::Program recorded = chorale::dsl::build(program.name, {{"ranks", ranks}});
      const auto built = Clock::now();
      const chorale::dsl::Compiled compiled = recorded.compile();
      const auto done = Clock::now();
      bytes = chorale::write(compiled.plan).size();
      const auto written = Clock::now();
      if (!compiled.ok()) {
        std::printf("%s", chorale::render(compiled.plan, compiled.diagnostics).c_str());
        return 2;
      }
      record = std::min(record, milliseconds(start, built));
      compile = std::min(compile, milliseconds(built, done));
      write = std::min(write, milliseconds(done, written));
    }
    slow |= record + compile >= 10 && ranks == "8";
    std::printf("%-24s %8.2f %8.2f %8.2f %10zu\n", program.name.c_str(), record, compile, write, bytes);
  }
  if (slow) std::printf("10 ms or more\n");
  return slow ? 1 : 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return 3;
}
