#include "communicator.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <chorale/collective.hpp>
#include <chorale/config.hpp>
#include <chorale/json.hpp>
#include <chorale/make_plan.hpp>
#include <chorale/needs.hpp>
#include <filesystem>

#include "errors.hpp"
#include "types.hpp"

namespace chorale::torch_backend {
namespace {

/// Of memory that peers reach, in each direction. Longer messages go piece by piece.
constexpr int64_t stage_bytes = int64_t{64} << 20;

Config config_for(const std::string& backend, std::chrono::nanoseconds timeout) {
  Config config = Config::load();
  config.backend = backend;
  if (config.timeout.from == "default" && timeout.count() > 0) config.timeout = timeout;
  return config;
}

/// What `chorale tune` has written for this device, if it has.
TuneTable table_for(const std::string& plans, const TunedFor& machine) {
  const std::filesystem::path file = std::filesystem::path(plans) / "tuned" / table_name(machine);
  std::error_code none;
  return std::filesystem::exists(file, none) ? TuneTable::load(file.string()) : TuneTable();
}

/// Of how many parts, one for each rank, a collective's input and output are.
struct Parts {
  int64_t in, out;
};
Parts parts_of(const std::string& collective, int ranks) {
  return {collective == "reducescatter" || collective == "alltoall" ? ranks : 1,
          collective == "allgather" || collective == "alltoall" ? ranks : 1};
}

/// Those whose inputs and outputs are parts of one size: what is done to pieces of all parts is done to the
/// whole.
bool is_parted(const std::string& collective) {
  const char* const parted[] = {"allreduce", "allgather", "reducescatter",
                                "alltoall",  "broadcast", "sendrecv"};
  return std::find(std::begin(parted), std::end(parted), collective) != std::end(parted);
}

void check_alike(const std::string& what, const at::Tensor& in, const at::Tensor& out) {
  TORCH_CHECK(in.is_contiguous() && out.is_contiguous(), "chorale: ", what, " needs contiguous tensors");
  TORCH_CHECK(in.scalar_type() == out.scalar_type() && in.device() == out.device(), "chorale: ", what, " of ",
              in.scalar_type(), " on ", in.device().str(), " into ", out.scalar_type(), " on ",
              out.device().str());
  TORCH_CHECK(in.is_cpu() || in.is_cuda(), "chorale: tensors are on the CPU or on CUDA, not on ",
              in.device().str());
}

/// The tensor as rows of the widest words that it is made of: to copy parts of rows.
at::Tensor as_words(const at::Tensor& tensor, int64_t rows, int64_t unit) {
  const at::ScalarType word = unit % 8 == 0   ? at::kLong
                              : unit % 4 == 0 ? at::kInt
                              : unit % 2 == 0 ? at::kShort
                                              : at::kByte;
  const auto options = tensor.options().dtype(word).requires_grad(false);
  const int64_t words = int64_t(tensor.nbytes()) / int64_t(c10::elementSize(word));
  return at::from_blob(tensor.data_ptr(), {rows, words / rows}, options);
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
      .emplace(name,
               Place{std::make_shared<Executor>(world_, config_for(backend, options_.timeout)),
                     TunedPlans(table_for(options_.plans, machine), options_.plans + "/shipped", machine,
                                [](const std::string& plan, int count) { return make_plan(plan, count); })})
      .first->second;
}

bool Communicator::must_stage(Place& place, const Plan& plan, const Arguments& call, const at::Tensor& in,
                              const at::Tensor& out) {
  if (!in.is_cuda()) return false;  // the executor copies where it has to
  auto known = place.reached.find(&plan);
  if (known == place.reached.end()) {
    RankNeeds any;
    for (uint32_t rank = 0; rank < uint32_t(ranks()); ++rank) {
      const RankNeeds needs = needs_of(plan, rank, call.bytes, call.dtype);
      any.input_reached = any.input_reached || needs.input_reached;
      any.output_reached = any.output_reached || needs.output_reached;
    }
    known = place.reached.emplace(&plan, any).first;
  }
  const auto in_reach = [&place](const at::Tensor& tensor) {
    const char* const at = static_cast<const char*>(tensor.data_ptr());
    return std::any_of(place.allocated.begin(), place.allocated.end(), [&](const auto& memory) {
      return at >= memory.first && at + tensor.nbytes() <= memory.first + memory.second;
    });
  };
  return (known->second.input_reached && !in_reach(in)) || (known->second.output_reached && !in_reach(out));
}

const Communicator::Preferred* Communicator::preferred(const std::string& collective, uint64_t bytes) const {
  const auto last = std::find_if(preferred_.rbegin(), preferred_.rend(), [&](const Preferred& one) {
    return one.plan->collective == collective && bytes >= one.least && bytes <= one.most;
  });
  return last == preferred_.rend() ? nullptr : &*last;
}

void Communicator::execute(Place& place, const Plan& plan, const Arguments& call, const at::Tensor& in,
                           const at::Tensor& out, void* stream) {
  if (must_stage(place, plan, call, in, out)) {
    run_staged(place, plan, call, in, out, stream);
  } else {
    place.executor->execute(plan, call, stream);
  }
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
    // What is only moved is bytes, whatever it means.
    const DType dtype = collective_reduces(collective) ? dtype_of(in) : DType::u8;
    Arguments call{
        .in = in.data_ptr(), .out = out.data_ptr(), .bytes = in.nbytes(), .dtype = dtype, .op = op};
    if (collective == "allgather") call.bytes = out.nbytes();
    if (const Preferred* const mine = preferred(collective, call.bytes)) {
      execute(place, *mine->plan, call, in, out, stream);
      return;
    }
    const TunedPlans::Choice choice = place.plans.choose(collective, call.bytes, dtype);
    const Plan& plan = place.plans.plan(choice);
    call.packet = choice.packet;
    execute(place, plan, call, in, out, stream);
  });
}

