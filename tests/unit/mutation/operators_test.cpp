// This test checks the list of operators, each of which has a test in this folder.

#include <set>

#include "mutants.hpp"

namespace chorale::mutation {
namespace {

TEST(Operators, AreManyAndHaveNumbersAndNamesOfTheirOwn) {
  std::set<uint32_t> numbers;
  std::set<std::string_view> names;
  for (const Operator& of : operators()) {
    EXPECT_TRUE(numbers.insert(of.number).second) << of.name;
    EXPECT_TRUE(names.insert(of.name).second) << of.name;
  }
  EXPECT_GE(operators().size(), 40u);
}

TEST(Operators, EachHasATest) {
  std::set<std::string> tested;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int suite = 0; suite < all.total_test_suite_count(); ++suite) {
    const testing::TestSuite& in = *all.GetTestSuite(suite);
    if (std::string(in.name()) != "Operator") continue;
    for (int test = 0; test < in.total_test_count(); ++test) tested.insert(in.GetTestInfo(test)->name());
  }
  for (const Operator& of : operators()) EXPECT_TRUE(tested.count(std::string(of.name))) << of.name;
}

}  // namespace
}  // namespace chorale::mutation
