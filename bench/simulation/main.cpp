// Compares predicted with measured times. docs/simulation.md has its output.
//   bench_simulation [--machine FILE] [--measured FILE] [--fit KEY,...] [--all]

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <ctime>
#include <iostream>

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
  row("held out, to 64K", [](const Measurement& one) { return one.held_out() && one.bytes <= 65536; });
  row("held out, from 1M", [](const Measurement& one) { return one.held_out() && one.bytes > 65536; });
}

std::string size_word(uint64_t bytes) {
  for (const auto& [unit, letter] :
       {std::pair{uint64_t(1) << 30, "G"}, {uint64_t(1) << 20, "M"}, {1024, "K"}})
    if (bytes % unit == 0) return std::to_string(bytes / unit) + letter;
  return std::to_string(bytes);
}

/// Prints which plan the simulator would have chosen, when the measured fastest one is known. The time of the
/// chosen plan was not measured, so the simulator says by how much it expects the fastest to be slower.
void choices(const std::vector<Judged>& all, Plans& plans, const Machine& machine) {
  fmt::print(
      "\n| ranks | size | measured fastest | us | predicted us | predicted fastest | predicted us | "
      "behind |\n| --: | --: | :-- | --: | --: | :-- | --: | --: |\n");
  size_t same = 0, near = 0, n = 0;
  for (const Judged& one : all) {
    if (one.of.from != "best" || one.of.eager) continue;
    const std::string collective = one.of.plan.substr(0, one.of.plan.find('_'));
    std::string fastest;
    double least = 0;
    for (const std::string& name : plans.names(collective, one.of.ranks)) {
      const double us = plans.us(one.of.ranks, name, PacketForm::ll16, one.of.bytes, false, machine);
      if (!fastest.empty() && us >= least) continue;
      least = us;
      fastest = name;
    }
    const double behind = one.predicted_us / least - 1;
    ++n;
    same += fastest == one.of.plan;
    near += behind <= 0.05;
    fmt::print("| {} | {} | {} | {:.2f} | {:.2f} | {} | {:.2f} | {:.0f} % |\n", one.of.ranks,
               size_word(one.of.bytes), one.of.plan, one.of.us, one.predicted_us, fastest, least,
               100 * behind);
  }
  fmt::print(
      "\nThe fastest plan by prediction is the measured one in {} of {} cases; the measured one is "
      "predicted to be within 5 % of it in {}.\n",
      same, n, near);
}

void each(const std::vector<Judged>& all) {
  fmt::print(
      "\n| ranks | plan | size | mode | us | predicted | error | held out |\n"
      "| --: | :-- | --: | :-- | --: | --: | --: | :-- |\n");
  for (const Judged& one : all) {
    fmt::print("| {} | {} | {} | {} | {:.2f} | {:.2f} | {:+.1f} % | {} |\n", one.of.ranks, one.of.plan,
               size_word(one.of.bytes), one.of.eager ? "eager" : "graph", one.of.us, one.predicted_us,
               100 * (one.predicted_us / one.of.us - 1), one.of.held_out() ? "yes" : "");
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

int run(int argc, char** argv) {
  CLI::App app("Compares the simulator's predictions with measured times");
  std::string machine_file = CHORALE_SOURCE_DIR "/plans/machines/nvidia_h200.json";
  std::string measured = CHORALE_SOURCE_DIR "/bench/simulation/measured_h200.tsv";
  std::vector<std::string> fixed;
  bool every = false, fitted = false;
  int ranks = 0;
  app.add_option("--machine", machine_file, "Its file");
  app.add_option("--measured", measured, "The table of measurements");
  app.add_flag("--fit", fitted, "Fit the parameters first, and print the machine instead of tables");
  app.add_option("--fixed", fixed, "Parameters that the fit does not change")->delimiter(',');
  app.add_flag("--all", every, "Every call, too");
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
  if (fitted) {
    machine = fit(machine, measurements, plans, fixed);
    std::cout << machine_text(machine);
    return 0;
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
