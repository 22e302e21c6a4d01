// Measures how the cost of compiling grows: CPU time and peak memory of four programs at 8 to 256 ranks and
// more, beside those of MSCCL++'s DSL. Prints the table of docs/compile-time.md, and exits with 1 if it
// misses a goal.
//
//   bench_compile [--baseline TSV] [--most-ranks N] [--program NAME]... [--commit TEXT]

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>

#include "bench/compile/baseline.hpp"
#include "bench/compile/measure.hpp"
#include "tools/bench/machine.hpp"
#include "tools/rank_gpus.hpp"

namespace {

using chorale::bench::Baseline;
using chorale::bench::Sample;

/// Gives the number of ranks at which a program may take at most a hundredth of the baseline's CPU time and a
/// tenth of its memory.
constexpr int bar_ranks = 256;
constexpr double times_faster = 100, times_smaller = 10;
/// Limits how much the time per call, or per operand, may grow up to 256 ranks.
constexpr double most_growth = 2;

struct Subject {
  const char* program;
  const char* baseline;  ///< the program's name in the baseline
  int most_ranks;        ///< with more ranks the plan does not fit into the memory of a common machine
};

constexpr const char* introduction = R"(# Compile time and memory

This page compares the compile time of Chorale with that of MSCCL++'s DSL.
`bench_compile --baseline FILE --most-ranks 1024` writes it; FILE has the figures of MSCCL++'s DSL. The programs are those of
`tests/mscclpp`, which make the same calls as MSCCL++'s programs. Each program is recorded, checked, rewritten, checked again and
written to a file as JSON, in a separate process.

- *theirs*, to the right of a figure of Chorale, is that of MSCCL++'s DSL for the same program, on a machine of the same kind.
  Others used both machines at the same time. *ratio* is theirs divided by Chorale's. A *-* means that MSCCL++'s DSL did not run
  the program.
- *CPU s* is the user and system time of the process: the minimum of at least five runs, or of fewer if a run is long. Memory is
  the peak of the process.
- *calls* are the recorded operations of all instances. *ops* are the operations of the plan, after fusion. *operands* are the
  buffers and ids that these name: up to 10 sources and 8 channels per operation. With more ranks an operation has more operands,
  so it takes longer, while the time per operand stays the same.
- At 8 ranks most of the time is the start of the process.

The goals at 256 ranks are a hundredth of the CPU time and a tenth of the memory. Up to 256 ranks a call, and an operand, should
take at most twice as long as with fewer ranks. There is no such goal for an operation: in `single_node_allreduce_pkt` it takes
more than three times as long at 256 ranks as at 16, because it has two and a half times the operands.

)";

constexpr Subject subjects[] = {{"single_node_allreduce", "allreduce", 1024},
                                {"single_node_allreduce_pkt", "allreduce_pkt", 256},
                                {"single_node_allgather_pkt", "allgather_pkt", 1024},
                                {"single_node_allgather_ring", "allgather_ring_i32(patched)", 512}};

std::string cell(double value, const char* format) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string megabytes(uint64_t bytes) { return cell(double(bytes) * 1e-6, "%.1f"); }

std::string seconds(double value) { return cell(value, value < 0.1 ? "%.4f" : "%.2f"); }

/// Returns a ratio as a table cell. If `ok` is false, the cell notes that the ratio misses its goal.
std::string judged(double ratio, const char* format, bool ok) {
  return cell(ratio, format) + (ok ? "" : " (missed)");
}

/// Judges how the time of one program grows with the number of ranks.
class Growth {
 public:
  std::string judge(int ranks, double each, bool& good) {
    least_ = std::min(least_, each);
    const bool flat = ranks > bar_ranks || each <= most_growth * least_;
    good &= flat;
    return judged(each, "%.0f", flat);
  }

 private:
  double least_ = 1e300;
};

