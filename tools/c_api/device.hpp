/// \file
/// The GPU that is current in a thread, where the library was built with CUDA.
#pragma once

namespace chorale::c {

/// As cudaSetDevice(); below 0 it leaves what is current. It stays: to go back to a GPU that nobody has used
/// yet would make a context there, of hundreds of MB, in every process. \throws UsageError if there is no
/// such GPU; without CUDA it does nothing, as there is no such backend
void make_current(int device);

}  // namespace chorale::c
