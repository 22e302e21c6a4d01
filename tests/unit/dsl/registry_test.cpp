// These tests check programs by name and their parameters.

#include "chorale/dsl/registry.hpp"

#include <functional>
#include <optional>
#include <stdexcept>

#include "helpers.hpp"

CHORALE_PROGRAM(registry_test_copy, chorale::dsl::Parameters& with) {
  using namespace chorale::dsl;
  with.summary("Copies on every rank.");
  const int ranks = with("ranks", 2, "number of GPUs", {.min = 1, .max = 16});
  const bool twice = with("twice", false, "copy twice");
  const std::string from = with("from", "input", "buffer to copy");
  const uint64_t most = with("most", uint64_t{1} << 40, "largest message in bytes");
  if (from != "input" && from != "output")
    throw std::invalid_argument("from is '" + from + "', but must be a buffer");
  Program program({.name = "copy", .collective = TestCollective{ranks, 1, 2}, .max_message_size = most});
  for (int number = 0; number < ranks; ++number) {
    const Rank rank = program.rank(number);
    const BaseBuffer source = from == "input" ? rank.get_input_buffer() : rank.get_output_buffer();
    for (int time = 0; time < 1 + twice; ++time) rank.copy(rank.get_output_buffer()[1], source[0], 0);
  }
  return program;
}

namespace chorale::dsl {
namespace {

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing was refused";
}

std::string refused_build(const Parameters::Settings& settings) {
  return refusal([&] { build("registry_test_copy", settings); });
}

TEST(Registry, lists_programs_with_their_file) {
  bool found = false;
  for (const RegisteredProgram& one : programs()) {
    if (one.name != "registry_test_copy") continue;
    found = true;
    EXPECT_EQ(one.file, "registry_test.cpp");
    EXPECT_EQ(one.line, 11u);
  }
  EXPECT_TRUE(found);
}

TEST(Registry, describes_parameters) {
  const Description description = describe("registry_test_copy");
  EXPECT_EQ(description.summary, "Copies on every rank.");
  ASSERT_EQ(description.parameters.size(), 4u);
  EXPECT_EQ(description.parameters[0].name, "ranks");
  EXPECT_EQ(description.parameters[0].type, "integer");
  EXPECT_EQ(description.parameters[0].default_value, "2");
  EXPECT_EQ(description.parameters[0].description, "number of GPUs");
  EXPECT_EQ(description.parameters[0].bounds.max, 16);
  EXPECT_EQ(description.parameters[1].type, "boolean");
  EXPECT_EQ(description.parameters[1].default_value, "false");
  EXPECT_EQ(description.parameters[2].type, "text");
  EXPECT_EQ(description.parameters[2].default_value, "input");
  EXPECT_EQ(description.parameters[3].default_value, "1099511627776");
}

TEST(Registry, builds_with_settings) {
  EXPECT_EQ(build("registry_test_copy").num_ranks(), 2);
  const Program program =
      build("registry_test_copy", {{"ranks", "3"}, {"twice", "true"}, {"from", "output"}});
  EXPECT_EQ(ops(program.recorded(), 2), (Texts{"copy o[0,1) > o[1,2)", "copy o[0,1) > o[1,2)"}));
  EXPECT_EQ(build("registry_test_copy", {{"most", "18446744073709551615"}}).recorded().max_message_size,
            UINT64_MAX);
  for (const char* word : {"1", "yes", "on"}) {
    EXPECT_EQ(ops(build("registry_test_copy", {{"twice", word}}).recorded(), 0).size(), 2u);
  }
}

TEST(Registry, refuses_what_does_not_fit) {
  EXPECT_EQ(refused_build({{"rank", "3"}}),
            "registry_test_copy has no parameter 'rank', did you mean 'ranks'?");
  EXPECT_EQ(refused_build({{"zzzzzz", "3"}}),
            "registry_test_copy has no parameter 'zzzzzz'; it has: ranks, twice, from, most");
  EXPECT_EQ(refused_build({{"ranks", "three"}}),
            "parameter 'ranks' is 'three', but must be a whole number of at most 2147483647");
  EXPECT_EQ(refused_build({{"ranks", "3x"}}),
            "parameter 'ranks' is '3x', but must be a whole number of at most 2147483647");
  EXPECT_EQ(refused_build({{"ranks", ""}}),
            "parameter 'ranks' is '', but must be a whole number of at most 2147483647");
  EXPECT_EQ(refused_build({{"ranks", "9999999999"}}),
            "parameter 'ranks' is '9999999999', but must be a whole number of at most 2147483647");
  EXPECT_EQ(refused_build({{"ranks", "0"}}), "parameter 'ranks' is 0, but must be at least 1");
  EXPECT_EQ(refused_build({{"ranks", "17"}}), "parameter 'ranks' is 17, but must be at most 16");
  EXPECT_EQ(refused_build({{"twice", "maybe"}}), "parameter 'twice' is 'maybe', but must be true or false");
  EXPECT_EQ(refused_build({{"from", "scratch"}}), "from is 'scratch', but must be a buffer");
  EXPECT_EQ(refusal([] { build("registry_test_cpy"); }),
            "there is no program 'registry_test_cpy', did you mean 'registry_test_copy'?");
}

TEST(Registry, programs_come_and_go) {
  const Factory factory = [](Parameters& with) {
    return Program({.name = "gone", .collective = AllReduce{.ranks = with("ranks", -1, "")}});
  };
  std::optional<Registration> one, two;
  one.emplace("registry_test_gone", factory, Here{"/a/b/one.cpp", 1});
  EXPECT_EQ(build("registry_test_gone").diagnostics().size(), 1u);
  two.emplace("registry_test_gone", factory, Here{"two.cpp", 2});
  EXPECT_EQ(refusal([] { describe("registry_test_gone"); }),
            "two programs are called 'registry_test_gone': at one.cpp:1 and at two.cpp:2");
  one.reset();
  EXPECT_EQ(describe("registry_test_gone").file, "two.cpp");
  two.reset();
  EXPECT_NE(refusal([] { describe("registry_test_gone"); }), "nothing was refused");
}

TEST(Registry, a_program_that_refuses_its_defaults_can_still_be_described) {
  const Registration picky("registry_test_picky", [](Parameters& with) -> Program {
    with("size", 0, "must be set");
    throw std::invalid_argument("size must be set");
  });
  EXPECT_EQ(describe("registry_test_picky").parameters.size(), 1u);
  EXPECT_EQ(refusal([] { build("registry_test_picky"); }), "size must be set");
}

}  // namespace
}  // namespace chorale::dsl
