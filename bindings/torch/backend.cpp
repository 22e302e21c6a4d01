#include "backend.hpp"

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "arguments.hpp"
#include "errors.hpp"
#include "stream_order.hpp"
#include "tensors.hpp"
#include "types.hpp"
#include "work.hpp"

namespace chorale::torch_backend {
namespace {

/// Implements the backend. If it lacks a call, torch.distributed refuses that call by name.
class ChoraleBackend : public c10d::Backend {
 public:
  ChoraleBackend(int rank, int size, std::shared_ptr<Communicator> communicator)
      : Backend(rank, size), communicator_(std::move(communicator)) {}

  const std::string getBackendName() const override { return "chorale"; }

  c10::intrusive_ptr<c10d::Work> allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    const at::Tensor& tensor = only(tensors, "all_reduce");
    const ReduceOp op = op_of(options.reduceOp, tensor);
    return enqueue(c10d::OpType::ALLREDUCE, options.asyncOp, {tensor}, {tensor},
                   [this, tensor, op](void* stream) { allreduce(tensor, op, stream); });
  }

  c10::intrusive_ptr<c10d::Work> allreduce_coalesced(
      Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override {
    TORCH_CHECK(!tensors.empty(), "chorale: all_reduce of no tensors");
    return enqueue(c10d::OpType::ALLREDUCE_COALESCED, options.asyncOp, tensors, tensors,
                   [this, tensors, options](void* stream) {
                     for (const at::Tensor& tensor : tensors)
                       allreduce(tensor, op_of(options.reduceOp, tensor), stream);
                   });
  }

  c10::intrusive_ptr<c10d::Work> reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
    const at::Tensor& tensor = only(tensors, "reduce");
    const ReduceOp op = op_of(options.reduceOp, tensor);
    return enqueue(c10d::OpType::REDUCE, options.asyncOp, {tensor}, {tensor},
                   [this, tensor, op, options](void* stream) {
                     in_a_row(tensor, [&](const at::Tensor& row) {
                       const at::Tensor out = options.rootRank == getRank() ? row : at::empty_like(row);
                       communicator_->run("allreduce", row, out, op, stream);
                     });
                   });
  }

  c10::intrusive_ptr<c10d::Work> broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    const at::Tensor& tensor = only(tensors, "broadcast");
    return enqueue(c10d::OpType::BROADCAST, options.asyncOp, {tensor}, {tensor},
                   [this, tensor, options](void* stream) {
                     in_a_row(tensor, [&](const at::Tensor& row) {
                       communicator_->broadcast(row, int(options.rootRank), stream);
                     });
                   });
  }

  c10::intrusive_ptr<c10d::Work> _allgather_base(at::Tensor& out, at::Tensor& in,
                                                 const c10d::AllgatherOptions& options) override {
    return move(c10d::OpType::_ALLGATHER_BASE, options.asyncOp, "allgather", in, out);
  }
  c10::intrusive_ptr<c10d::Work> allgather_into_tensor_coalesced(
      Tensors& outs, Tensors& ins, const c10d::AllgatherOptions& options) override {
    return each(c10d::OpType::ALLGATHER_COALESCED, options.asyncOp, "allgather", ins, outs, std::nullopt);
  }
  c10::intrusive_ptr<c10d::Work> allgather(std::vector<Tensors>& outs, Tensors& ins,
                                           const c10d::AllgatherOptions& options) override {
    const at::Tensor& in = only(ins, "all_gather");
    TORCH_CHECK(outs.size() == 1, "chorale: all_gather of one tensor, not of ", outs.size());
    const Tensors& list = for_all_ranks(outs[0], getSize(), in, "all_gather");
    // All ranks have the same list, so they choose the same branch.
    if (uneven(list))
      return exchange(c10d::OpType::ALLGATHER, options.asyncOp, Tensors(size_t(getSize()), in), list);
    const Tensors parts = same_as(in, list, getSize(), "all_gather");
    return enqueue(c10d::OpType::ALLGATHER, options.asyncOp, {in}, parts, [this, in, parts](void* stream) {
      const at::Tensor all = rows_for(parts);
      communicator_->run("allgather", in.contiguous(), all, std::nullopt, stream);
      for (int64_t rank = 0; rank < getSize(); ++rank)
        at::Tensor(parts[size_t(rank)]).copy_(all[rank].view(in.sizes()));
    });
  }

