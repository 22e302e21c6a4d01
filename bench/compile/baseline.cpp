#include "bench/compile/baseline.hpp"

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace chorale::bench {

Baseline read_baseline(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) throw std::runtime_error("cannot read the baseline " + path);
  Baseline rows;
  while (std::getline(file, line)) {
    std::istringstream cells(line);
    std::string program, ranks, cpu, wall, peak, bytes;
    for (std::string* cell : {&program, &ranks, &cpu, &wall, &peak, &bytes}) std::getline(cells, *cell, '\t');
    if (cpu == "-") continue;
    rows[{program, std::stoi(ranks)}] = {std::stod(cpu), std::stod(peak), std::stoull(bytes)};
  }
  return rows;
}

}  // namespace chorale::bench
