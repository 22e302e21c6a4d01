// These tests check the messages of commands about a wait that may only need more time, about a command line,
// and about multicast.

#include "tools/command.hpp"

#include <gtest/gtest.h>

#include "chorale/timeout_remedy.hpp"
#include "executor/system/texts.hpp"
#include "executor/world/group.hpp"
#include "tools/bench/nccl.hpp"

namespace chorale::tools {
namespace {

/// The text is the library's own. If it changes there, change it here too.
TEST(TimeoutRemedy, TakesThePlaceOfTheLibrarys) {
  const std::string said =
      with_timeout_remedy(std::string("rank 1 is missing; ") + system::more_time + "; more", "say --timeout");
  EXPECT_EQ(said, "rank 1 is missing; if it only takes longer, say --timeout; more");
  EXPECT_EQ(with_timeout_remedy("another error (of its own)", "say --timeout"), "another error (of its own)");
}

TEST(ShellLine, QuotesWhatAShellWouldTakeApart) {
  const std::vector<std::string> words = {"chorale", "bench", "a b.json", "--set",  "n=2",
                                          "it's",    "$HOME", "",         "1K:1M:4"};
  EXPECT_EQ(shell_line(words), "chorale bench 'a b.json' --set n=2 'it'\\''s' '$HOME' '' 1K:1M:4");
}

/// Standard error is a file while it is captured.
TEST(Progress, HasLinesWhereThereIsNoTerminalOnlyIfTheyAreAskedFor) {
  testing::internal::CaptureStderr();
  {
    Progress silent;
    silent("nothing");
    Progress seldom(3600);
    seldom("not yet");
    Progress often(1e-12);
    often("1 of 2");
    often("2 of 2");
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "1 of 2\n2 of 2\n");
}

/// NCCL reads the variable in the same way: on, unless a number says 0.
TEST(MulticastWords, SayWhatHolds) {
  EXPECT_EQ(multicast_words("0"), "NVLink multicast off");
  EXPECT_EQ(multicast_words("0x0"), "NVLink multicast off");
  EXPECT_EQ(multicast_words("off"), "NVLink multicast off");
  EXPECT_EQ(multicast_words("1"), "NVLink multicast as NCCL_NVLS_ENABLE=1 has it");
  EXPECT_EQ(multicast_words(""), "NVLink multicast as NCCL_NVLS_ENABLE= has it");
  EXPECT_EQ(multicast_words(nullptr), "NVLink multicast as NCCL chooses");
}

}  // namespace
}  // namespace chorale::tools
