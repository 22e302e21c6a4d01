/// \file
/// From a thread block's steps to the pages of its tape.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "steps.hpp"

namespace chorale::cuda {

/// Steps that lie in shared memory together.
struct Page {
  size_t first = 0, end = 0;
  PageShape shape;  ///< that they take
};

/// Also finds the batches of the steps, which end with their page.
/// \param page_bytes  of shared memory that a page takes at most, unless a single step takes more
std::vector<Page> paginate(std::vector<Step>& steps, uint64_t page_bytes);

/// \param shape  of all pages; `more`: whether another page follows
void write_page(char* to, const PageShape& shape, const std::vector<Step>& steps, const Page& page,
                bool more);

}  // namespace chorale::cuda
