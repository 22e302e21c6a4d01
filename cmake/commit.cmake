# What `git describe` says of SOURCE, as a source file OUTPUT that defines chorale::tools::built_from: run by every build,
# and written only if it says something else. "" where there is no git, or SOURCE is no checkout of its own, as of a
# tarball that was unpacked in another project's.
set(commit "")
if(EXISTS "${SOURCE}/.git")
  execute_process(COMMAND git describe --always --dirty --tags WORKING_DIRECTORY "${SOURCE}"
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT [[
// Made by cmake/commit.cmake.
namespace chorale::tools {
extern const char* const built_from;
const char* const built_from = "@commit@";
}  // namespace chorale::tools
]])
