#pragma once

namespace chorale::c {

/// Makes a GPU current as cudaSetDevice() does; below 0 it keeps the current one. It never switches back to
/// the GPU that was current before. If nothing has used that GPU yet, switching back would make a context
/// there, of hundreds of MB, in every process. Without CUDA the call does nothing, as there is no such
/// backend.
/// \throws UsageError if there is no such GPU
void make_current(int device);

}  // namespace chorale::c
