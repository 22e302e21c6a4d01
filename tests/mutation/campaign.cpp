#include "campaign.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <random>
#include <thread>
#include <unordered_set>
#include <utility>

#include "chorale/content_hash.hpp"

namespace chorale::mutation {
namespace {

/// Keeps `wanted` sites of a list, in their order.
void sample(std::vector<Site>& list, uint32_t wanted, uint64_t seed) {
  if (!wanted || list.size() <= wanted) return;
  std::mt19937_64 random(seed);
  // We draw by hand, because the standard library's distributions differ between libraries.
  for (size_t kept = 0; kept < wanted; ++kept) {
    std::swap(list[kept], list[kept + random() % (list.size() - kept)]);
  }
  list.resize(wanted);
  std::sort(list.begin(), list.end(), [](const Site& a, const Site& b) { return a.at < b.at; });
}

struct Job {
  const Operator* of;
  Site site;
};

/// Lists the mutants to judge. This is cheap compared with judging: it makes each mutant once and compares
/// only hashes.
std::vector<Job> list_jobs(const Plan& plan, const Choice& choice) {
  Plan copy = plan;
  std::unordered_set<uint64_t> known = {content_hash(plan)};
  std::vector<Job> jobs;
  for (const Operator* of : choice.operators) {
    std::vector<Site> list = sites(*of, plan);
    sample(list, choice.sample, choice.seed * 1000 + of->number);
    for (Site& site : list) {
      Edit edit(copy);
      site.change(edit);
      if (known.insert(content_hash(copy)).second) jobs.push_back({of, std::move(site)});
    }
  }
  return jobs;
}

void judge_one(const Plan& original, const Plan& mutant, const Judge& judge, Mutant& out) {
  try {
    const Diagnostics findings = judge.check(mutant);
    if (!findings.empty()) {
      out.fate = Fate::killed;
      out.by = findings[0].check;
      out.text = findings[0].text;
      return;
    }
    if (judge.run) {
      if (const std::optional<Failed> failed = judge.run(mutant)) {
        out.fate = Fate::hole;
        out.seed = failed->seed;
        out.text = failed->text;
        return;
      }
    }
    out.fate = Fate::survived;
    if (judge.explain) {
      Reason reason = judge.explain(original, mutant, out);
      out.by = std::move(reason.by);
      out.text = std::move(reason.text);
    }
  } catch (const std::exception& error) {
    out.fate = Fate::crashed;
    out.text = error.what();
  }
}

}  // namespace

std::vector<Mutant> mutate(const Plan& plan, const Choice& choice, const Judge& judge,
                           const std::function<void(const Mutant&, const Plan&)>& progress) {
  const std::vector<Job> jobs = list_jobs(plan, choice);
  std::vector<Mutant> mutants(jobs.size());
  std::atomic<size_t> next = 0;
  std::mutex one_at_a_time;
  std::exception_ptr failure;  // from progress(), in any thread
  const auto work = [&] {
    Plan copy = plan;
    for (size_t at = next++; at < jobs.size(); at = next++) {
      Mutant& mutant = mutants[at];
      const Job& job = jobs[at];
      mutant.of = job.of;
      mutant.at = job.site.at;
      mutant.what = job.site.what;
      mutant.of_operation = job.site.of_operation;
      if (job.site.of_operation) {
        mutant.line = plan.line_of(
            plan.gpus[job.site.at.rank].threadblocks[job.site.at.threadblock].ops[job.site.at.op]);
      }
      if (choice.recall && choice.recall(mutant)) continue;
      Edit edit(copy);
      job.site.change(edit);
      judge_one(plan, copy, judge, mutant);
      const std::lock_guard lock(one_at_a_time);
      if (!progress || failure) continue;
      try {
        progress(mutant, copy);
      } catch (...) {
        failure = std::current_exception();
        next = jobs.size();
      }
    }
  };
  std::vector<std::jthread> threads;
  for (size_t thread = 1; thread < std::min<size_t>(choice.threads, jobs.size()); ++thread) {
    threads.emplace_back(work);
  }
  work();
  threads.clear();
  if (failure) std::rethrow_exception(failure);
  return mutants;
}

}  // namespace chorale::mutation