void Communicator::run_plan(const SharedPlan& plan, const at::Tensor& in, const at::Tensor& out,
                            std::optional<ReduceOp> op, void* stream) {
  check_alike(plan->name, in, out);
  check_ranks(*plan);
  // Custom plans may add up.
  const bool moves = is_parted(plan->collective) && !collective_reduces(plan->collective);
  TORCH_CHECK(!op || !moves, "chorale: ", plan->name, " reduces nothing, and has an operator");
  Arguments call{.in = in.data_ptr(),
                 .out = out.data_ptr(),
                 .bytes = plan->collective == "allgather" ? out.nbytes() : in.nbytes(),
                 .dtype = moves ? DType::u8 : dtype_of(in),
                 .op = op};
  const MessageSizes sizes = message_sizes(*plan, call.bytes, call.dtype);
  TORCH_CHECK(sizes.input == in.nbytes() && sizes.output == out.nbytes(), "chorale: ", plan->name, " turns ",
              sizes.input, " bytes into ", sizes.output, ", and the tensors have ", in.nbytes(), " and ",
              out.nbytes());
  if (call.bytes == 0) return;
  const std::lock_guard<std::mutex> one_at_a_time(mutex_);
  with_torch_errors([&] {
    held_.emplace(plan.get(), plan);
    execute(place_for(in.device()), *plan, call, in, out, stream);
  });
}

void Communicator::broadcast(const at::Tensor& tensor, int root, void* stream) {
  // Tables are of plans whose root is 0.
  if (root == 0) return run("broadcast", tensor, tensor, std::nullopt, stream);
  SharedPlan plan;
  {
    const std::lock_guard<std::mutex> one_at_a_time(mutex_);
    SharedPlan& known = broadcasts_[root];
    if (!known) {
      known = std::make_shared<Plan>(
          make_plan("broadcast_direct_b16", ranks(), {{"root", std::to_string(root)}}));
    }
    plan = known;
  }
  run_plan(plan, tensor, tensor, std::nullopt, stream);
}

void Communicator::use(const SharedPlan& plan, uint64_t least, uint64_t most) {
  check_ranks(*plan);
  TORCH_CHECK(is_parted(plan->collective) && plan->collective != "sendrecv", "chorale: ", plan->name,
              " is of the collective '", plan->collective,
              "', which torch.distributed does not call: run() it by itself");
  TORCH_CHECK(plan->collective != "broadcast" || plan->extension.root == 0, "chorale: ", plan->name,
              " has root ", plan->extension.root, ", and the plan of every broadcast has root 0");
  const std::lock_guard<std::mutex> one_at_a_time(mutex_);
  held_.emplace(plan.get(), plan);
  preferred_.push_back({plan, least, most});
}

std::string Communicator::chosen(const std::string& collective, uint64_t bytes, DType dtype,
                                 const at::Device& device) {
  const std::lock_guard<std::mutex> one_at_a_time(mutex_);
  if (const Preferred* const mine = preferred(collective, bytes))
    return mine->plan->name + ", as use() was told";
  const TunedPlans::Choice choice = place_for(device).plans.choose(collective, bytes, dtype);
  std::string words = choice.name;
  if (choice.packet) words += std::string(", ") + std::string(packet_form_names[size_t(*choice.packet)]);
  if (choice.found == TuneTable::Found::none) return words + ", the default: nothing is tuned for it";
  return words + ", as tuned for " + std::to_string(choice.bytes) + " bytes of " + dtype_name(choice.dtype);
}

