// chorale check finds the errors in plans.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <iostream>
#include <memory>

#include "chorale/compile.hpp"
#include "chorale/progress.hpp"
#include "chorale/proof.hpp"
#include "chorale/repeats.hpp"
#include "chorale/schedule/lint.hpp"
#include "tools/command.hpp"
#include "tools/findings.hpp"
#include "tools/oracle.hpp"
#include "tools/plans.hpp"
#include "tools/programs.hpp"
#include "tools/run_options.hpp"
#include "tools/schedule_options.hpp"
#include "tools/view/page.hpp"
#include "tools/view/plan_picture.hpp"
#include "tools/words.hpp"

namespace chorale::tools {
namespace {

const char* yes(bool is) { return is ? "yes" : "no"; }

void print_facts(const ProofFacts& facts) {
  std::cout << "  launches executed one after the other: " << facts.launches
            << "\n  copies of scratch that launches need: " << facts.scratch_copies
            << "\n  entry-guarded: " << yes(facts.entry_guarded)
            << "\n  exit-quiescent: " << yes(facts.exit_quiescent)
            << "\n  the same bits on all ranks: " << yes(facts.rounding.empty()) << '\n';
  for (const std::string& difference : facts.rounding) std::cout << "    " << difference << '\n';
  if (const std::string quantised = quantised_words(facts.quantised); !quantised.empty()) {
    std::cout << "  encoded on the way, at most: " << quantised
              << "\n  error, times the addends' largest magnitudes: " << error_bound(facts.quantised) << '\n';
  }
  if (facts.order.empty()) return;
  std::cout << "  one order of addition for all elements: "
            << (facts.other_order.empty() ? facts.order : "no\n    " + facts.other_order) << '\n';
}

/// Describes the parts of a schedule that are checked besides its thread blocks.
std::string schedule_words(const schedule::Schedule& schedule) {
  std::vector<std::string> numbers;
  for (const uint32_t ranks : schedule.ranks) numbers.push_back(std::to_string(ranks));
  const std::function<uint64_t(const std::vector<schedule::Op>&)> count_ops = [&](const auto& ops) {
    uint64_t all = ops.size();
    for (const schedule::Op& op : ops) all += count_ops(op.body) + count_ops(op.orelse);
    return all;
  };
  return "host schedule for " + join(numbers) +
         (numbers == std::vector<std::string>{"1"} ? " rank, " : " ranks, ") +
         count(count_ops(schedule.body), "operation");
}

/// Says up to which size the target runs the plan correctly. Returns "" if that holds for every size that the
/// plan takes.
std::string size_words(const Plan& plan, const std::string& aim) {
  const uint64_t most = aim.empty() ? plan.max_message_size : largest_message(plan, target_of(aim));
  return most < plan.max_message_size ? ", messages of up to " + count(most, "byte") : "";
}

/// Returns the page that shows a plan with its findings.
std::string page_of_findings(const Plan& plan, const std::string& path, std::vector<Explained> findings) {
  const Machine machine = machine_of("");
  PlanView view;
  view.file = path == "-" ? "standard input" : path;
  view.bytes = sizes_for("", "1M", std::max(plan.ranks(), 1u), view.dtype).front();
  view.machine = &machine;
  view.findings = std::move(findings);
  return page_of({picture_of(plan, view)});
}

/// Reports operations that may mean something else in MSCCL++. There a put of packets over a port channel
/// sends packets that its source already holds. Plans that name their author's lines were written for this
/// executor.
void tell_port_packets(const Plan& plan, const std::string& name) {
  OpPlace first;
  uint64_t found = 0;
  for (const Gpu& gpu : plan.gpus) {
    for (const ThreadBlock& block : gpu.threadblocks) {
      for (const Op& op : block.ops) {
        const bool meant = op.code == Opcode::put_packets && op.via == ChannelType::port;
        if (!meant || !author_line(plan, op).empty()) continue;
        if (!found++) first = {gpu.id, block.id, uint32_t(&op - block.ops.data())};
      }
    }
  }
  if (!found) return;
  std::cerr
      << "note: " << name << ": rank " << first.rank << ", thread block " << first.threadblock << ", op "
      << first.op << (found > 1 ? " and " + count(found - 1, "more operation") : "")
      << ": 'ppkt' over a port channel makes packets of plain data here, and MSCCL++ takes its source for "
         "packets\n"
         "help: where the source holds packets, write 'rppkt' (docs/from-mscclpp.md)\n";
}

}  // namespace

Action command::check(CLI::App& app) {
  struct CheckArguments {
    std::vector<std::string> paths, set;
    std::string certified, page;
    Aim aim;
    Telling telling;
  };
  auto options = std::make_shared<CheckArguments>();
  app.add_option("plan", options->paths,
                 "Plan files, or sources in C++ (*.cpp) or Python (*.py); - is standard input")
      ->required();
  declare_sources_set(app, options->set);
  declare_aim(app, options->aim, "default: " + std::string(target_names[size_t(Target::chorale)]));
  app.add_option("--certify", options->certified,
                 "Print further facts about the plan, and write it with a certificate to FILE")
      ->type_name("FILE");
  options->telling.declare(app);
  app.add_option("--view", options->page,
                 "Write a page that shows the findings of the first wrong plan in a browser")
      ->type_name("FILE");
  declare_quiet(app);
  return [options] {
    const std::vector<std::string>& paths = options->paths;
    options->aim.certify = !options->certified.empty();
    if (options->aim.certify && paths.size() > 1)
      throw Failure(Exit::command_wrong,
                    "--certify writes one plan, but there are " + std::to_string(paths.size()));
    const dsl::Parameters::Settings settings = parse_settings(options->set);
    need_source(options->set, paths);
    std::vector<NamedFile> read;
    for (const std::string& path : paths) read.push_back({"", path});
    std::vector<NamedFile> findings = options->telling.files();
    findings.push_back({"--view", options->page});
    keep_apart(read, findings);
    std::vector<NamedFile> written = findings;
    written.push_back({"--certify", options->certified});
    keep_apart({}, written);  // --certify may write to the plan file itself
    if (!options->page.empty()) need_writable(options->page);
    std::string page;
    Exit worst = Exit::well;
    // Every plan is checked, even after a wrong one.
    for (const std::string& path : paths) {
      Progress progress;
      const ProgressWatch watch([&](double share) { progress("checking " + path, share); });
      try {
        // A source is checked as it is compiled. What it lacks to be a plan is found there.
        Built built;
        if (names_source(path)) {
          built = build_program(load_program({path, "", {}}), settings, options->aim);
        } else {
          const ProgressTicker reading("reading " + path);
          built.plan = load_plan(path);
        }
        Plan& plan = built.plan;
        const std::string run =
            words_to_run(path, "", names_source(path) ? settings : dsl::Parameters::Settings());
        ProofFacts facts;
        const Diagnostics findings =
            built.diagnostics.empty() ? check_plan(plan, options->aim, &facts) : built.diagnostics;
        // The target mscclpp already refuses such a put.
        if (options->aim.target != target_names[size_t(Target::mscclpp)])
          tell_port_packets(plan, path == "-" ? "standard input" : path);
        std::vector<Explained> explained;
        if (options->telling.tell(plan, path, run, findings, options->aim.allow, &explained)) {
          if (!options->page.empty() && page.empty())
            page = page_of_findings(plan, path, std::move(explained));
          worst = std::max(worst, Exit::plan_wrong);
          continue;
        }
        const std::string name = path == "-" ? "standard input" : path;
        if (plan.extension.schedule) {
          if (options->aim.certify) refuse_schedule(plan, "--certify");
          options->telling.warn(
              plan, path,
              schedule::lint(*plan.extension.schedule, {}, schedule::Mover::ce_put, options->aim.allow));
          std::cout << name << ": ok, " << schedule_words(*plan.extension.schedule) << '\n';
          if (plan.gpus.empty()) continue;
        }
        options->telling.warn(plan, path, find_repeats(plan));
        uint64_t blocks = 0;
        for (const Gpu& gpu : plan.gpus) blocks += gpu.threadblocks.size();
        std::cout << name << ": ok, " << plan.collective << " of " << count(plan.ranks(), "rank") << ", "
                  << count(blocks, "thread block") << " with " << count(operations(plan), "operation")
                  << (facts.bounded
                          ? "; bounded: thread blocks compete, and only some of the orders were tried"
                          : "")
                  << size_words(plan, options->aim.target) << '\n';
        if (const std::string unknown = unknown_result(plan); !unknown.empty())
          std::cerr << "note: its result is not proved: " << unknown << '\n';
        if (!options->aim.certify) continue;
        print_facts(facts);
        plan.extension.verified = certificate(plan, facts);
        write_plan(options->certified, plan);
      } catch (const Failure& failure) {
        if (paths.size() == 1) throw;
        std::cout.flush();
        std::cerr << "error: " << failure.what() << '\n';
        if (!failure.help.empty()) std::cerr << "help: " << failure.help << '\n';
        worst = std::max(worst, failure.exit);
      }
    }
    options->telling.finish();
    if (!page.empty()) {
      write_output(options->page, page);
    } else if (!options->page.empty()) {
      std::cerr << "note: nothing was found, so " << options->page
                << " was not written; chorale view shows the plan\n";
    }
    return worst;
  };
}

}  // namespace chorale::tools
