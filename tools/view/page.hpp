/// \file
/// Writes the page of `chorale view`: one HTML file that needs no network and no server.
#pragma once

#include <string>
#include <vector>

#include "tools/view/picture.hpp"

namespace chorale::tools {

/// Returns the page as HTML. Texts from files cannot end the page's script, whatever they are.
std::string page_of(const std::vector<Picture>&);

}  // namespace chorale::tools
