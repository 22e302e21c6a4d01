#include "tools/bench/machine.hpp"

#include <fstream>
#include <map>
#include <thread>

#include "tools/command.hpp"
#include "tools/version.hpp"

namespace chorale::tools {
namespace {

std::string cpu_words() {
  std::ifstream file("/proc/cpuinfo");
  std::string model;
  for (std::string line; std::getline(file, line) && model.empty();) {
    if (line.starts_with("model name") && line.find(": ") != line.npos)
      model = line.substr(line.find(": ") + 2);
  }
  return count(std::thread::hardware_concurrency(), "core") + (model.empty() ? "" : " of " + model);
}

}  // namespace

std::string gpu_words(const RankGpus& gpus) {
  std::map<std::string, unsigned> numbers;
  for (const std::string& name : gpus.names) ++numbers[name];
  std::vector<std::string> words;
  for (const auto& [name, number] : numbers) words.push_back(std::to_string(number) + " x " + name);
  return words.empty() ? "none" : join(words);
}

Facts machine_facts(const RankGpus& gpus, const std::string& commit) {
  const std::string known = commit.empty() ? built_from : commit;
  Facts facts{
      {"chorale", CHORALE_VERSION}, {"commit", known.empty() ? "unknown" : known}, {"cpu", cpu_words()}};
  if (!gpus.names.empty()) {
    facts.emplace_back("gpus", gpu_words(gpus));
    facts.emplace_back("driver", gpus.driver.empty() ? "unknown" : gpus.driver);
    facts.emplace_back("cuda", gpus.toolkit);
  }
  return facts;
}

}  // namespace chorale::tools
