#include "chorale/make_plan.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "chorale/compile.hpp"
#include "chorale/shipped_name.hpp"

namespace chorale {

Plan make_plan(const std::string& name, int ranks, const dsl::Parameters::Settings& settings) {
  ShippedName wanted = shipped_name(name, ranks);
  if (const auto found = settings.find("ranks"); found != settings.end()) {
    throw std::invalid_argument(
        fmt::format("'ranks' is {} among the settings of '{}', and {} beside them: leave it out there",
                    found->second, name, ranks));
  }
  for (const auto& [key, value] : settings) wanted.settings.insert_or_assign(key, value);
  wanted.settings["ranks"] = std::to_string(ranks);
  dsl::Program program = dsl::build(wanted.program, wanted.settings);
  CompileOptions options = program.compile_options();
  options.certify = true;  // an executor may require it
  dsl::Compiled compiled = std::move(program).compile(options);
  if (!compiled.ok()) {
    throw std::invalid_argument(fmt::format("'{}' for {} ranks is refused by the checks:\n{}", name, ranks,
                                            render(compiled.plan, compiled.diagnostics)));
  }
  return std::move(compiled.plan);
}

}  // namespace chorale
