/// \file
/// Makes Chorale a backend of torch.distributed.
#pragma once

#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "communicator.hpp"

namespace chorale::torch_backend {

using BackendPointer = c10::intrusive_ptr<c10d::Backend>;

/// Creates this rank's backend. Collective over processes of one host: rank 0 writes into the group's store
/// at which address the ranks join.
/// \param plans, gpu  as in Options
/// \throws c10::Error for processes of several hosts
BackendPointer create(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                      double timeout_seconds, const std::string& plans, const std::string& gpu);

/// Calls Communicator::run_plan() in the order of the group's other calls. torch.distributed has no such
/// call.
/// \param async  false to run on the current stream, true to run on a stream of the group
/// \throws c10::Error if the backend is not chorale, here and below
c10::intrusive_ptr<c10d::Work> run(const BackendPointer& backend, const SharedPlan& plan,
                                   const at::Tensor& in, const at::Tensor& out, std::optional<ReduceOp> op,
                                   bool async);

Communicator& communicator_of(const BackendPointer& backend);

}  // namespace chorale::torch_backend
