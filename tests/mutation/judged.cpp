#include "judged.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "report.hpp"

namespace chorale::mutation {
namespace {

std::string identity(const std::string& plan, std::string_view of, const OpPlace& at,
                     const std::string& what) {
  return fmt::format("{} {} {}.{}.{} {}", plan, of, at.rank, at.threadblock, at.op, what);
}

}  // namespace

Judged::Judged(std::string_view text) {
  uint64_t number = 0;
  for (size_t end = text.find('\n'); end != text.npos; end = text.find('\n')) {
    ++number;
    const std::string_view line(text.substr(0, end));
    text.remove_prefix(end + 1);
    const nlohmann::json object = nlohmann::json::parse(line, nullptr, false);
    try {
      take(object);
    } catch (const nlohmann::json::exception&) {
      throw std::invalid_argument(fmt::format("line {} says of no mutant what became of it", number));
    }
  }
}

void Judged::take(const nlohmann::json& object) {
  const auto word = [&](const char* key) { return object.value(key, std::string()); };
  const auto plan = object.at("plan").get<std::string>(), fate = object.at("fate").get<std::string>();
  const auto known = std::find(std::begin(fate_names), std::end(fate_names), fate);
  if (known == std::end(fate_names)) return;  // a fate of another version
  const auto number = [&](const char* key) { return object.at(key).get<uint32_t>(); };
  const OpPlace at{number("rank"), number("threadblock"), number("op")};
  plans_.insert(plan);
  mutants_[identity(plan, object.at("operator").get<std::string>(), at, word("what"))] = {
      Fate(known - std::begin(fate_names)), word("by"), word("text"), object.value("seed", uint64_t(0))};
}

bool Judged::recall(const std::string& plan, Mutant& mutant) const {
  const auto found = mutants_.find(identity(plan, mutant.of->name, mutant.at, mutant.what));
  if (found == mutants_.end()) return false;
  const Fated& fated = found->second;
  mutant.fate = fated.fate;
  mutant.by = fated.by;
  mutant.text = fated.text;
  mutant.seed = fated.seed;
  return true;
}

}  // namespace chorale::mutation
