// What front ends say of a wait that may only take longer, and where files are one.

#include "tools/command.hpp"

#include <gtest/gtest.h>

#include "executor/world/group.hpp"
#include "tools/timeout_remedy.hpp"

namespace chorale::tools {
namespace {

/// The text is the library's own: another one there, and this is to be changed too.
TEST(TimeoutRemedy, TakesThePlaceOfTheLibrarys) {
  const std::string said =
      with_timeout_remedy(std::string("rank 1 is missing; ") + world::more_time + "; more", "say --timeout");
  EXPECT_EQ(said, "rank 1 is missing; if it only takes longer, say --timeout; more");
  EXPECT_EQ(with_timeout_remedy("another error (of its own)", "say --timeout"), "another error (of its own)");
}

}  // namespace
}  // namespace chorale::tools
