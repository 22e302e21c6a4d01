/// \file
/// These functions find turns of a pipeline that differ only by their places.
#pragma once

#include <cstdint>
#include <vector>

#include "image.hpp"
#include "steps.hpp"

namespace chorale::lowering {

/// Returns how many turns of a pipeline, from `turn` on, have the same steps at places that move on evenly.
/// In such turns every operand has a whole turn of bytes, all of which exist or none, in one segment.
uint64_t turns_alike(const image::Image& image, uint32_t pipeline, uint64_t turn);

/// Sets the strides of one turn's steps from those of the next turn. Returns false if these differ by more.
bool find_strides(std::vector<RecordedStep>& turn, const std::vector<RecordedStep>& next);

/// Returns true if `last` is what the steps of `turn` come to `later` turns later.
bool moved_on(const std::vector<RecordedStep>& turn, uint64_t later, const std::vector<RecordedStep>& last);

}  // namespace chorale::lowering
