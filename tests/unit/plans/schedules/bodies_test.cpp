// These tests check bodies of loops, conditions and groups whose functions throw or are null.

#include <gtest/gtest.h>

#include <stdexcept>

#include "chorale/dsl/schedule.hpp"

namespace chorale::dsl {
namespace {

std::string findings(const Schedule& schedule) {
  const Compiled compiled = Program(schedule).compile();
  return render(compiled.plan, compiled.diagnostics);
}

[[noreturn]] void fail() { throw std::runtime_error("the author's"); }

/// A statement after the exception belongs to the body around it, and the records of the inner body are gone.
TEST(Bodies, AnExceptionLeavesThem) {
  Schedule s({.name = "it", .ranks = {2}});
  const Tensor x = s.input("x", DType::f32, {4}), y = s.output("y", DType::f32, {4});
  const Stream main = s.main();
  const auto leaves = [](const std::function<void()>& record) { EXPECT_THROW(record(), std::runtime_error); };
  leaves([&] {
    s.loop("i", 0, 2, [&](Index) {
      main.fill(y, 1);
      fail();
    });
  });
  leaves([&] { s.when(1, [] { fail(); }); });
  leaves([&] {
    s.when(
        1, [] {}, [] { fail(); });
  });
  leaves([&] {
    main.group([&](Group& group) {
      group.send(x, 1 - s.rank());
      fail();
    });
  });
  leaves([&] { s.loop("i", 0, 2, [&](Index) { s.when(1, [] { fail(); }); }); });
  main.copy(y, x);
  EXPECT_EQ(findings(s), "");
  const Plan plan = Program(s).compile().plan;
  ASSERT_EQ(plan.extension.schedule->body.size(), 1u);
  EXPECT_EQ(plan.extension.schedule->body[0].kind, schedule::OpKind::copy);
}

TEST(Bodies, AnEmptyFunctionIsAFinding) {
  const auto found = [](const std::function<void(Schedule&)>& write) {
    Schedule s({.name = "it", .ranks = {2}});
    write(s);
    return findings(s);
  };
  const uint32_t line = __LINE__;
  const std::string loop = found([](Schedule&s) { s.loop("i", 0, 2, {}); }),
                    condition = found([](Schedule&s) { s.when(1, {}); }),
                    with_else = found([](Schedule&s) { s.when(1, {}, [] {}); }),
                    group = found([](Schedule&s) { s.main().wait(s.main().group(nullptr)); });
  const auto expected = [](uint32_t at, const std::string& what) {
    return "bodies_test.cpp:" + std::to_string(at) + ": error: " + what +
           " is given an empty function for what is in it: use [] {} for nothing [dsl]\n1 error\n";
  };
  EXPECT_EQ(loop, expected(line + 1, "a loop"));
  EXPECT_EQ(condition, expected(line + 2, "a condition"));
  EXPECT_EQ(with_else, expected(line + 3, "a condition"));
  EXPECT_EQ(group, expected(line + 4, "a group"));
  EXPECT_EQ(found([](Schedule& s) { s.when(1, [] {}, {}); }), "") << "there may be no other body";
}

}  // namespace
}  // namespace chorale::dsl
