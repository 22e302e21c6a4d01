# Writes what `git describe` prints for SOURCE to a source file OUTPUT that defines
# chorale::tools::built_from. Every build runs this, but the file is written only if the text has changed. The
# text is "" without git, or if SOURCE is not the root of a checkout, such as a tarball that was unpacked in
# another project's checkout.
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
