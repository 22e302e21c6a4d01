/// \file
/// Finds the author's line of a call: that of the innermost Python frame outside this package.
#pragma once

#include <string>

#include "chorale/dsl/common.hpp"

namespace chorale::python {

/// Sets the folder of this package. Its frames are no author's.
void set_package_folder(std::string folder);

/// Returns the author's line. The text of its file lives as long as the process. Needs the GIL.
dsl::Here here();

}  // namespace chorale::python
