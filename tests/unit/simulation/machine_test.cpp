#include "chorale/machine.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "chorale/read_file.hpp"
#include "chorale/usage_error.hpp"
#include "tests/unit/simulation/made_up.hpp"

namespace chorale {
namespace {

/// Returns a machine file with one piece of text replaced.
std::string with(const std::string& from, const std::string& to) {
  std::string text = machine_text(nothing_takes_time());
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

std::string error_of(const std::string& text) {
  try {
    parse_machine(text, "m.json");
    return "";
  } catch (const UsageError& error) {
    return error.what();
  }
}

TEST(MachineFile, IsReadAsItWasWritten) {
  Machine machine = nothing_takes_time();
  machine.issue_ns = 12.5;
  machine.memory_gb_s = 4800;
  const std::string text = machine_text(machine);
  EXPECT_EQ(machine_text(parse_machine(text, "m.json")), text);
  EXPECT_NE(text.find("\"issue_ns\": 12.5"), text.npos);
}

TEST(MachineFile, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(error_of("{"),
            "m.json: this is not JSON: a machine is {\"version\": 1, \"machine\": \"name\", "
            "\"parameters\": {\"issue_ns\": 40, ...}}");
  EXPECT_EQ(error_of("[1]"), "m.json: / is [1]: an object with version, machine and parameters is expected");
  EXPECT_EQ(error_of(with("\"version\": 1", "\"version\": 2")),
            "m.json: /version is 2: 1 is the version that this chorale reads");
  EXPECT_EQ(error_of(with("\"machine\": \"made up\"", "\"machine\": 7")),
            "m.json: /machine is 7: a name in quotes is expected");
  EXPECT_EQ(error_of(with("\"machine\": \"made up\",", "")),
            "m.json: /machine is missing: a machine needs it");
  EXPECT_EQ(error_of(with("\"machine\"", "\"machina\"")),
            "m.json: /machina is \"made up\": the key is unknown, did you mean 'machine'?");
  EXPECT_EQ(error_of(with("\"issue_ns\": 0.0", "\"issue_ns\": -1")),
            "m.json: /parameters/issue_ns is -1: a number of nanoseconds from 0 to 1e12 is expected");
  EXPECT_EQ(error_of(with("\"issue_ns\": 0.0", "\"issue_ns\": \"4\"")),
            "m.json: /parameters/issue_ns is \"4\": a number of nanoseconds from 0 to 1e12 is expected");
  EXPECT_EQ(error_of(with("\"memory_gb_s\": 1000000000.0", "\"memory_gb_s\": 0")),
            "m.json: /parameters/memory_gb_s is 0: a number of GB/s above 0 is expected, at most 1e12");
  EXPECT_EQ(error_of(with("\"multiprocessors\": 1000000000.0", "\"multiprocessors\": 0")),
            "m.json: /parameters/multiprocessors is 0: a number above 0 is expected, at most 1e12");
  EXPECT_EQ(error_of(with("\"issue_ns\": 0.0,", "")),
            "m.json: /parameters/issue_ns is missing: how many nanoseconds it takes until a thread block has "
            "begun its next operation");
  EXPECT_EQ(error_of(with("\"sync_ns\"", "\"synk_ns\"")),
            "m.json: /parameters/synk_ns is 0.0: unknown parameter, did you mean 'sync_ns'?");
}

TEST(MachineFile, TheShippedOneIsComplete) {
  const Machine machine = load_machine(CHORALE_SOURCE_DIR "/plans/machines/nvidia_h200.json");
  EXPECT_EQ(machine.name, "NVIDIA H200");
  // docs/simulation.md has each parameter with its value.
  const std::string page = read_file(CHORALE_SOURCE_DIR "/docs/simulation.md");
#define CHORALE_NS(name, summary) \
  EXPECT_NE(page.find(fmt::format("| `" #name "_ns` | {:g} | " summary " |", machine.name##_ns)), page.npos) \
      << #name;
#define CHORALE_GB_S(name, summary) \
  EXPECT_NE(page.find(fmt::format("| `" #name "_gb_s` | {:g} | " summary " |", machine.name##_gb_s)), \
            page.npos) \
      << #name;
#define CHORALE_COUNT(name, summary) \
  EXPECT_NE(page.find(fmt::format("| `" #name "` | {:g} | " summary " |", machine.name)), page.npos) << #name;
#include "chorale/machine.def"
}

}  // namespace
}  // namespace chorale
