// This file compiles a plan, by the rewrites of the pass table.

#include "chorale/compile.hpp"

#include <iterator>
#include <optional>
#include <stdexcept>

#include "chorale/limits.hpp"
#include "chorale/proof.hpp"
#include "chorale/rewrites.hpp"
#include "compiler/plan/progress.hpp"
#include "compiler/plan/resolve.hpp"
#include "compiler/plan/roles.hpp"
#include "compiler/proof/execution/storage.hpp"

namespace chorale {
namespace {

struct Rewrite {
  const char* name;
  bool (*run)(Plan&, const CompileOptions&);
};

constexpr Rewrite rewrites[] = {
#define CHORALE_REWRITE(name, summary) {#name, pass::name},
#include "chorale/passes.def"
};

/// A plan with this many operations is large, and its author waits for it.
constexpr size_t many_operations = 100'000;

size_t operations(const Plan& plan) {
  size_t count = 0;
  for (const Gpu& gpu : plan.gpus) {
    for (const ThreadBlock& block : gpu.threadblocks) count += block.ops.size();
  }
  return count;
}

/// Returns the share of a compilation that is done before the proof begins.
double proof_begins(const CompileOptions& options) { return options.minimize_syncs ? 0.9 : 0.4; }

/// Checks the counts that `replicate` multiplies by the number of instances.
Diagnostics check_instances(const Plan& plan, uint32_t instances) {
  const auto finding = [](std::string text) {
    return Diagnostics{{"replicate", {}, {}, std::move(text), {}, {}}};
  };
  const std::string times = std::to_string(instances) + " instances";
  if (instances < 1 || instances > max_instances) {
    return finding("the program has " + times + ", expected 1 to " + std::to_string(max_instances));
  }
  if (instances == 1) return {};
  for (const Gpu& gpu : plan.gpus) {
    if (gpu.threadblocks.size() > max_blocks / instances) {
      return finding("rank " + std::to_string(gpu.id) + " has " + std::to_string(gpu.threadblocks.size()) +
                     " thread blocks in " + times + ", expected at most " +
                     std::to_string(max_blocks / instances));
    }
    for (const uint64_t chunks : gpu.chunks) {
      if (chunks <= max_chunks / instances) continue;
      return finding("a buffer of rank " + std::to_string(gpu.id) + " has " + std::to_string(chunks) +
                     " chunks in " + times + ", expected at most " + std::to_string(max_chunks / instances));
    }
    for (const ThreadBlock& block : gpu.threadblocks) {
      for (const Op& op : block.ops) {
        if (!shape(op.code).has(Role::Arrive) || block.op_ids(op)[0] < max_barriers / instances) continue;
        return finding("barrier " + std::to_string(block.op_ids(op)[0]) + " is in " + times +
                       ", expected ids less than " + std::to_string(max_barriers / instances));
      }
    }
  }
  return {};
}

/// Returns the rewrite without which a proof finds nothing; null if there is none.
const Rewrite* find_culprit(const Plan& recorded, const CompileOptions& options, const std::string& proof) {
  std::vector<std::string> others(std::begin(proof_names), std::end(proof_names));
  std::erase(others, proof);
  for (const Rewrite& culprit : rewrites) {
    Plan plan = recorded;
    bool changes = false;
    for (const Rewrite& rewrite : rewrites) {
      if (&rewrite == &culprit) {
        Plan copy = plan;
        changes = rewrite.run(copy, options);
      } else {
        rewrite.run(plan, options);
      }
    }
    if (changes && check(plan).empty() && prove(plan, others).empty()) return &culprit;
  }
  return nullptr;
}

/// Holds an operand as the program names it, before the instances share it.
struct Named {
  uint64_t index = 0, chunks = 0;  ///< no chunks: unknown
  uint64_t place = 0;              ///< of its first chunk in its memory, which two buffers may share
};

/// Returns the operand with which an event of a finding accesses the memory of the last event, in a plan with
/// that many instances. Undoes what replicate() has done to ids and operands.
Named named_by(const Plan& plan, const proof::Storage& storage, uint32_t instances, const ProofEvent& event,
               const ProofEvent& last) {
  if (event.who == ProofEvent::Who::application) return {};
  const Gpu& gpu = plan.gpus[event.at.rank];
  const ThreadBlock& block = gpu.threadblocks[event.at.threadblock];
  const uint64_t instance = event.at.threadblock % instances;
  const proof::Storage::Place last_place = storage.place(last.buffer_rank, last.buffer, last.packets);
  const uint64_t begin = last_place.first + last.begin, end = last_place.first + last.end;
  Named named;
  for_each_place(plan, gpu, block, block.ops[event.at.op],
                 [&](const Field& field, const Operand& operand, uint32_t rank, BufferKind buffer) {
                   const auto [mine, first] = storage.place(rank, buffer, is_packet(field.role));
                   if (mine != last_place.space || first + operand.index >= end ||
                       begin >= first + operand.index + operand.size)
                     return;
                   const uint64_t index = (operand.index - instance * operand.size) / instances;
                   named = {index, operand.size, first / instances + index};
                 });
  return named;
}

/// Returns advice for operands that replicate shares among the instances in different ways; empty if the
/// finding has another cause. If both events name the same operand, each instance accesses only its own
/// share.
std::string shared_apart(const Plan& plan, const CompileOptions& options, const Rewrite& culprit,
                         const Finding& finding) {
  if (culprit.run != pass::replicate || finding.kind != Finding::Kind::race) return {};
  const proof::Storage storage(plan, finding.setting.one_storage);
  const Named first = named_by(plan, storage, options.instances, finding.events[0], finding.events[1]);
  const Named second = named_by(plan, storage, options.instances, finding.events[1], finding.events[1]);
  if (!first.chunks || !second.chunks) return {};
  const std::string shared = "each instance takes an equal share of every operand, and of these two ";
  if (first.chunks != second.chunks) {
    return shared + "one has " + std::to_string(first.chunks) + " and one " + std::to_string(second.chunks) +
           " chunks: name the chunks together in both, or one by one in both, so that instances do not "
           "overlap";
  }
  if (first.place == second.place) return {};
  const auto text = [](const Named& named) {
    return "[" + std::to_string(named.index) + ":" + std::to_string(named.index + named.chunks) + "]";
  };
  return shared + "one is " + text(first) + " and one " + text(second) +
         " of the program: name the same chunks in both, or chunks that do not overlap, so that instances do "
         "not overlap either";
}

constexpr std::string_view of_one_instance = "this is found for one instance of the program, which has ";

/// Proves the plan of one instance. If a proof that failed for all instances fails there too, replaces plan
/// and findings. The instances do the same on their shares, and the plan of one names blocks and chunks as
/// the program does.
void name_as_program(const Plan& recorded, CompileOptions options, Plan& plan, Diagnostics& findings) {
  const uint32_t instances = std::exchange(options.instances, 1);
  if (instances == 1 || options.replication == ReplicationPolicy::none || findings.empty() ||
      !is_proof(findings[0].check))
    return;
  Plan one = recorded;
  for (const Rewrite& rewrite : rewrites) rewrite.run(one, options);
  if (!check(one).empty()) return;
  Diagnostics found = prove(one, options.allow);
  if (found.empty() || found[0].check != findings[0].check) return;
  found[0].notes.push_back({{}, {}, std::string(of_one_instance) + std::to_string(instances)});
  findings = std::move(found);
  plan = std::move(one);
}

}  // namespace

bool is_of_one_instance(const Diagnostics& findings) {
  return !findings.empty() && std::ranges::any_of(findings[0].notes, [](const Note& note) {
    return note.text.starts_with(of_one_instance);
  });
}

Diagnostics compile(Plan& plan, const CompileOptions& options) {
  if (size_t(options.target) >= std::size(target_names)) {
    throw std::invalid_argument("the target is " + std::to_string(int(options.target)) +
                                ", but must be chorale (0) or mscclpp (1)");
  }
  if (options.replication > ReplicationPolicy::none) {
    throw std::invalid_argument("the replication policy is " + std::to_string(int(options.replication)) +
                                ", but must be interleaved (0) or none (1)");
  }
  if (options.certify) require_all_proofs(options.allow);
  if (options.minimize_syncs && options.target != Target::chorale) {
    throw std::invalid_argument(
        "synchronisations are minimised only for the target chorale, because the proofs are about its "
        "executor");
  }
  Diagnostics findings = check(plan);
  if (!findings.empty()) return findings;
  // No rewrite applies to a host schedule.
  if (plan.gpus.empty()) return check(plan, options.target, options.allow);
  findings = check_instances(plan, options.instances);
  if (!findings.empty()) return findings;
  // This copy is made only when needed, because a second copy of a large plan may not fit in memory.
  std::optional<Plan> recorded;
  if (operations(plan) < many_operations && wants_proofs(options.allow)) recorded = plan;
  // The checks of a large plan take longer than its rewrites, so they run only once, after all rewrites.
  const bool often = operations(plan) < many_operations;
  std::string suspects;  // the rewrites that changed the plan since the last checks
  for (const Rewrite& rewrite : rewrites) {
    const bool last = &rewrite == std::end(rewrites) - 1;
    const ProgressPart rewriting(0, proof_begins(options));
    if (!options.minimize_syncs) tell_progress(double(&rewrite - rewrites) / double(std::size(rewrites)));
    if (rewrite.run(plan, options)) suspects += (suspects.empty() ? "" : ", ") + std::string(rewrite.name);
    if (suspects.empty() || !(often || last)) continue;
    findings = check(plan);
    const bool several = suspects.find(',') != std::string::npos;
    for (Diagnostic& finding : findings) {
      finding.help = "this is a bug in " + std::string(several ? "one of the rewrites " : "the rewrite ") +
                     suspects + ", not in your program";
    }
    if (!findings.empty()) return findings;
    suspects.clear();
  }
  Diagnostics of_target = check(plan, options.target, options.allow);
  const ProgressPart proving(proof_begins(options), 1);
  const Proof proof = prove_plan(plan, options.allow, options.certify);
  findings = proof.diagnostics();
  const Rewrite* const culprit =
      recorded && !findings.empty() ? find_culprit(*recorded, options, findings[0].check) : nullptr;
  for (size_t at = 0; culprit && at < findings.size(); ++at) {
    findings[at].help = shared_apart(plan, options, *culprit, proof.findings[at]);
    if (!findings[at].help.empty()) continue;
    findings[at].help = "without the rewrite " + std::string(culprit->name) +
                        " this is not found: it is a bug in the rewrite, not in your program";
  }
  if (recorded && !culprit) name_as_program(*recorded, options, plan, findings);
  std::move(of_target.begin(), of_target.end(), std::back_inserter(findings));
  if (options.certify && options.target == Target::chorale && findings.empty())
    plan.extension.verified = certificate(plan, proof.facts);
  return findings;
}

}  // namespace chorale
