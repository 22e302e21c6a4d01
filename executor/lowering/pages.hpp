/// \file
/// These functions divide the steps of a thread block's program into pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "steps.hpp"

namespace chorale::lowering {

/// Lists steps that are in shared memory together.
struct Page {
  size_t first = 0, end = 0;
  PageShape shape;  ///< the shape that they need
};

/// Returns the shape of a page that has room for another step.
PageShape with_step(PageShape shape, const RecordedStep& step);

/// Divides steps into pages. Also finds the batches of the steps; a batch ends with its page.
/// \param page_bytes the most shared memory for a page, unless a single step needs more
std::vector<Page> paginate(std::vector<RecordedStep>& steps, uint64_t page_bytes);

/// Writes one page.
/// \param shape the shape of all pages
/// \param more true if another page follows
void write_page(char* to, const PageShape& shape, const std::vector<RecordedStep>& steps, const Page& page,
                bool more);

}  // namespace chorale::lowering
