// Running the pass table.

#include "chorale/compile.hpp"

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

constexpr Rewrite rewrites[] = {
#define REWRITE(name, summary) {#name, pass::name},
#include "chorale/passes.def"
};

/// Instances that anyone could use: enough for every thread block of a large GPU.
constexpr uint32_t max_instances = 1024;

}  // namespace

Diagnostics check(const Plan& plan) {
  Diagnostics findings;
  for (const Check& check : checks) {
    check.run(plan, findings);
    // Later checks take for granted what earlier ones establish.
    if (!findings.empty()) break;
  }
  return findings;
}

Diagnostics compile(Plan& plan, const CompileOptions& options) {
  if (options.instances < 1 || options.instances > max_instances) {
    return {{"replicate",
             {},
             {},
             "the program has " + std::to_string(options.instances) + " instances, expected 1 to " +
                 std::to_string(max_instances),
             {},
             {}}};
  }
  Diagnostics findings = check(plan);
  if (!findings.empty()) return findings;
  for (const Rewrite& rewrite : rewrites) {
    if (!rewrite.run(plan, options)) continue;
    findings = check(plan);
    if (findings.empty()) continue;
    for (Diagnostic& finding : findings) {
      finding.help = "this is a bug in the rewrite " + std::string(rewrite.name) + ", not in your program";
    }
    return findings;
  }
  return findings;
}

}  // namespace chorale
