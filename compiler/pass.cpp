// Running the pass table.

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "chorale/compile.hpp"
#include "limits.hpp"
#include "roles.hpp"

namespace chorale {
namespace {

struct Check {
  void (*run)(const Plan&, Diagnostics&);
};

struct Rewrite {
  const char* name;
  bool (*run)(Plan&, const CompileOptions&);
};

constexpr Check checks[] = {
#define CHECK(name, summary) {pass::name},
#include "chorale/passes.def"
};

constexpr Check proofs[] = {
#define PROOF(name, summary) {pass::name},
#include "chorale/passes.def"
};

constexpr Rewrite rewrites[] = {
#define REWRITE(name, summary) {#name, pass::name},
#include "chorale/passes.def"
};

/// A plan with so many is large: its author waits for it.
constexpr size_t many_operations = 100'000;

size_t operations(const Plan& plan) {
  size_t count = 0;
  for (const Gpu& gpu : plan.gpus) {
    for (const ThreadBlock& block : gpu.threadblocks) count += block.ops.size();
  }
  return count;
}

/// What the number of instances makes impossible; replicate multiplies all counts by it.
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

}  // namespace

Diagnostics check(const Plan& plan) {
  if (plan.only_rank) {
    throw std::invalid_argument("plan '" + plan.name + "' was loaded for rank " +
                                std::to_string(*plan.only_rank) +
                                " alone; to check it, load it for all ranks");
  }
  Diagnostics findings;
  for (const Check& check : checks) {
    check.run(plan, findings);
    // Later checks take for granted what earlier ones establish.
    if (!findings.empty()) break;
  }
  return findings;
}

Diagnostics prove(const Plan& plan, const std::vector<std::string>& allow) {
  Diagnostics findings;
  for (size_t at = 0; at < std::size(proofs) && findings.empty(); ++at) {
    const auto left_out = [&](std::string_view name) {
      return std::find(allow.begin(), allow.end(), name) != allow.end();
    };
    if (!left_out(all_proofs) && !left_out(proof_names[at])) proofs[at].run(plan, findings);
  }
  return findings;
}

Diagnostics compile(Plan& plan, const CompileOptions& options) {
  Diagnostics findings = check(plan);
  if (!findings.empty()) return findings;
  findings = check_instances(plan, options.instances);
  if (!findings.empty()) return findings;
  // The checks of a large plan take longer than its rewrites: there they are run once, behind all of them.
  const bool often = operations(plan) < many_operations;
  std::string suspects;  // what has changed the plan since it was last checked
  for (const Rewrite& rewrite : rewrites) {
    const bool last = &rewrite == std::end(rewrites) - 1;
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
  findings = prove(plan, options.allow);
  std::move(of_target.begin(), of_target.end(), std::back_inserter(findings));
  return findings;
}

}  // namespace chorale
