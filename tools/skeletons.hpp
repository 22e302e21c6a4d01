/// \file
/// Declares the skeletons of programs in tools/skeletons, which the build compiles in.
#pragma once

#include <span>
#include <string_view>

namespace chorale::tools {

struct Skeleton {
  std::string_view collective;
  const char *cpp, *py;
};
extern const std::span<const Skeleton> skeletons;

}  // namespace chorale::tools
