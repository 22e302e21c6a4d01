// chorale check: what is wrong with plans.

#include <iostream>
#include <memory>

#include "chorale/compile.hpp"
#include "tools/command.hpp"
#include "tools/programs.hpp"

namespace chorale::tools {

Action command::check(CLI::App& app) {
  struct Options {
    std::vector<std::string> paths;
    Aim aim;
  };
  auto options = std::make_shared<Options>();
  app.add_option("plan", options->paths, "Plan files; - is standard input")->required();
  declare_aim(app, options->aim, std::string(target_names[size_t(Target::chorale)]) + " by default");
  return [options] {
    const std::vector<std::string>& paths = options->paths;
    Exit worst = Exit::well;
    // Every plan is looked at, also behind one that is wrong.
    for (const std::string& path : paths) {
      Progress progress;
      progress("checking " + path);
      try {
        const Plan plan = load_plan(path);
        if (report(plan, check_plan(plan, options->aim))) {
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
        if (paths.size() == 1) throw;
        std::cout.flush();
        std::cerr << "error: " << failure.what() << '\n';
        worst = std::max(worst, failure.exit);
      }
    }
    return worst;
  };
}

}  // namespace chorale::tools
