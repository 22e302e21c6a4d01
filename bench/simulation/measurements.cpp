#include "measurements.hpp"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdexcept>

#include "chorale/json.hpp"
#include "chorale/make_plan.hpp"

namespace chorale::bench {

bool Measurement::held_out() const { return std::countr_zero(bytes) % 4 != 2; }

std::vector<Measurement> read_measurements(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::vector<Measurement> all;
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#' || line.starts_with("ranks\t")) continue;
    std::istringstream words(line);
    Measurement one;
    std::string packet, mode, barriers;
    words >> one.ranks >> one.plan >> packet >> one.bytes >> mode >> one.us >> barriers >> one.code >>
        std::ws;
    std::getline(words, one.from);
    const std::optional<PacketForm> form = packet_form_of(packet);
    if (!words || !form || (mode != "graph" && mode != "eager") || one.us <= 0 ||
        (barriers != "plain" && barriers != "relaxed"))
      throw std::runtime_error(path + ": this line is not a measurement: " + line);
    one.packet = *form;
    one.eager = mode == "eager";
    one.plain_barriers = barriers == "plain";
    all.push_back(one);
  }
  return all;
}

Plan Plans::make(const Measurement& of) const {
  const std::string file = path(of.plan, of.ranks);
  Plan plan = std::filesystem::exists(file) ? load(file) : make_plan(of.plan, int(of.ranks));
  if (!of.plain_barriers) return plan;
  // Earlier plans differ from the shipped ones only in this.
  for (Gpu& gpu : plan.gpus) {
    for (ThreadBlock& block : gpu.threadblocks) {
      for (Op& op : block.ops) {
        if (op.code == Opcode::relaxed_signal) op.code = Opcode::signal;
        if (op.code == Opcode::relaxed_wait) op.code = Opcode::wait;
      }
    }
  }
  return plan;
}

double Plans::us(const Measurement& of, const Machine& machine) {
  if (!of.plan.ends_with("_*")) return us_of_plan(of, machine);
  double least = std::numeric_limits<double>::infinity();
  for (const std::string& name : names(of.plan.substr(0, of.plan.size() - 2), of.ranks)) {
    if (name.find("_packets") == name.npos && name.find("_shot") == name.npos) continue;
    Measurement one = of;
    one.plan = name;
    least = std::min(least, us_of_plan(one, machine));
  }
  return least;
}

double Plans::us_of_plan(const Measurement& of, const Machine& machine) {
  Known& known = known_[{of.plan, of.ranks, of.plain_barriers}];
  if (!known.simulator) {
    known.plan = make(of);
    known.simulator = std::make_unique<Simulator>(known.plan);
  }
  const SimulatedCall call{.bytes = of.bytes, .dtype = DType::bf16, .packet = of.packet, .eager = of.eager};
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
    if (name.starts_with(collective + "_") && name.ends_with(end) &&
        name.find("quantised") == std::string::npos)
      names.push_back(name.substr(0, name.size() - end.size()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace chorale::bench
