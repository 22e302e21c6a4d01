#include "tools/tuned.hpp"

#include <filesystem>
#include <system_error>

#include "chorale/make_plan.hpp"
#include "tools/command.hpp"
#include "tools/plans.hpp"

namespace chorale::tools {

TunedFor tuned_for(const Config& config, const RankGpus& gpus, uint32_t ranks) {
  TunedFor machine;
  machine.ranks = int(ranks);
  machine.backend = config.backend.value;
  if (machine.backend == "cuda" && !gpus.names.empty()) machine.device = gpus.names.front();
  machine.max_blocks = config.max_blocks.value;
  return machine;
}

std::string tuned_file(const TunedFor& machine) {
  return (std::filesystem::path(shipped_folder()).parent_path() / "tuned" / table_name(machine)).string();
}

std::string tune_command(const std::vector<std::string>& collectives, const TunedFor& machine, DType dtype,
                         const std::string& file) {
  std::vector<std::string> words = {"chorale", "tune"};
  words.insert(words.end(), collectives.begin(), collectives.end());
  words.insert(words.end(), {"--ranks", std::to_string(machine.ranks)});
  if (dtype != DType::f32) words.insert(words.end(), {"--dtype", dtype_name(dtype)});
  if (machine.backend != "cpu") words.insert(words.end(), {"--backend", machine.backend});
  if (!file.empty()) words.insert(words.end(), {"-o", file});
  return shell_line(words);
}

TunedPlans tuned_plans(const std::string& file, const TunedFor& machine, const std::string& advice) {
  const std::string wanted = file.empty() ? tuned_file(machine) : file;
  std::error_code error;
  const bool missing = !std::filesystem::exists(wanted, error);
  if (missing && !file.empty())
    throw Failure(Exit::command_wrong, "there is no table " + file, advice + " makes it");
  const bool defaults = file.empty() && missing;
  return TunedPlans(defaults ? TuneTable() : TuneTable::load(wanted), shipped_folder(), machine,
                    [](const std::string& name, int ranks) { return make_plan(name, ranks); });
}

std::string words_of(const TunedPlans::Choice& choice) {
  TuneConfig config;
  config.plan = choice.name;
  if (choice.packet) config.packet = packet_form_names[size_t(*choice.packet)];
  return words_of(config);
}

std::string words_of(const TuneConfig& config) {
  return config.packet.empty() ? config.plan : config.plan + ", " + config.packet;
}

}  // namespace chorale::tools
