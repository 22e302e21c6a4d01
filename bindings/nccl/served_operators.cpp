// Serves functions for operators that a program creates.

#include <fmt/format.h>

#include <cstring>

#include "handles.hpp"
#include "operators.hpp"
#include "outcome.hpp"
#include "served.hpp"

namespace chorale::nccl::served {

// A factor in host memory is read now. A factor in memory of the device is read when a collective runs.
ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t datatype,
                                      ncclScalarResidence_t residence, ncclComm_t comm) {
  const std::shared_ptr<Communicator> communicator = communicator_for_call(handles::find(comm));
  const uint64_t bytes = element_bytes(datatype);
  Factor factor;
  switch (residence) {
    case ncclScalarDevice:
      factor.at = scalar;
      break;
    case ncclScalarHostImmediate:
      std::memcpy(&factor.value, scalar, bytes);
      break;
    default:
      throw CallError(
          ncclInvalidArgument,
          fmt::format("residence is {}, but must be ncclScalarDevice (0) or ncclScalarHostImmediate (1)",
                      int(residence)));
  }
  *op = communicator->operators().add(datatype, factor);
  return ncclSuccess;
}

// A program may also destroy its operators after the communicator has failed.
ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
  const Handle handle = handles::find(comm);
  std::shared_ptr<Communicator> communicator;
  {
    const std::lock_guard<std::mutex> lock(handle->mutex);
    communicator = handle->communicator;
  }
  if (!communicator) throw CallError(ncclInvalidArgument, "the communicator has no operators");
  communicator->operators().remove(op);
  return ncclSuccess;
}

}  // namespace chorale::nccl::served
