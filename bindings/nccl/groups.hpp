#pragma once

#include "abi.hpp"

/// The groups of the calling thread, as ncclGroupStart() and ncclGroupEnd() nest them.
namespace chorale::nccl::group {

/// Opens a group, or one more level of the open group.
void start();

/// Says how a level of a group ended.
struct End {
  bool open;            ///< False if there was no group to end.
  bool whole;           ///< True if this was the outermost level.
  ncclResult_t result;  ///< The last error of a call of the group, if this was the outermost level.
};

/// Ends one level.
End end();

/// Makes the open group fail with `result`. As in NCCL, the last call that failed decides. Nothing happens
/// outside a group.
void fail(ncclResult_t result);

}  // namespace chorale::nccl::group
