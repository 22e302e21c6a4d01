#include "communicator.hpp"

#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <chorale/collective.hpp>
#include <chorale/compile.hpp>
#include <chorale/config.hpp>
#include <chorale/make_plan.hpp>

#include "errors.hpp"
#include "tensors.hpp"
#include "types.hpp"

namespace chorale::torch_backend {
namespace {

Config config_for(const std::string& backend, std::chrono::nanoseconds timeout) {
  Config config = Config::load();
  config.backend = backend;
  if (config.timeout.from == "default" && timeout.count() > 0) config.timeout = timeout;
  return config;
}

}  // namespace

Communicator::Communicator(const std::string& address, int rank, int ranks, const Options& options)
    : options_(options),
      world_(World::join(address, rank, ranks, config_for("cpu", options.timeout).join())),
      address_(address) {}

Communicator::Place& Communicator::place_for(const at::Device& device) {
  const std::string name = device.str();
  const auto known = places_.find(name);
  if (known != places_.end()) return known->second;
  const std::string backend = device.is_cuda() ? "cuda" : "cpu";
  const TunedFor machine{
      .ranks = ranks(), .backend = backend, .device = device.is_cuda() ? options_.gpu : ""};
  return places_
      .emplace(name, Place{std::make_shared<Executor>(world_, config_for(backend, options_.timeout)),
                           TunedPlans::installed(
                               options_.plans, machine,
                               [](const std::string& plan, int count) { return make_plan(plan, count); })})
      .first->second;
}

void Communicator::run(const std::string& collective, const at::Tensor& in, const at::Tensor& out,
                       std::optional<ReduceOp> op, void* stream) {
  check_alike(collective, in, out);
  const Parts parts = parts_of(collective, ranks());
  TORCH_CHECK(in.numel() * parts.out == out.numel() * parts.in, "chorale: ", collective, " of ", ranks(),
              " ranks makes ", in.numel() * parts.out, "/", parts.in, " elements of ", in.numel(),
              ", and the output has ", out.numel());
  if (in.numel() == 0) return;
  const std::lock_guard<std::mutex> one_at_a_time(mutex_);
  with_torch_errors([&] {
    Place& place = place_for(in.device());
    // A collective that only moves elements treats them as bytes, whatever their type.
    const DType dtype = collective_reduces(collective) ? dtype_of(in) : DType::u8;
    Arguments call{
        .in = in.data_ptr(), .out = out.data_ptr(), .bytes = in.nbytes(), .dtype = dtype, .op = op};
    if (collective_info(collective).counts_output()) call.bytes = out.nbytes();
    if (const Preferred* const mine = preferred(collective, call.bytes))
      return execute(*place.executor, *mine->plan, call, stream);
    const TunedPlans::Choice choice =
        place.plans.choose(collective, place.bytes_at_once(call, in.nbytes(), out.nbytes()), dtype);
    const Plan& plan = place.plans.plan(choice);
    call.packet = choice.packet;
    execute(*place.executor, plan, call, stream);
  });
}

uint64_t Communicator::Place::bytes_at_once(const Arguments& call, uint64_t in_bytes,
                                            uint64_t out_bytes) const {
  const auto in_own_memory = [this](const void* at, uint64_t bytes) {
    const char* const begin = static_cast<const char*>(at);
    return std::any_of(shared.begin(), shared.end(), [&](const std::pair<const char*, uint64_t>& one) {
      return begin >= one.first && begin + bytes <= one.first + one.second;
    });
  };
  const bool whole = call.bytes <= Executor::most_direct ||
                     (in_own_memory(call.in, in_bytes) && in_own_memory(call.out, out_bytes));
  return whole ? call.bytes : Executor::most_direct;
}

void Communicator::execute(Executor& executor, const Plan& plan, Arguments call, void* stream) {
  // One rank may call in place and another not, so all calls run the plan that is right for both.
  auto known = in_place_.find(&plan);
  if (known == in_place_.end()) known = in_place_.emplace(&plan, also_in_place(plan)).first;
  const std::optional<Plan>& both = known->second;
  call.proved_in_place = both.has_value();
  executor.execute_staged(both ? *both : plan, call, stream);
}

void Communicator::broadcast(const at::Tensor& tensor, int root, void* stream) {
  // The plans in tables have root 0.
  if (root == 0) return run("broadcast", tensor, tensor, std::nullopt, stream);
  SharedPlan plan;
  {
    const std::lock_guard<std::mutex> one_at_a_time(mutex_);
    SharedPlan& known = broadcasts_[root];
    if (!known) {
      with_torch_errors([&] {
        const std::string name = place_for(tensor.device()).plans.name_for_roots("broadcast");
        known = std::make_shared<Plan>(make_plan(name, ranks(), {{"root", std::to_string(root)}}));
      });
    }
    plan = known;
  }
  run_plan(plan, tensor, tensor, std::nullopt, stream);
}

void Communicator::exchange(const std::vector<at::Tensor>& sends, const std::vector<at::Tensor>& recvs,
                            const at::Device& device, void* stream) {
  std::vector<at::Tensor> held;  // keeps copies until the call that reads them is enqueued
  std::vector<SendTo> to;
  std::vector<RecvFrom> from;
  std::vector<std::pair<at::Tensor, at::Tensor>> back;
  for (int peer = 0; peer < ranks(); ++peer) {
    const at::Tensor &sent = sends[size_t(peer)], &received = recvs[size_t(peer)];
    if (peer == rank()) {
      if (!sent.defined() && !received.defined()) continue;
      TORCH_CHECK(sent.defined() && received.defined() && sent.numel() == received.numel() &&
                      sent.scalar_type() == received.scalar_type(),
                  "chorale: rank ", peer, " has ", sent.defined() ? sent.numel() : 0,
                  " elements for itself, and room for ", received.defined() ? received.numel() : 0,
                  ", or of another type");
      received.copy_(sent.reshape(received.sizes()));
      continue;
    }
    if (sent.defined()) {
      held.push_back(sent.contiguous());
      to.push_back({held.back().data_ptr(), held.back().nbytes(), peer});
    }
    if (received.defined()) {
      if (!received.is_contiguous())
        back.emplace_back(received, at::empty_like(received, at::MemoryFormat::Contiguous));
      const at::Tensor& here = received.is_contiguous() ? received : back.back().second;
      from.push_back({here.data_ptr(), here.nbytes(), peer});
    }
  }
  const std::lock_guard<std::mutex> one_at_a_time(mutex_);
  with_torch_errors([&] {
    Place& place = place_for(device);
    if (!place.exchange) {
      const std::string backend = device.is_cuda() ? "cuda" : "cpu";
      place.exchange =
          std::make_unique<Exchange>(world_, ExchangeOptions{}, config_for(backend, options_.timeout));
    }
    place.exchange->exchange(to, from, stream);
  });
  for (const auto& [out, here] : back) out.copy_(here);
}

std::shared_ptr<Transfer> Communicator::transfer(const at::Tensor& tensor, int peer, bool sends) {
  TORCH_CHECK(tensor.is_contiguous(), "chorale: send and recv need contiguous tensors");
  TORCH_CHECK(tensor.is_cpu() || tensor.is_cuda(), "chorale: tensors are on the CPU or on CUDA, not on ",
              tensor.device().str());
  TORCH_CHECK(peer >= 0 && peer < ranks() && peer != rank(), "chorale: rank ", rank(), " of ", ranks(),
              " cannot send to, or receive from, rank ", peer);
  const std::lock_guard<std::mutex> lock(lines_mutex_);
  const LineKey key{sends ? rank() : peer, sends ? peer : rank(), tensor.is_cuda()};
  auto line = lines_.find(key);
  if (line == lines_.end()) {
    const std::string backend = key.on_gpu ? "cuda" : "cpu";
    std::optional<c10::Stream> stream;
    if (key.on_gpu) stream = stream_for_line(tensor.device());
    const std::string ends = std::to_string(key.from) + "-" + std::to_string(key.to);
    const std::string name =
        "messages from rank " + std::to_string(key.from) + " to rank " + std::to_string(key.to);
    line = lines_
               .try_emplace(key, address_ + "-" + backend + "-" + ends, name, sends,
                            config_for(backend, options_.timeout), stream)
               .first;
  }
  return line->second.enqueue(tensor);
}

void Communicator::check() {
  const std::lock_guard<std::mutex> one_at_a_time(mutex_);
  with_torch_errors([&] {
    for (auto& [name, place] : places_) {
      place.executor->check();
      if (place.exchange) place.exchange->check();
    }
  });
}

void Communicator::check_transfers() {
  const std::lock_guard<std::mutex> lock(lines_mutex_);
  for (auto& [key, line] : lines_) line.check();
}

void Communicator::barrier(std::optional<at::Device> device, void* stream) {
  const std::lock_guard<std::mutex> one_at_a_time(mutex_);
  with_torch_errors([&] {
    if (device) place_for(*device).executor->synchronize(stream);
    world_.barrier();
  });
}

void Communicator::close(void* stream) {
  const std::lock_guard<std::mutex> one_at_a_time(mutex_);
  std::vector<P2pConnection*> lines;
  {
    const std::lock_guard<std::mutex> lock(lines_mutex_);
    for (auto& [key, line] : lines_) lines.push_back(&line);
  }
  // Every step runs even if another one has failed, because running work still uses the memory that is freed
  // at the end.
  std::string failed;
  const auto attempt = [&failed](const auto& step) {
    try {
      step();
    } catch (const std::exception& error) {
      if (failed.empty()) failed = error.what();
    }
  };
  for (P2pConnection* const line : lines) attempt([&] { line->settle(); });
  for (auto& [name, place] : places_) attempt([&, &place = place] { place.executor->synchronize(stream); });
  attempt([&] { world_.barrier(); });  // until then peers write into this rank's memory
  if (!failed.empty())
    TORCH_WARN("chorale: a process group is destroyed after some ranks have failed: ", failed);
  const std::lock_guard<std::mutex> lock(lines_mutex_);
  lines_.clear();
  places_.clear();
}

void Communicator::abort(const std::string& why) {
  world_.abort(why);
  const std::lock_guard<std::mutex> lock(lines_mutex_);
  for (auto& [key, line] : lines_) line.abort(why);
}

}  // namespace chorale::torch_backend
