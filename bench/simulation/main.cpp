// Compares predicted with measured times. docs/simulation.md has its output.
//   bench_simulation [--machine FILE] [--measured FILE] [--fit] [--all]

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <cmath>
#include <ctime>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "chorale/json.hpp"
#include "chorale/make_plan.hpp"
#include "measurements.hpp"

namespace chorale::bench {
namespace {

struct Judged {
  Measurement of;
  double predicted_us = 0;
  double error() const { return std::fabs(predicted_us / of.us - 1); }
};

double quantile(std::vector<double> values, double part) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[size_t(std::ceil(part * double(values.size()))) - 1];
}

void summarise(const std::vector<Judged>& all) {
  fmt::print("| calls | n | median error | P95 error | worst |\n| :-- | --: | --: | --: | --: |\n");
  const auto row = [&](const std::string& name, auto&& wanted) {
    std::vector<double> errors;
    for (const Judged& one : all) {
      if (wanted(one.of)) errors.push_back(100 * one.error());
    }
    if (errors.empty()) return;
    fmt::print("| {} | {} | {:.1f} % | {:.1f} % | {:.1f} % |\n", name, errors.size(), quantile(errors, 0.5),
               quantile(errors, 0.95), quantile(errors, 1));
  };
  row("fitted to", [](const Measurement& one) { return !one.held_out(); });
  row("held out", [](const Measurement& one) { return one.held_out(); });
  for (const uint32_t ranks : {2u, 4u}) {
    for (const bool eager : {false, true}) {
      row(fmt::format("held out, {} ranks, {}", ranks, eager ? "eager" : "graph"),
          [&](const Measurement& one) { return one.held_out() && one.ranks == ranks && one.eager == eager; });
    }
  }
  row("held out, LL128",
      [](const Measurement& one) { return one.held_out() && one.packet == PacketForm::ll128; });
  row("held out, to 64K", [](const Measurement& one) { return one.held_out() && one.bytes <= 65536; });
  row("held out, from 1M", [](const Measurement& one) { return one.held_out() && one.bytes >= 1 << 20; });
}

std::string size_word(uint64_t bytes) {
  for (const auto& [unit, letter] :
       {std::pair{uint64_t(1) << 30, "G"}, {uint64_t(1) << 20, "M"}, {1024, "K"}})
    if (bytes % unit == 0) return std::to_string(bytes / unit) + letter;
  return std::to_string(bytes);
}

constexpr std::string_view earliest = "2955ea6";

/// Names plans that bench/report.py of a commit timed for messages of a length. The last letter of a name may
/// be
/// `*`.
struct Timed {
  std::string_view code, collective;
  uint64_t most_bytes;
  std::vector<std::string_view> plans;
};

const std::vector<Timed>& timed_plans() {
  constexpr uint64_t megabyte = 1 << 20, any = ~uint64_t{0};
  static const std::vector<Timed> all{
      {earliest, "allreduce", megabyte, {"one_shot*", "two_shot*", "all_pairs_b16", "all_pairs_b64"}},
      {earliest, "allreduce", any, {"all_pairs_b64", "all_pairs_b128", "ring_b64", "staged_b64"}},
      {earliest, "allgather", megabyte, {"packets*", "direct_b16", "direct_b64"}},
      {earliest, "allgather", any, {"direct_b64", "by_peer_b*", "ring_b64", "by_port"}},
      {earliest, "reducescatter", megabyte, {"packets*", "direct_b16", "direct_b64"}},
      {earliest, "reducescatter", any, {"direct_b16", "direct_b64", "staged_b64"}},
      {earliest, "alltoall", megabyte, {"packets*", "direct_b16", "direct_b64"}},
      {earliest, "alltoall", any, {"direct_b64", "by_peer_b*", "in_turns_b64", "by_port"}},
      {"46a1542e", "", 8 * megabyte, {"*"}},
      {"46a1542e", "allgather", any, {"direct_b64", "by_peer_b*", "ring_b64", "by_port"}},
      {"46a1542e", "alltoall", any, {"direct_b64", "by_peer_b*", "in_turns_b64", "by_port"}},
      {"ad472882", "", 8 * megabyte, {"*"}},
      {"ad472882", "allreduce", any, {"all_pairs_b64", "all_pairs_b128", "ring_b*", "staged_b64"}},
      {"ad472882", "allgather", any, {"direct_b64", "by_peer_b*", "ring_b64", "by_port"}},
      {"ad472882", "reducescatter", any, {"direct_b*", "staged_b64"}},
  };
  return all;
}

/// Returns whether a plan was timed in the run that a measurement of a fastest plan is from.
bool timed(const std::string& plan, const Measurement& of) {
  const size_t end = plan.find('_');
  const std::string_view collective = std::string_view(plan).substr(0, end),
                         name = std::string_view(plan).substr(end + 1);
  if (of.code == "46a1542e") {
    for (const std::string_view later : {"_b8", "_b12", "_b24", "ring_b16", "ring_b128", "direct_b128"})
      if (plan.ends_with(later)) return false;
  }
  const std::string_view code =
      of.code == "41177b1" ? earliest : std::string_view(of.code);  // the same lists
  for (const Timed& row : timed_plans()) {
    if (row.code != code || of.bytes > row.most_bytes) continue;
    if (!row.collective.empty() && row.collective != collective) continue;
    return std::any_of(row.plans.begin(), row.plans.end(), [name](std::string_view wanted) {
      return wanted.ends_with('*') ? name.starts_with(wanted.substr(0, wanted.size() - 1)) : name == wanted;
    });
  }
  return false;
}

/// Says which plan and form the simulator would have chosen for a call whose measured fastest plan is known.
struct Choice {
  Measurement fastest;
  double fastest_us = 0;  ///< its prediction
  std::string plan;       ///< the predicted fastest
  double us = 0;          ///< its prediction
  double behind() const { return fastest_us / us - 1; }
};

Choice choose(const Judged& one, Plans& plans, const Machine& machine) {
  Choice choice{one.of, one.predicted_us, {}, 0};
  const std::string collective = one.of.plan.substr(0, one.of.plan.find('_'));
  // At the earliest commit only LL16 was timed.
  std::vector<PacketForm> forms{PacketForm::ll16};
  if (one.of.code == "46a1542e" || one.of.code == "ad472882")
    forms = {PacketForm::ll16, PacketForm::ll8, PacketForm::ll128};
  for (const std::string& name : plans.names(collective, one.of.ranks)) {
    if (!timed(name, one.of)) continue;
    for (const PacketForm form : forms) {
      Measurement other = one.of;
      other.plan = name;
      other.packet = form;
      const double us = plans.us(other, machine);
      if (!choice.plan.empty() && us >= choice.us) continue;
      choice.us = us;
      choice.plan = fmt::format("{}, {}", name, packet_form_names[size_t(form)]);
    }
  }
  return choice;
}

/// Prints which plans the simulator would have chosen. The time of a chosen plan was not measured, so the
/// simulator says by how much it expects the fastest to be slower.
void choices(const std::vector<Judged>& all, Plans& plans, const Machine& machine) {
  std::vector<Choice> found;
  for (const Judged& one : all) {
    if (one.of.from == "best" && !one.of.eager) found.push_back(choose(one, plans, machine));
  }
  fmt::print(
      "\n| ranks | size | measured fastest | us | predicted us | predicted fastest | predicted us | "
      "behind |\n| --: | --: | :-- | --: | --: | :-- | --: | --: |\n");
  for (const Choice& one : found) {
    fmt::print("| {} | {} | {}, {} | {:.2f} | {:.2f} | {} | {:.2f} | {:.0f} % |\n", one.fastest.ranks,
               size_word(one.fastest.bytes), one.fastest.plan, packet_form_names[size_t(one.fastest.packet)],
               one.fastest.us, one.fastest_us, one.plan, one.us, 100 * one.behind());
  }
  fmt::print(
      "\n| sizes | choices | the same plan | the same or within 3 % | within 3 % | within 5 % |\n"
      "| :-- | --: | --: | --: | --: | --: |\n");
  for (const bool fours : {true, false}) {
    size_t n = 0, same = 0, right = 0, near = 0, nearly = 0;
    for (const Choice& one : found) {
      if (fours && std::countr_zero(one.fastest.bytes) % 2 != 0) continue;
      ++n;
      const bool found_it = one.plan.starts_with(one.fastest.plan + ",");
      same += found_it;
      right += found_it || one.behind() <= 0.03;
      near += one.behind() <= 0.03;
      nearly += one.behind() <= 0.05;
    }
    fmt::print("| {} | {} | {} | {} | {} | {} |\n", fours ? "1K to 1G in steps of four" : "all", n, same,
               right, near, nearly);
  }
}

void each(const std::vector<Judged>& all) {
  fmt::print(
      "\n| ranks | plan | form | size | mode | us | predicted | error | held out | code |\n"
      "| --: | :-- | :-- | --: | :-- | --: | --: | --: | :-- | :-- |\n");
  for (const Judged& one : all) {
    fmt::print("| {} | {} | {} | {} | {} | {:.2f} | {:.2f} | {:+.1f} % | {} | {} |\n", one.of.ranks,
               one.of.plan, packet_form_names[size_t(one.of.packet)], size_word(one.of.bytes),
               one.of.eager ? "eager" : "graph", one.of.us, one.predicted_us,
               100 * (one.predicted_us / one.of.us - 1), one.of.held_out() ? "yes" : "", one.of.code);
  }
}

/// Returns seconds of processor time, because others may use the machine.
double seconds_since(std::clock_t start) { return double(std::clock() - start) / CLOCKS_PER_SEC; }

/// Prints how many operations per second the simulator runs for a ring all-reduce, with moves of one piece
/// and of all pieces.
void ring_rate(const Machine& machine, int ranks) {
  const Plan plan = make_plan("allreduce_ring_b1", ranks);
  Simulator simulator(plan);
  std::clock_t start = std::clock();
  const SimulatedCall call{.bytes = uint64_t(ranks) << 11};
  const double ops = double(simulator.simulate(call, machine).ops);
  const double first = seconds_since(start);
  fmt::print("allreduce_ring of {} ranks, {:.3g} operations\n", ranks, ops);
  const auto print = [&](const char* what, double seconds) {
    fmt::print("{:<32} {:8.2f} s {:8.1f} million per second\n", what, seconds, ops / seconds / 1e6);
  };
  print("executed, and simulated", first);
  for (const int shift : {11, 20}) {
    start = std::clock();
    simulator.simulate({.bytes = uint64_t(ranks) << shift}, machine);
    print(fmt::format("simulated, chunks of {}", size_word(uint64_t(1) << shift)).c_str(),
          seconds_since(start));
  }
}

/// Prints how many shipped plans per second the simulator runs.
void shipped_rate(const Machine& machine, uint32_t ranks) {
  const Plans plans(CHORALE_SOURCE_DIR "/plans/shipped");
  std::vector<double> milliseconds;
  for (const char* const collective : {"allreduce", "allgather", "reducescatter", "alltoall"}) {
    for (const std::string& name : plans.names(collective, ranks)) {
      const Plan plan = load(plans.path(name, ranks));
      const std::clock_t start = std::clock();
      simulate(plan, {.bytes = 1 << 20}, machine);
      milliseconds.push_back(1e3 * seconds_since(start));
    }
  }
  fmt::print(
      "{} shipped plans of {} ranks at 1M, executed and simulated: median {:.2f} ms, slowest {:.1f} ms\n",
      milliseconds.size(), ranks, quantile(milliseconds, 0.5), quantile(milliseconds, 1));
}

using Json = nlohmann::ordered_json;

/// Returns a number with three digits, as in machine files.
double rounded(double value) { return std::stod(fmt::format("{:.3g}", value)); }

/// Prints the table of parameters.
void print_parameters(const Json& file) {
  struct Row {
    std::string key;
    const char* summary;
  };
  const Row rows[] = {
#define CHORALE_NS(name, summary) {#name "_ns", summary},
#define CHORALE_GB_S(name, summary) {#name "_gb_s", summary},
#define CHORALE_COUNT(name, summary) {#name, summary},
#include "chorale/machine.def"
  };
  fmt::print("| parameter | {} | event or action | source |\n| :-- | --: | :-- | :-- |\n",
             file["machine"].get<std::string>());
  for (const Row& row : rows) {
    fmt::print("| `{}` | {:g} | {} | {} |\n", row.key, file["parameters"][row.key].get<double>(), row.summary,
               file["notes"][row.key].get<std::string>());
  }
  fmt::print("\n");
}

/// Fits the parameters whose note in the machine's file is `fitted`, and writes the file.
Machine fit_file(const std::string& path, const std::vector<Measurement>& measurements, Plans& plans,
                 int starts) {
  std::ifstream in(path);
  Json file = Json::parse(in);
  std::vector<std::string> keys;
  for (const auto& [key, note] : file["notes"].items())
    if (note == "fitted") keys.push_back(key);
  const Json found = Json::parse(machine_text(fit(load_machine(path), measurements, plans, keys, starts)));
  for (auto& [key, value] : file["parameters"].items()) value = rounded(found["parameters"][key]);
  std::ofstream(path) << file.dump(2) << "\n";
  return load_machine(path);
}

int run(int argc, char** argv) {
  CLI::App app("Compares the simulator's predictions with measured times");
  std::string machine_file = CHORALE_SOURCE_DIR "/plans/machines/nvidia_h200.json";
  std::string measured = CHORALE_SOURCE_DIR "/bench/simulation/measured_h200.tsv";
  bool every = false, fitted = false;
  int ranks = 0, starts = 8;
  app.add_option("--machine", machine_file, "Its file");
  app.add_option("--measured", measured, "The table of measurements");
  app.add_flag("--fit", fitted, "Fit the parameters first, and write them to the file of the machine");
  app.add_option("--starts", starts, "From how many machines the fit begins");
  app.add_flag("--all", every, "Every parameter and call, too");
  app.add_option("--rate", ranks,
                 "Print only the simulator's speed, for a ring of this many ranks and for shipped plans");
  CLI11_PARSE(app, argc, argv);
  Machine machine = load_machine(machine_file);
  if (ranks > 0) {
    ring_rate(machine, ranks);
    shipped_rate(machine, 8);
    return 0;
  }
  const std::vector<Measurement> measurements = read_measurements(measured);
  Plans plans(CHORALE_SOURCE_DIR "/plans/shipped");
  if (fitted) machine = fit_file(machine_file, measurements, plans, starts);
  if (every) {
    std::ifstream in(machine_file);
    print_parameters(Json::parse(in));
  }
  std::vector<Judged> all;
  for (const Measurement& one : measurements) all.push_back({one, plans.us(one, machine)});
  summarise(all);
  choices(all, plans, machine);
  if (every) each(all);
  return 0;
}

}  // namespace
}  // namespace chorale::bench

int main(int argc, char** argv) {
  try {
    return chorale::bench::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 2;
  }
}
