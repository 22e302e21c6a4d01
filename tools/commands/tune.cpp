// chorale tune finds the fastest shipped plan on this machine for each collective, type and size.

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>

#include "chorale/collective.hpp"
#include "chorale/needs.hpp"
#include "chorale/reduction_order.hpp"
#include "tools/bench/results.hpp"
#include "tools/bench/subject.hpp"
#include "tools/completion.hpp"
#include "tools/run_options.hpp"
#include "tools/tuned.hpp"

namespace chorale::tools {
namespace {

/// Locks the folder of `file` while it exists, and waits in the constructor for processes that hold the lock.
/// It leaves no file behind. If the folder does not exist, or its file system has no locks, it does nothing.
class FolderLock {
 public:
  explicit FolderLock(const std::string& file) {
    std::error_code none;  // an error means that the folder does not exist; writing then reports it
    const std::filesystem::path folder =
        std::filesystem::weakly_canonical(std::filesystem::absolute(file, none), none).parent_path();
    folder_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (folder_ >= 0 && ::flock(folder_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~FolderLock() {
    if (folder_ >= 0) ::close(folder_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int folder_;
};

struct TuneArguments {
  std::vector<std::string> what, plans;
  RunOptions run;
  std::string bytes, output, limit = "60s";
  unsigned warmup = 5, calls = 20;
  bool no_times = false;
};

/// Holds a collective's plans, and the ways to run each.
struct Candidates {
  std::vector<NamedPlan> plans;
  std::vector<TuneConfig> configs;
  std::vector<const NamedPlan*> of;  ///< by configuration
  std::vector<bool> rank_order;  ///< by configuration: true if the table's choice in rank order may use it
};

/// \param limit  the most thread blocks of a plan; 0: any number
Candidates candidates_of(const TuneArguments& options, const std::string& collective, uint32_t limit) {
  Candidates all;
  all.plans = shipped_plans(collective, options.run.ranks);
  std::vector<std::string> names;
  for (const NamedPlan& named : all.plans) names.push_back(named.name);
  for (const std::string& name : options.plans) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      throw Failure(Exit::command_wrong, unknown("plan of " + collective, name, names),
                    "the plans for " + count(options.run.ranks, "rank") + " are " + join(names));
    }
  }
  uint32_t fewest = 0;
  for (const NamedPlan& named : all.plans) {
    const bool asked =
        std::find(options.plans.begin(), options.plans.end(), named.name) != options.plans.end();
    if (!options.plans.empty() && !asked) continue;
    const uint32_t blocks = named.plan.thread_blocks();
    fewest = fewest == 0 ? blocks : std::min(fewest, blocks);
    if (limit != 0 && blocks > limit) continue;
    const bool rank_order = collective_reduces(collective) && in_rank_order(named.plan);
    for (const std::string_view form : packet_form_names) {
      TuneConfig config;
      config.plan = named.name;
      config.blocks = blocks;
      if (named.plan.protocol == Protocol::LL) config.packet = form;
      if (!options.run.packet.empty() && !config.packet.empty() && config.packet != options.run.packet)
        continue;
      all.configs.push_back(config);
      all.of.push_back(&named);
      all.rank_order.push_back(rank_order);
      if (config.packet.empty()) break;
    }
  }
  if (all.configs.empty() && fewest > limit && limit != 0) {
    throw Failure(Exit::command_wrong,
                  "the plans of " + collective + " have at least " + count(fewest, "thread block") +
                      ", but the limit is " + std::to_string(limit),
                  "--max-blocks sets another limit");
  }
  return all;
}

/// Measures one plan at one size in a child process, and compares its results before and after the timing.
Measurement measure(const TuneArguments& options, const Config& config, const NamedPlan& named,
                    const TuneConfig& candidate, uint64_t bytes) {
  BenchRequest request;
  request.sizes = {bytes};
  request.ranks = options.run.ranks;
  request.dtype = options.run.type();
  if (!options.run.op.empty())
    request.override_op = options.run.reduce_op(true);  // if no plan reduces, the option was refused before
  request.packet = packet_form_of(candidate.packet);
  request.graph = config.backend.value == "cuda";  // times the plan without the launch
  request.eager = !request.graph;
  request.processes = options.run.as_processes(config);
  request.warmup = options.warmup;
  request.calls = options.calls;
  request.subjects.push_back(subject_of(named, request));
  const BenchReports reports(request);
  Launch launch;
  launch.ranks = request.ranks;
  launch.processes = request.processes;
  const std::string error =
      run_ranks(launch, config, [&](World& world) { bench_rank(world, request, config, reports); });
  if (!error.empty()) return {false, 0, error};
  const BenchResults results = gather(request, reports, {});
  const Result& result = results.at(0, 0, request.graph ? Mode::graph : Mode::eager);
  if (!result.finished) return {false, 0, result.note};
  if (result.wrong || !result.what.empty()) return {false, 0, "wrong result: " + result.what};
  if (!result.checked) return {false, 0, "the expected result is not known"};
  return {true, result.us * 1000, ""};
}

/// Returns the position of the fastest plan; if `rank_order`, only among plans that add up in the order of
/// the ranks.
std::optional<size_t> fastest(const Candidates& candidates, const std::vector<Measurement>& measured,
                              bool rank_order) {
  std::optional<size_t> best;
  for (size_t at = 0; at < measured.size(); ++at) {
    if (!measured[at].correct || (rank_order && !candidates.rank_order[at])) continue;
    if (!best || measured[at].ns < measured[*best].ns) best = at;
  }
  return best;
}

/// Puts the plans that were right into the table, for all limits of thread blocks.
void set_all(TuneTable& table, const TuneKey& key, const Candidates& candidates,
             const std::vector<Measurement>& measured, bool rank_order) {
  std::vector<TimedPlan> timed;
  for (size_t at = 0; at < measured.size(); ++at) {
    if (measured[at].correct && (!rank_order || candidates.rank_order[at]))
      timed.push_back({candidates.configs[at], measured[at].ns});
  }
  set_by_blocks(table, key, timed);
}

/// Returns the stream for rows: stderr if the table goes to standard output.
std::FILE* rows_of(const TuneArguments& options) { return options.output == "-" ? stderr : stdout; }

/// Prints a line for the chosen plan, another line if a different plan is the fastest in rank order, and the
/// reasons of the plans that failed.
void report(const TuneArguments& options, const TuneKey& key, const Candidates& candidates,
            const std::vector<Measurement>& measured) {
  for (size_t at = 0; at < measured.size(); ++at) {
    if (measured[at].correct) continue;
    std::cerr << "note: " << key.kind << " of " << format_bytes(key.bytes) << " by "
              << words_of(candidates.configs[at]) << ": " << measured[at].why << "\n";
  }
  const std::optional<size_t> best = fastest(candidates, measured, false);
  std::FILE* const rows = rows_of(options);
  for (const bool rank_order : {false, true}) {
    const std::optional<size_t> chosen = rank_order ? fastest(candidates, measured, true) : best;
    if (rank_order && (!chosen || chosen == best)) break;
    std::fprintf(rows, "%-14s %12llu  %-8s", key.kind.c_str(), static_cast<unsigned long long>(key.bytes),
                 dtype_name(key.dtype));
    if (!chosen) {
      std::fprintf(rows, "  none of %zu", measured.size());
    } else {
      if (!options.no_times) std::fprintf(rows, "  %10.2f", measured[*chosen].ns / 1000);
      std::fprintf(rows, "  %s%s", words_of(candidates.configs[*chosen]).c_str(),
                   rank_order ? ", in rank order" : "");
    }
    std::fprintf(rows, "\n");
  }
  std::fflush(rows);
}

TuneTable load_if_there(const std::string& file) {
  std::error_code error;
  return std::filesystem::is_regular_file(file, error) ? TuneTable::load(file) : TuneTable();
}

/// Puts the rows of `found` for `keys` into the table of a file. It keeps rows that other processes have
/// written meanwhile, because they may tune for other sizes, collectives or types at the same time.
void add_to(const std::string& file, const TuneTable& found, const std::vector<TuneKey>& keys) {
  const FolderLock lock(file);
  TuneTable table = load_if_there(file);
  for (const TuneKey& key : keys) table.take(key, found);
  write_output(file, table.text());  // writes all of it or nothing
}

Exit tune_it(const TuneArguments& options) {
  bool any_reduces = false;
  for (const std::string& word : options.what) {
    any_reduces = any_reduces || collective_reduces(word);
    if (names_collective(word)) continue;
    throw Failure(Exit::command_wrong, unknown("collective", word, collective_words()),
                  "plans are tuned for " + join(collective_words()));
  }
  options.run.reduce_op(any_reduces);
  const Config config = options.run.config();
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(parse_duration(options.limit));
  if (limit.count() == 0) {
    throw Failure(Exit::command_wrong, "--limit is '" + options.limit + "', but a candidate may hang",
                  "give each 1ms or more");
  }
  const bool cuda = config.backend.value == "cuda";
  const TunedFor machine = tuned_for(config, options.run.gpus(config, options.run.ranks), options.run.ranks);
  TunedFor in_order = machine;
  in_order.rank_order = true;
  const std::string file = options.output.empty() ? tuned_file(machine) : options.output;
  const bool printed = file == "-";
  if (!printed) load_if_there(file);  // refuses a file that is not a table before the long run
  TuneTable table;                    // has the rows of this run
  std::vector<TuneKey> keys;
  std::error_code error;
  if (options.output.empty()) {
    std::filesystem::create_directories(std::filesystem::path(file).parent_path(), error);
  }
  try {
    need_writable(file);
  } catch (const Failure& failure) {
    if (!options.output.empty()) throw;
    throw Failure(failure.exit, failure.what(),
                  "-o names another file, which run and bench take with --tuned");
  }
  bool any = false;
  Progress progress;
  double collectives_done = 0;
  for (const std::string& collective : options.what) {
    const Candidates candidates = candidates_of(options, collective, *machine.max_blocks);
    const std::vector<uint64_t> sizes =
        sizes_for(options.bytes, cuda ? "1K:1G:4" : "1K:1M:4", options.run.ranks, options.run.type());
    const double each = 1 / double(candidates.configs.size() * sizes.size());
    double tried = 0;
    for (const uint64_t bytes : sizes) {
      const bool in_place = candidates.plans.front().plan.inplace;
      TuneKey key = plan_key(machine, collective, bytes, options.run.type(), in_place);
      key.max_blocks = *machine.max_blocks;
      const std::vector<Measurement> measured = tune(
          table, key, candidates.configs,
          [&](const TuneConfig& candidate) {
            const size_t at =
                size_t(std::find(candidates.configs.begin(), candidates.configs.end(), candidate) -
                       candidates.configs.begin());
            return measure(options, config, *candidates.of[at], candidate, bytes);
          },
          limit,
          [&](const TuneConfig& candidate) {
            progress(collective + " of " + format_bytes(bytes) + " by " + words_of(candidate),
                     (collectives_done + tried++ * each) / double(options.what.size()));
          });
      progress.clear();
      keys.push_back(key);
      set_all(table, key, candidates, measured, false);
      if (fastest(candidates, measured, true)) {
        keys.push_back(plan_key(in_order, collective, bytes, options.run.type(), in_place));
        keys.back().max_blocks = key.max_blocks;
        set_all(table, keys.back(), candidates, measured, true);
      }
      report(options, key, candidates, measured);
      any = any || std::any_of(measured.begin(), measured.end(), [](const auto& one) { return one.correct; });
      if (!printed)
        add_to(file, table, keys);  // writes after every size, so that an interrupted run keeps its results
    }
    ++collectives_done;
  }
  if (printed) {
    write_output(file, table.text());
  } else {
    std::cerr << "written to " << file << "\n";
  }
  if (!any) throw Failure(Exit::run_failed, "no plan ran and was right");
  return Exit::well;
}

}  // namespace

Action command::tune(CLI::App& app) {
  auto options = std::make_shared<TuneArguments>();
  const std::span<const std::string> collectives = collective_words();
  suggest(app.add_option("what", options->what, fmt::format("Collectives: {}", fmt::join(collectives, ", ")))
              ->required()
              ->type_name("NAME"),
          [collectives] { return std::vector<std::string>(collectives.begin(), collectives.end()); });
  app.add_option("--bytes", options->bytes,
                 "Sizes of the message, as for run; default 1K:1G:4 on cuda, 1K:1M:4 on cpu")
      ->type_name("SIZES");
  options->run.declare(app);
  options->run.declare_max_blocks(app);
  app.get_option("--max-blocks")
      ->description(
          "Only plans with at most so many thread blocks, 0: any number; default: the configuration's, 0");
  app.get_option("--ranks")->required()->description("Number of ranks");
  app.get_option("--packet")->description("Only this form of packets; default: all forms");
  app.add_option("--plan", options->plans,
                 "Only this shipped plan, by its name without ranks; may be repeated")
      ->type_name("NAME")
      ->allow_extra_args(false);
  app.add_option("--limit", options->limit,
                 "Time limit of each candidate, after which it is killed; default 60s")
      ->type_name("TIME");
  app.add_option("--calls", options->calls, "Calls in one graph, or in a row; default 20")
      ->transform(whole_number(1, 10000))
      ->type_name("N");
  app.add_option("--warmup", options->warmup, "Calls before the timed ones; default 5")
      ->transform(whole_number(1, 10000))
      ->type_name("N");
  app.add_flag("--no-times", options->no_times, "Leave the times out of the output");
  app.add_option("-o,--output", options->output,
                 "The table's file, whose rows for other sizes stay; default plans/tuned/<device>.json, -: "
                 "standard output")
      ->type_name("FILE");
  declare_quiet(app);
  app.footer(
      "Candidates are the shipped plans of the collective, with every form of packets. Each runs in a\n"
      "separate process. A candidate that is wrong, hangs or dies is noted in the table and not chosen. run\n"
      "and bench read the table. For collectives that reduce, the table has a second choice for "
      "--rank-order:\n"
      "the fastest of the plans that add in the order of the ranks. With all of these plans a sum has the\n"
      "same bits, whatever the size. It also has the fastest plans with fewer thread blocks, from which a "
      "limit\n"
      "max_blocks chooses.");
  return [options] { return tune_it(*options); };
}

}  // namespace chorale::tools
