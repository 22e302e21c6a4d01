/// \file
/// These functions make the pages of a thread block's program from its steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "steps.hpp"

namespace chorale::lowering {

/// Steps that lie in shared memory together.
struct Page {
  size_t first = 0, end = 0;
  PageShape shape;  ///< the shape that they take
};

/// Divides steps into pages. Also finds the batches of the steps, which end with their page.
/// \param page_bytes  the most shared memory of a page, unless a single step takes more
std::vector<Page> paginate(std::vector<RecordedStep>& steps, uint64_t page_bytes);

/// Writes one page.
/// \param shape  the shape of all pages
/// \param more   true if another page follows
void write_page(char* to, const PageShape& shape, const std::vector<RecordedStep>& steps, const Page& page,
                bool more);

}  // namespace chorale::lowering
