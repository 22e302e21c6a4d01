// chorale bench: chorale run --bench.

#include "tools/run_options.hpp"

namespace chorale::tools {

Action command::bench(CLI::App& app) { return declare_run(app, true); }

}  // namespace chorale::tools