  c10::intrusive_ptr<c10d::Work> _reduce_scatter_base(at::Tensor& out, at::Tensor& in,
                                                      const c10d::ReduceScatterOptions& options) override {
    const ReduceOp op = op_of(options.reduceOp, in);
    return each(c10d::OpType::_REDUCE_SCATTER_BASE, options.asyncOp, "reducescatter", {in}, {out}, op);
  }
  c10::intrusive_ptr<c10d::Work> reduce_scatter_tensor_coalesced(
      Tensors& outs, Tensors& ins, const c10d::ReduceScatterOptions& options) override {
    TORCH_CHECK(!ins.empty(), "chorale: reduce_scatter of no tensors");
    return each(c10d::OpType::REDUCE_SCATTER, options.asyncOp, "reducescatter", ins, outs,
                op_of(options.reduceOp, ins[0]));
  }
  c10::intrusive_ptr<c10d::Work> reduce_scatter(Tensors& outs, std::vector<Tensors>& ins,
                                                const c10d::ReduceScatterOptions& options) override {
    const at::Tensor& out = only(outs, "reduce_scatter");
    TORCH_CHECK(ins.size() == 1, "chorale: reduce_scatter into one tensor, not from ", ins.size(), " lists");
    const Tensors parts = for_all_ranks(ins[0], getSize(), out, "reduce_scatter");
    same_as(out, {parts[size_t(getRank())]}, 1, "reduce_scatter");
    const ReduceOp op = op_of(options.reduceOp, out);
    return enqueue(c10d::OpType::REDUCE_SCATTER, options.asyncOp, parts, {out},
                   [this, out, parts, op](void* stream) {
                     const at::Tensor all = in_rows(parts);
                     // All ranks have the same list, so they choose the same branch.
                     if (!uneven(parts)) return communicator_->run("reducescatter", all, out, op, stream);
                     const at::Tensor mine = at::empty_like(all[0]);
                     communicator_->run("reducescatter", all, mine, op, stream);
                     at::Tensor(out).copy_(mine.narrow(0, 0, out.numel()).view(out.sizes()));
                   });
  }

  c10::intrusive_ptr<c10d::Work> alltoall_base(at::Tensor& out, at::Tensor& in,
                                               std::vector<int64_t>& out_splits,
                                               std::vector<int64_t>& in_splits,
                                               const c10d::AllToAllOptions& options) override {
    if (out_splits.empty() && in_splits.empty())
      return move(c10d::OpType::ALLTOALL_BASE, options.asyncOp, "alltoall", in, out);
    const Tensors from = rows_of(in, in_splits, getSize(), "input");
    const Tensors to = rows_of(out, out_splits, getSize(), "output");
    return exchange(c10d::OpType::ALLTOALL_BASE, options.asyncOp, from, to);
  }
  c10::intrusive_ptr<c10d::Work> alltoall(Tensors& outs, Tensors& ins,
                                          const c10d::AllToAllOptions& options) override {
    TORCH_CHECK(!ins.empty(), "chorale: all_to_all of no tensors");
    return exchange(c10d::OpType::ALLTOALL, options.asyncOp,
                    for_all_ranks(ins, getSize(), ins[0], "all_to_all"),
                    for_all_ranks(outs, getSize(), ins[0], "all_to_all"));
  }

  c10::intrusive_ptr<c10d::Work> gather(std::vector<Tensors>& outs, Tensors& ins,
                                        const c10d::GatherOptions& options) override {
    const at::Tensor& in = only(ins, "gather");
    check_root(options.rootRank, outs.size(), getRank(), getSize(), "gather");
    const auto ranks = size_t(getSize());
    Tensors sends(ranks), recvs(ranks);
    sends[size_t(options.rootRank)] = in;
    if (options.rootRank == getRank()) recvs = for_all_ranks(outs[0], getSize(), in, "gather");
    return exchange(c10d::OpType::GATHER, options.asyncOp, sends, recvs);
  }
  c10::intrusive_ptr<c10d::Work> scatter(Tensors& outs, std::vector<Tensors>& ins,
                                         const c10d::ScatterOptions& options) override {
    const at::Tensor& out = only(outs, "scatter");
    check_root(options.rootRank, ins.size(), getRank(), getSize(), "scatter");
    const auto ranks = size_t(getSize());
    Tensors sends(ranks), recvs(ranks);
    recvs[size_t(options.rootRank)] = out;
    if (options.rootRank == getRank()) sends = for_all_ranks(ins[0], getSize(), out, "scatter");
    return exchange(c10d::OpType::SCATTER, options.asyncOp, sends, recvs);
  }

