#include "measurements.hpp"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "chorale/json.hpp"

namespace chorale::bench {

bool Measurement::held_out() const { return std::countr_zero(bytes) % 4 == 0; }

std::vector<Measurement> read_measurements(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::vector<Measurement> all;
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#' || line.starts_with("ranks\t")) continue;
    std::istringstream words(line);
    Measurement one;
    std::string packet, mode;
    words >> one.ranks >> one.plan >> packet >> one.bytes >> mode >> one.us >> std::ws;
    std::getline(words, one.from);
    const std::optional<PacketForm> form = packet_form_of(packet);
    if (!words || !form || (mode != "graph" && mode != "eager") || one.us <= 0)
      throw std::runtime_error(path + ": this line is not a measurement: " + line);
    one.packet = *form;
    one.eager = mode == "eager";
    all.push_back(one);
  }
  return all;
}

double Plans::us(uint32_t ranks, const std::string& plan, PacketForm packet, uint64_t bytes, bool eager,
                 const Machine& machine) {
  Known& known = known_[{plan, ranks}];
  if (!known.simulator) {
    known.plan = load(path(plan, ranks));
    known.simulator = std::make_unique<Simulator>(known.plan);
  }
  const SimulatedCall call{.bytes = bytes, .dtype = DType::bf16, .packet = packet, .eager = eager};
  return known.simulator->simulate(call, machine).ns / 1e3;
}

std::string Plans::path(const std::string& plan, uint32_t ranks) const {
  return folder_ + "/" + plan + "_" + std::to_string(ranks) + ".json";
}

std::vector<std::string> Plans::names(const std::string& collective, uint32_t ranks) const {
  const std::string end = "_" + std::to_string(ranks) + ".json";
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(collective + "_") && name.ends_with(end))
      names.push_back(name.substr(0, name.size() - end.size()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace chorale::bench