at::Tensor Communicator::empty(at::IntArrayRef shape, at::ScalarType type, const at::Device& device) {
  int64_t elements = 1;
  for (const int64_t size : shape) {
    TORCH_CHECK(size >= 0, "chorale: a tensor of shape ", shape);
    elements *= size;
  }
  const uint64_t bytes = uint64_t(elements) * c10::elementSize(type);
  const auto options = at::TensorOptions().dtype(type).device(device);
  if (bytes == 0) return at::empty(shape, options);
  const std::lock_guard<std::mutex> one_at_a_time(mutex_);
  at::Tensor tensor;
  with_torch_errors([&] {
    Place& place = place_for(device);
    void* const memory = place.executor->allocate(bytes);
    place.allocated.emplace_back(static_cast<const char*>(memory), bytes);
    // The executor refers to the world, which is ours.
    const auto keep = [self = shared_from_this(), executor = place.executor](void*) {};
    tensor = at::from_blob(memory, shape, keep, options);
  });
  return tensor;
}

void Communicator::check_ranks(const Plan& plan) const {
  TORCH_CHECK(plan.ranks() == uint32_t(ranks()), "chorale: ", plan.name, " is for ", plan.ranks(),
              " ranks, and the process group has ", ranks());
}

void Communicator::run_staged(Place& place, const Plan& plan, Arguments call, const at::Tensor& in,
                              const at::Tensor& out, void* stream) {
  if (!place.stage_in) {
    place.stage_in = static_cast<char*>(place.executor->allocate(uint64_t(stage_bytes)));
    place.stage_out = static_cast<char*>(place.executor->allocate(uint64_t(stage_bytes)));
  }
  const Parts parts = parts_of(plan.collective, ranks());
  // Words no longer than the elements of what is added up, for pieces of whole ones; else than what divides
  // the parts and where they lie.
  const int64_t unit =
      collective_reduces(plan.collective)
          ? int64_t(in.element_size())
          : int64_t(in.nbytes()) / parts.in | int64_t(reinterpret_cast<uintptr_t>(in.data_ptr()) |
                                                      reinterpret_cast<uintptr_t>(out.data_ptr()));
  const at::Tensor from = as_words(in, parts.in, unit), to = as_words(out, parts.out, unit);
  const int64_t words = from.size(1), word = int64_t(from.element_size());
  const int64_t most = stage_bytes / std::max(parts.in, parts.out) / 128 * 128 / word;
  TORCH_CHECK(is_parted(plan.collective) || (words <= most && in.nbytes() == out.nbytes()),
              "chorale: ", plan.name, " of the collective '", plan.collective, "' makes ", out.nbytes(),
              " bytes of ", in.nbytes(),
              ", and peers reach into them: take tensors that chorale_torch.empty() has made");
  for (int64_t begin = 0; begin < words; begin += most) {
    const int64_t n = std::min(most, words - begin);
    const at::Tensor staged_in = at::from_blob(place.stage_in, {parts.in, n}, from.options());
    const at::Tensor staged_out = at::from_blob(place.stage_out, {parts.out, n}, to.options());
    staged_in.copy_(from.narrow(1, begin, n));
    call.in = place.stage_in;
    call.out = place.stage_out;
    call.bytes = uint64_t((plan.collective == "allgather" ? parts.out : parts.in) * n * word);
    place.executor->execute(plan, call, stream);
    to.narrow(1, begin, n).copy_(staged_out);
  }
}

void Communicator::exchange(const std::vector<at::Tensor>& sends, const std::vector<at::Tensor>& recvs,
                            const at::Device& device, void* stream) {
  std::vector<at::Tensor> held;  // copies, until the call that reads them is enqueued
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
  std::vector<Line*> lines;
  {
    const std::lock_guard<std::mutex> lock(lines_mutex_);
    for (auto& [key, line] : lines_) lines.push_back(&line);
  }
  // What is still under way uses what goes then, whatever else has failed.
  std::string failed;
  const auto attempt = [&failed](const auto& step) {
    try {
      step();
    } catch (const std::exception& error) {
      if (failed.empty()) failed = error.what();
    }
  };
  for (Line* const line : lines) attempt([&] { line->settle(); });
  for (auto& [name, place] : places_) attempt([&, &place = place] { place.executor->synchronize(stream); });
  attempt([&] { world_.barrier(); });  // peers write into its memory until then
  if (!failed.empty())
    TORCH_WARN("chorale: a process group is destroyed whose ranks have not all ended well: ", failed);
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
