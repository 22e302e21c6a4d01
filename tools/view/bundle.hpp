/// \file
/// Gives the viewer's page without data, which is compiled into the command.
#pragma once

#include <string_view>

namespace chorale::tools {

/// Returns tools/viewer/bundle/page.html.
std::string_view viewer_bundle();

}  // namespace chorale::tools
