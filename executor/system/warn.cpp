#include "warn.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace chorale::system {

void warn(const std::string& text) {
  std::shared_ptr<spdlog::logger> log = spdlog::get("chorale");
  if (!log) {
    // A program that has not loaded a Config has no log yet. Log to standard error, because standard output
    // belongs to the program.
    log =
        std::make_shared<spdlog::logger>("chorale", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    log->set_pattern("[%T.%e %^%l%$] chorale: %v");
  }
  log->warn(text);
}

}  // namespace chorale::system
