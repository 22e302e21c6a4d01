// chorale check: what is wrong with plans.

#include <iostream>
#include <memory>

#include "chorale/compile.hpp"
#include "tools/command.hpp"
#include "tools/programs.hpp"

namespace chorale::tools {

Action command::check(CLI::App& app) {
  auto paths = std::make_shared<std::vector<std::string>>();
  app.add_option("plan", *paths, "Plan files; - is standard input")->required();
  return [paths] {
    Exit worst = Exit::well;
    // Every plan is looked at, also behind one that is wrong.
    for (const std::string& path : *paths) {
      Progress progress;
      progress("checking " + path);
      try {
        const Plan plan = load_plan(path);
        if (report(plan, chorale::check(plan))) {
          worst = std::max(worst, Exit::plan_wrong);
          continue;
        }
        uint64_t ops = 0;
        for (const Gpu& gpu : plan.gpus) {
          for (const ThreadBlock& block : gpu.threadblocks) ops += block.ops.size();
        }
        std::cout << (path == "-" ? "standard input" : path) << ": ok, " << plan.collective << " of "
                  << count(plan.ranks(), "rank") << ", " << count(ops, "operation") << '\n';
      } catch (const Failure& failure) {
        if (paths->size() == 1) throw;
        std::cout.flush();
        std::cerr << "error: " << failure.what() << '\n';
        worst = std::max(worst, failure.exit);
      }
    }
    return worst;
  };
}

}  // namespace chorale::tools