/// Measures one program at all sizes. Returns false if it misses a goal.
bool measure_program(const Subject& subject, int most_ranks, const Baseline& baseline) {
  constexpr const char* columns[] = {"ranks",       "calls",     "ops",           "operands", "record",
                                     "compile",     "write",     "CPU s",         "theirs",   "ratio",
                                     "peak MB",     "theirs",    "ratio",         "JSON MB",  "theirs",
                                     "ns per call", "ns per op", "ns per operand"};
  std::printf("\n## %s\n\n|", subject.program);
  for (const char* column : columns) std::printf(" %s |", column);
  std::printf("\n|");
  for (size_t column = 0; column < std::size(columns); ++column) std::printf(" --: |");
  std::printf("\n");
  bool good = true;
  Growth of_calls, of_operands;
  for (int ranks = 8; ranks <= std::min(most_ranks, subject.most_ranks); ranks *= 2) {
    const Sample sample = chorale::bench::measure(subject.program, ranks);
    const auto each = [&sample](uint64_t count) { return sample.cpu() * 1e9 / double(count); };
    std::printf("| %d | %llu | %llu | %llu | %s | %s | %s | %s |", ranks,
                static_cast<unsigned long long>(sample.calls), static_cast<unsigned long long>(sample.ops),
                static_cast<unsigned long long>(sample.operands), seconds(sample.record).c_str(),
                seconds(sample.compile).c_str(), seconds(sample.write).c_str(),
                seconds(sample.cpu()).c_str());
    const auto theirs = baseline.find({subject.baseline, ranks});
    if (theirs == baseline.end()) {
      std::printf(" - | - | %s | - | - | %s | - |", megabytes(sample.peak_bytes).c_str(),
                  megabytes(sample.json_bytes).c_str());
    } else {
      const double faster = theirs->second.cpu_seconds / sample.cpu();
      const double smaller = theirs->second.peak_megabytes * 1e6 / double(sample.peak_bytes);
      const bool fast = ranks != bar_ranks || faster >= times_faster;
      const bool small = ranks != bar_ranks || smaller >= times_smaller;
      std::printf(" %s | %s | %s | %s | %s | %s | %s |", seconds(theirs->second.cpu_seconds).c_str(),
                  judged(faster, "%.0f", fast).c_str(), megabytes(sample.peak_bytes).c_str(),
                  cell(theirs->second.peak_megabytes, "%.1f").c_str(), judged(smaller, "%.1f", small).c_str(),
                  megabytes(sample.json_bytes).c_str(), megabytes(theirs->second.json_bytes).c_str());
      good &= fast && small;
    }
    const std::string a_call = of_calls.judge(ranks, each(sample.calls), good);
    std::printf(" %s | %.0f | %s |\n", a_call.c_str(), each(sample.ops),
                of_operands.judge(ranks, each(sample.operands), good).c_str());
    std::fflush(stdout);
  }
  return good;
}

/// Names the plan whose loading time has a goal, and the goal in seconds.
constexpr const char* loaded_program = "single_node_allreduce";
constexpr double most_load = 1e-3;

/// Measures the loading of a plan from its file. Returns false if it misses the goal.
bool measure_loads(int most_ranks) {
  std::printf(
      "\n## Loading %s\n\nTimes are milliseconds of wall time, for all ranks and for one rank. The goal is "
      "less "
      "than 1 ms for all of 8 ranks.\n\n",
      loaded_program);
  std::printf("| ranks | JSON KB | CBOR KB | JSON | CBOR | JSON, one | CBOR, one |\n");
  std::printf("| --: | --: | --: | --: | --: | --: | --: |\n");
  bool good = true;
  for (const int ranks : {8, 64}) {
    if (ranks > most_ranks) break;
    const chorale::bench::LoadTimes times = chorale::bench::measure_loading(loaded_program, ranks);
    const auto within = [&](double time) {
      const bool quick = ranks > 8 || time < most_load;
      good &= quick;
      return judged(time * 1e3, "%.3f", quick);
    };
    const std::string json = within(times.json), cbor = within(times.cbor);
    std::printf("| %d | %.0f | %.0f | %s | %s | %.3f | %.3f |\n", ranks, double(times.json_bytes) * 1e-3,
                double(times.cbor_bytes) * 1e-3, json.c_str(), cbor.c_str(), times.json_rank * 1e3,
                times.cbor_rank * 1e3);
    std::fflush(stdout);
  }
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Measures CPU time and memory of compiling, beside MSCCL++'s");
  std::string baseline_path, commit = "unknown";
  int most_ranks = bar_ranks;
  std::vector<std::string> wanted;
  app.add_option("--baseline", baseline_path, "Times of MSCCL++'s DSL: a table like mscclpp_compile.tsv");
  app.add_option("--most-ranks", most_ranks, "The largest number of ranks");
  app.add_option("--program", wanted, "Measure only these programs");
  app.add_option("--commit", commit, "The commit that was measured, for the table");
  CLI11_PARSE(app, argc, argv);
  try {
    const Baseline baseline =
        baseline_path.empty() ? Baseline{} : chorale::bench::read_baseline(baseline_path);
    std::printf("%s| machine | value |\n| --- | --- |\n", introduction);
    for (const auto& [name, value] : chorale::tools::machine_facts({}, commit))
      std::printf("| %s | %s |\n", name.c_str(), value.c_str());
    bool good = true;
    for (const Subject& subject : subjects) {
      if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), subject.program) == wanted.end())
        continue;
      good &= measure_program(subject, most_ranks, baseline);
    }
    if (wanted.empty()) good &= measure_loads(most_ranks);
    return good ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
