#include "tools/bench/nccl.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace chorale::tools {
namespace {

TEST(Nccl, ChoralesOwnLibraryIsNoComparison) {
  // A library that is loaded is found by its name.
  ASSERT_NE(dlopen(CHORALE_OWN_NCCL, RTLD_NOW | RTLD_GLOBAL), nullptr) << dlerror();
  std::vector<World> worlds = World::local(1);
  std::string why;
  EXPECT_EQ(Nccl::join(worlds[0], why), nullptr);
  EXPECT_NE(why.find("Chorale's own"), why.npos) << why;
}

}  // namespace
}  // namespace chorale::tools
