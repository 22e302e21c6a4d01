#pragma once
/// \file
/// A target is the executor that a plan is compiled for.

#include <cstdint>
#include <string_view>

namespace chorale {

enum class Target : uint8_t {
  chorale,  ///< our executor; MSCCL++'s executor also loads the plan if it uses only features of MSCCL++
  mscclpp,  ///< MSCCL++'s executor; the plan uses only what that one runs correctly
};
/// Holds the words of the command line, by Target.
inline constexpr std::string_view target_names[] = {"chorale", "mscclpp"};

}  // namespace chorale
