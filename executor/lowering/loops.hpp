/// \file
/// These functions find turns of a pipeline that differ only in their places.
#pragma once

#include <cstdint>
#include <vector>

#include "image.hpp"
#include "steps.hpp"

namespace chorale::lowering {

/// Returns how many turns of a pipeline, from `turn` on, have the same steps at places that advance evenly.
/// In such turns every operand has a whole turn of bytes in one segment, and either all of these bytes exist
/// or none.
uint64_t turns_alike(const image::Image& image, uint32_t pipeline, uint64_t turn);

/// Sets the strides of one turn's steps from those of the next turn. Returns false if the turns differ in
/// anything else.
bool find_strides(std::vector<RecordedStep>& turn, const std::vector<RecordedStep>& next);

/// Returns true if `last` equals the steps of `turn` advanced by `later` turns.
bool moved_on(const std::vector<RecordedStep>& turn, uint64_t later, const std::vector<RecordedStep>& last);

}  // namespace chorale::lowering
