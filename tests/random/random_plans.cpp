// This program looks for plans that are proved but fail: random_plans FIRST_SEED WALKS [FOLDER].
//
// Each walk changes a small program at random, and takes a change back if the plan is then refused. So it
// walks along the border of what the proofs accept, where gaps are likely. Accepted plans run on the
// adversarial machine, which knows nothing of the proofs: in schedules of several messages, with some
// launches in a row. Programs have the collective `test`, of which all schedules must give the same result.
//
// A plan that fails is made smaller, and written to FOLDER. The same seed makes the same walk on every
// machine.

#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>

#include "changes.hpp"
#include "chorale/adversary.hpp"
#include "chorale/compile.hpp"
#include "chorale/json.hpp"
#include "chorale/proof.hpp"

namespace chorale::random {
namespace {

constexpr uint32_t changes_of_a_walk = 150;

/// When blocks compete, many orders are proved, which takes as long as everything else.
Start start_of(uint64_t seed) {
  if (seed % 12 == 0) return Start::rivals;
  return seed % 2 ? Start::nothing : Start::pipelines;
}

bool accepted(const Plan& plan) { return check(plan).empty() && prove_plan(plan).findings.empty(); }

bool has_pipelines(const Program& program) {
  for (const std::vector<Block>& rank : program.of) {
    for (const Block& block : rank) {
      for (const Item& item : block) {
        if (item.op.body) return true;
      }
    }
  }
  return false;
}

/// Returns how it fails; empty if it fails in none of these schedules.
std::string failure(const Program& program, const Plan& plan, uint64_t seed, uint64_t schedules) {
  std::vector<uint64_t> sizes = {0};  // the smallest size that shows all orders
  if (has_pipelines(program)) {
    static constexpr uint64_t units[] = {1, 2, 3, 5, 8, 12, 20, 36, 48};
    for (uint64_t more = 0; more < 1 + schedules / 50; ++more)
      sizes.push_back(16 * program.chunks[0] * units[(seed + 5 * more) % std::size(units)]);
  }
  for (const uint64_t bytes : sizes) {
    Adversary adversary(plan, {.bytes = bytes, .launches = 3 + unsigned(seed % 2), .max_steps = 1 << 22});
    const Verdict verdict = adversary.run_all(seed, bytes ? 4 + schedules / 4 : schedules);
    if (verdict.ok() || verdict.kind == Verdict::Kind::refused) continue;
    return std::string(name(verdict.kind)) + ": " + verdict.text + " (" + std::to_string(adversary.bytes()) +
           " bytes, schedule " + std::to_string(verdict.seed) + ")";
  }
  return {};
}

Program shrunk(Program program, uint64_t seed) {
  Changes changes(seed, program.bounded ? Start::rivals : Start::nothing);
  for (uint32_t useless = 0; useless < 300; ++useless) {
    changes.restore(program);
    changes.simplify();
    const Program& less = changes.program();
    if (less.size() >= program.size()) continue;
    const Plan plan = less.plan();
    if (!accepted(plan) || failure(less, plan, 0, 150).empty()) continue;
    program = less;
    useless = 0;
  }
  return program;
}

struct Tally {
  uint64_t tried = 0, accepted = 0, failed = 0;
};

void walk(uint64_t seed, const std::string& folder, Tally& tally) {
  // The first program may be refused, but an empty one cannot.
  Changes changes(seed, start_of(seed));
  for (uint32_t again = 1; again < 20 && !accepted(changes.program().plan()); ++again)
    changes = Changes(seed + (uint64_t(again) << 32), start_of(seed));
  for (uint32_t step = 0; step < changes_of_a_walk; ++step) {
    const Program before = changes.program();
    if (step) changes.make();
    ++tally.tried;
    const Plan plan = changes.program().plan();
    if (!accepted(plan)) {
      changes.restore(before);
      continue;
    }
    ++tally.accepted;
    const std::string how =
        failure(changes.program(), plan, seed * changes_of_a_walk + step, step % 12 ? 12 : 150);
    if (how.empty()) continue;
    ++tally.failed;
    std::cout << "walk " << seed << ", change " << step << ": " << how << std::endl;
    if (!folder.empty()) {
      const std::string path = folder + "/random_" + std::to_string(seed) + ".json";
      std::ofstream(path) << write(shrunk(changes.program(), seed).plan());
      std::cout << "  a smaller plan is " << path << std::endl;
    }
    return;
  }
}

}  // namespace
}  // namespace chorale::random

int main(int count, char** words) {
  using namespace chorale::random;
  if (count < 3) {
    std::cerr << "random_plans FIRST_SEED WALKS [FOLDER]\n";
    return 2;
  }
  const uint64_t first = std::strtoull(words[1], nullptr, 10), walks = std::strtoull(words[2], nullptr, 10);
  Tally tally;
  for (uint64_t seed = first; seed < first + walks; ++seed) {
    try {
      walk(seed, count > 3 ? words[3] : "", tally);
    } catch (const std::exception& error) {
      ++tally.failed;
      std::cout << "walk " << seed << ": " << error.what() << std::endl;
    }
  }
  std::cout << tally.tried << " plans, " << tally.accepted << " proved, " << tally.failed
            << " of them failed\n";
  return tally.failed ? 1 : 0;
}