  /// Sends a message. As with NCCL, tags do not matter: a rank receives the messages of another rank in the
  /// order in which they are sent.
  c10::intrusive_ptr<c10d::Work> send(Tensors& tensors, int to, int) override {
    return transfer(c10d::OpType::SEND, only(tensors, "send"), to);
  }
  c10::intrusive_ptr<c10d::Work> recv(Tensors& tensors, int from, int) override {
    return transfer(c10d::OpType::RECV, only(tensors, "recv"), from);
  }

  c10::intrusive_ptr<c10d::Work> barrier(const c10d::BarrierOptions&) override {
    communicator_->barrier(device_, last_stream());
    return c10::make_intrusive<Enqueued>(getRank(), c10d::OpType::BARRIER, Tensors{}, communicator_);
  }

  /// Runs a plan. torch.distributed has no call for this.
  c10::intrusive_ptr<c10d::Work> run(const SharedPlan& plan, const at::Tensor& in, const at::Tensor& out,
                                     std::optional<ReduceOp> op, bool async) {
    return enqueue(c10d::OpType::UNKNOWN, async, {in}, {out}, [this, plan, in, out, op](void* stream) {
      communicator_->run_plan(plan, in, out, op, stream);
    });
  }
  Communicator& communicator() { return *communicator_; }

  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override { return sequence_; }
  void abort() override { communicator_->abort("torch.distributed aborted the process group"); }
  void shutdown() override { communicator_->close(last_stream()); }

 private:
  using Call = std::function<void(void* stream)>;

  void allreduce(const at::Tensor& tensor, ReduceOp op, void* stream) {
    in_a_row(tensor, [&](const at::Tensor& row) { communicator_->run("allreduce", row, row, op, stream); });
  }

  c10::intrusive_ptr<c10d::Work> move(c10d::OpType type, bool async, const char* collective,
                                      const at::Tensor& in, const at::Tensor& out) {
    return each(type, async, collective, {in}, {out}, std::nullopt);
  }
  c10::intrusive_ptr<c10d::Work> each(c10d::OpType type, bool async, const std::string& collective,
                                      const Tensors& ins, const Tensors& outs, std::optional<ReduceOp> op) {
    TORCH_CHECK(!ins.empty() && ins.size() == outs.size(), "chorale: ", collective, " of ", ins.size(),
                " tensors into ", outs.size());
    return enqueue(type, async, ins, outs, [this, collective, ins, outs, op](void* stream) {
      for (size_t at = 0; at < ins.size(); ++at)
        communicator_->run(collective, ins[at], outs[at], op, stream);
    });
  }

  /// Sends sends[p] to rank p, and receives recvs[p] from there. A tensor is undefined if there is no
  /// message.
  c10::intrusive_ptr<c10d::Work> exchange(c10d::OpType type, bool async, const Tensors& sends,
                                          const Tensors& recvs) {
    Tensors ins, outs;
    for (const at::Tensor& tensor : sends)
      if (tensor.defined()) ins.push_back(tensor);
    for (const at::Tensor& tensor : recvs)
      if (tensor.defined()) outs.push_back(tensor);
    const c10::Device device = ins.empty() ? outs[0].device() : ins[0].device();
    return enqueue(type, async, ins.empty() ? outs : ins, outs, [this, sends, recvs, device](void* stream) {
      communicator_->exchange(sends, recvs, device, stream);
    });
  }

  /// Sends or receives one message, independently of everything else. Collectives and messages of other ranks
  /// do not wait for it, and it does not wait for them.
  c10::intrusive_ptr<c10d::Work> transfer(c10d::OpType type, const at::Tensor& tensor, int peer) {
    const at::NoGradGuard values_only;
    if (tensor.is_cuda()) check_device(tensor.device());
    return c10::make_intrusive<PointToPoint>(
        getRank(), type, communicator_->transfer(tensor, peer, type == c10d::OpType::SEND), communicator_);
  }

