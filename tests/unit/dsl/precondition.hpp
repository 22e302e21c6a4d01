#pragma once
// Describes a case, which is one broken precondition, as a row of a table.

#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>

#include "helpers.hpp"

namespace chorale::dsl {

struct Fixture {
  Program program = two_ranks();
  Rank zero = program.rank(0), one = program.rank(1);
  Buffer s0{program, 0, 4}, s1{program, 1, 4};
  BaseBuffer i0 = zero.get_input_buffer(), o0 = zero.get_output_buffer();
  BaseBuffer i1 = one.get_input_buffer(), o1 = one.get_output_buffer();
  MemoryChannel memory{program, 1, 0};
  PortChannel port{program, 1, 0};
  SwitchChannel inputs{program, {0, 1}, BufferKind::input};
};

struct Case {
  const char* what;
  std::function<void(Fixture&)> call;
  const char* text;
  const char* help = nullptr;  ///< null: it is not compared
};

inline void PrintTo(const Case& wrong, std::ostream* out) { *out << wrong.what; }

/// Expects one finding with the text and the author's line, and that nothing was recorded.
inline void expect_one_finding(const Case& wrong, const char* file) {
  Fixture fixture;
  wrong.call(fixture);
  ASSERT_EQ(texts(fixture.program), Texts{wrong.text});
  const Diagnostic found = fixture.program.diagnostics()[0];
  EXPECT_EQ(found.help, wrong.help ? wrong.help : found.help);
  EXPECT_EQ(found.check, "dsl");
  EXPECT_EQ(found.line.file, file);
  EXPECT_NE(found.line.line, 0u);
  for (const Gpu& gpu : fixture.program.recorded().gpus) EXPECT_TRUE(gpu.threadblocks.empty());
}

inline std::string name_of(const testing::TestParamInfo<Case>& row) { return row.param.what; }

}  // namespace chorale::dsl
