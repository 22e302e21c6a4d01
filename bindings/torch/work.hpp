/// \file
/// Defines the work objects that torch.distributed waits for: calls on the group's stream, and messages that
/// run beside it.
#pragma once

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "communicator.hpp"

namespace chorale::torch_backend {

/// Stands for work that was enqueued or has ended. On CUDA wait() makes the current stream wait, not the
/// host. Without record() the work is on the current stream already.
class Enqueued : public c10d::Work {
 public:
  Enqueued(int rank, c10d::OpType type, Tensors outputs, std::shared_ptr<Communicator> communicator)
      : Work(rank, type), outputs_(std::move(outputs)), communicator_(std::move(communicator)) {}

  /// Records the end of the work on `stream`, which is the current one, and completes the future.
  void record(const c10::Stream& stream) {
    end_.emplace(stream.device_type());
    end_->record(stream);
    device_ = stream.device();
    complete_future();
  }

  bool isCompleted() override { return !end_ || end_->query(); }
  bool isSuccess() const override { return true; }
  void synchronize() override {
    if (end_) end_->block(c10::impl::VirtualGuardImpl(device_->type()).getStream(*device_));
    communicator_->check();
  }
  bool wait(std::chrono::milliseconds) override {
    synchronize();
    return true;
  }
  void abort() override { communicator_->abort("torch.distributed aborted the work"); }
  Tensors result() override { return outputs_; }

  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    if (!future_) complete_future();
    return future_;
  }

 private:
  /// Makes a future that is complete when the work on the current stream has ended.
  void complete_future() {
    std::vector<c10::Device> devices;
    if (!outputs_.empty() && outputs_[0].is_cuda()) devices.push_back(outputs_[0].device());
    future_ =
        c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()), devices);
    future_->markCompleted(c10::IValue(outputs_));
  }

  const Tensors outputs_;
  const std::shared_ptr<Communicator> communicator_;
  std::optional<c10::Event> end_;
  std::optional<c10::Device> device_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

/// Stands for a message that was sent or received, or will be.
class PointToPoint : public c10d::Work {
 public:
  PointToPoint(int rank, c10d::OpType type, std::shared_ptr<Transfer> transfer,
               std::shared_ptr<Communicator> communicator)
      : Work(rank, type), transfer_(std::move(transfer)), communicator_(std::move(communicator)) {}

  bool isCompleted() override { return transfer_->ended(); }
  bool isSuccess() const override { return true; }
  void synchronize() override {
    try {
      transfer_->wait();
      communicator_->check_transfers();
    } catch (const std::exception& error) {
      communicator_->abort(error.what());  // so that no rank waits for this one
      throw;
    }
  }
  bool wait(std::chrono::milliseconds) override {
    synchronize();
    return true;
  }
  void abort() override { communicator_->abort("torch.distributed aborted the work"); }
  Tensors result() override { return {transfer_->tensor()}; }
  /// Waits on the host when the user calls the future's wait().
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    synchronize();
    const at::Tensor& tensor = transfer_->tensor();
    std::vector<c10::Device> devices;
    if (tensor.is_cuda()) devices.push_back(tensor.device());
    auto future =
        c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()), devices);
    future->markCompleted(c10::IValue(Tensors{tensor}));
    return future;
  }

 private:
  const std::shared_ptr<Transfer> transfer_;
  const std::shared_ptr<Communicator> communicator_;
};

}  // namespace chorale::torch_backend
