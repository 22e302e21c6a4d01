// Runs GoogleTest's cases that need a GPU for each rank: NAME [--share-gpus] [--gtest_filter=...].

#include <gtest/gtest.h>

#include <cstdio>
#include <string_view>

#include "tests/cuda/ranks.hpp"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);  // removes its own arguments
  for (int at = 1; at < argc; ++at) {
    if (std::string_view(argv[at]) != "--share-gpus") {
      std::fprintf(stderr, "usage: %s [--share-gpus] [--gtest_filter=...], not '%s'\n", argv[0], argv[at]);
      return 2;
    }
    chorale::test::share_gpus = true;
  }
  return RUN_ALL_TESTS();
}
