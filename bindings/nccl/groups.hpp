#pragma once

#include <memory>
#include <vector>

#include "abi.hpp"
#include "handles.hpp"

/// The groups of the calling thread, as ncclGroupStart() and ncclGroupEnd() nest them.
namespace chorale::nccl::group {

/// Opens a group, or one more level of the open group.
void start();

/// Holds the tasks of one communicator.
struct Work {
  Handle handle;
  std::shared_ptr<Communicator> communicator;
  std::vector<Task> tasks;
};

/// Holds the calls of a group, in their order.
struct Calls {
  std::vector<Init> inits;
  std::vector<Work> works;
};

/// Says how a level of a group ended.
struct End {
  bool open;            ///< False if there was no group to end.
  bool whole;           ///< True if this was the outermost level.
  ncclResult_t result;  ///< The last error of a call of the group, if this was the outermost level.
  Calls calls = {};     ///< The calls of the group, if this was the outermost level.
};

/// Ends one level.
End end();

/// Makes the open group fail with `result`. As in NCCL, the last call that failed decides. Nothing happens
/// outside a group.
void fail(ncclResult_t result);

/// Runs a call at once, or keeps it for the end of the open group.
Outcome add(Init init);
Outcome add(const Handle& handle, Task task);

/// Runs the calls of a group. Ranks of one communicator in this process run at the same time.
Outcome run(Calls calls);

}  // namespace chorale::nccl::group