  void check_device(const c10::Device& device) const {
    TORCH_CHECK(!device_ || *device_ == device, "chorale: a process group has one GPU, and this one has ",
                device_ ? device_->str() : "", ", not ", device.str());
  }

  /// Runs `call` now for tensors on the CPU. For other tensors it enqueues `call`: on the current stream, or
  /// if `async` is true, on a stream of the group after the work that is on the current stream.
  c10::intrusive_ptr<c10d::Work> enqueue(c10d::OpType type, bool async, const Tensors& ins,
                                         const Tensors& outs, const Call& call) {
    ++sequence_;
    auto work = c10::make_intrusive<Enqueued>(getRank(), type, outs, communicator_);
    const at::Device device = ins[0].device();
    const at::NoGradGuard values_only;
    if (!device.is_cuda()) {
      call(nullptr);
      return work;
    }
    check_device(device);
    device_ = device;
    const c10::impl::VirtualGuardImpl cuda(device.type());
    const c10::Stream current = cuda.getStream(device);
    if (!async) {
      const c10::StreamGuard on_its_device(current);
      order_.before_call(current);
      call(current.native_handle());
      order_.after_call(current);
      return work;
    }
    if (!stream_) stream_ = cuda.getStreamFromGlobalPool(device, /*isHighPriority=*/true);
    c10::Event ready(device.type());
    ready.record(current);
    const c10::StreamGuard on_its_stream(*stream_);  // it also sets the stream's device
    ready.block(*stream_);
    order_.before_call(*stream_);
    call(stream_->native_handle());
    order_.after_call(*stream_);
    for (const Tensors* const tensors : {&ins, &outs})
      for (const at::Tensor& tensor : *tensors) tensor.record_stream(*stream_);
    work->record(*stream_);
    return work;
  }

  /// Returns the stream whose work ends after all calls.
  void* last_stream() const { return order_.last() ? order_.last()->native_handle() : nullptr; }

  const std::shared_ptr<Communicator> communicator_;
  std::optional<c10::Device> device_;
  std::optional<c10::Stream> stream_;  ///< of calls that the caller waits for later
  StreamOrder order_;
  uint64_t sequence_ = 0;
};

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  gethostname(name, HOST_NAME_MAX);
  return name;
}

ChoraleBackend& chorale_of(const BackendPointer& backend) {
  auto* const ours = dynamic_cast<ChoraleBackend*>(backend.get());
  TORCH_CHECK(ours, "chorale: the process group has the backend '", backend->getBackendName(),
              "' for this device, not chorale");
  return *ours;
}

}  // namespace

BackendPointer create(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                      double timeout_seconds, const std::string& plans, const std::string& gpu) {
  static int groups = 0;
  if (rank == 0) {
    const std::string address =
        "shm://chorale-torch-" + std::to_string(getpid()) + "-" + std::to_string(groups++);
    store->set("chorale/address", address);
    store->set("chorale/host", host_name());
  }
  const std::string address = store->get_to_str("chorale/address"), host = store->get_to_str("chorale/host");
  TORCH_CHECK(host == host_name(), "chorale: a process group is on one host; rank 0 is on ", host,
              " and rank ", rank, " on ", host_name());
  Options options;
  options.plans = plans;
  options.gpu = gpu;
  // PyTorch's longest timeouts have more nanoseconds than 64 bits can hold.
  options.timeout = std::chrono::nanoseconds(int64_t(std::min(timeout_seconds, 9e9) * 1e9));
  std::shared_ptr<Communicator> communicator;
  with_torch_errors([&] { communicator = std::make_shared<Communicator>(address, rank, size, options); });
  return c10::make_intrusive<ChoraleBackend>(rank, size, std::move(communicator));
}

c10::intrusive_ptr<c10d::Work> run(const BackendPointer& backend, const SharedPlan& plan,
                                   const at::Tensor& in, const at::Tensor& out, std::optional<ReduceOp> op,
                                   bool async) {
  return chorale_of(backend).run(plan, in, out, op, async);
}

Communicator& communicator_of(const BackendPointer& backend) { return chorale_of(backend).communicator(); }

}  // namespace chorale::torch_backend
