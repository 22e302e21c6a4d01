#include "chorale/fused/experts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <numeric>
#include <tuple>

#include "chorale/one_sided_window.hpp"
#include "executor/transport/in_device_memory.hpp"
#include "executor/world/collective_try.hpp"

namespace chorale::fused {

struct ExpertExchange::State {
  World* world;
  ExpertOptions options;
  std::vector<int> owners;  // the rank that has each shard of experts; -1: lost
  std::unique_ptr<Transport> transport;
  std::optional<OneSidedWindow> window;
  std::shared_ptr<const void> owners_for_kernels;
  ExpertView view;

  void make_window();
};

namespace {

/// Gives a name and a value for error messages.
struct Number {
  const char* name;
  uint64_t value, least, most;
};

void check(const ExpertOptions& options) {
  constexpr uint64_t most = std::numeric_limits<int32_t>::max();
  for (const Number& of :
       {Number{"experts_per_rank", options.experts_per_rank, 1, 65536},
        Number{"top_k", options.top_k, 1, 1024}, Number{"hidden", options.hidden, 1, most / 8},
        Number{"max_tokens", options.max_tokens, 1, most / 64},
        Number{"scales", options.scales, 0, options.hidden}, Number{"blocks", options.blocks, 1, 1024}}) {
    if (of.value >= of.least && of.value <= of.most) continue;
    throw UsageError(fmt::format("an expert exchange with {} = {}: expected {} to {}", of.name, of.value,
                                 of.least, of.most));
  }
  for (const auto& [what, type] : {std::pair("token", options.token), std::pair("result", options.result)}) {
    const uint64_t bytes = options.hidden * dtype_size(type);
    if (bytes % unit_bytes == 0) continue;
    throw UsageError(fmt::format(
        "an expert exchange with hidden = {}: a {} of type {} has {} bytes, expected a multiple of {}: pad "
        "`hidden` to a multiple of {}",
        options.hidden, what, dtype_name(type), bytes, unit_bytes, unit_bytes / dtype_size(type)));
  }
  if (uint64_t(options.max_tokens) * options.top_k > most / 64) {
    throw UsageError(fmt::format("an expert exchange with max_tokens * top_k = {} * {}: expected at most {}",
                                 options.max_tokens, options.top_k, most / 64));
  }
  if (options.result != DType::f32 && options.result != DType::f16 && options.result != DType::bf16) {
    throw UsageError(fmt::format("an expert exchange with results of type {}: expected f32, f16 or bf16",
                                 dtype_name(options.result)));
  }
  if (options.packet == PacketForm::ll8) {
    throw UsageError("an expert exchange with packets of form ll8: expected ll16 or ll128");
  }
}

/// Fills in the options that the library chooses.
ExpertOptions chosen(ExpertOptions options) {
  if (options.blocks == 0) options.blocks = options.space == Space::device ? 64 : 4;
  options.packet_tokens = std::min(options.packet_tokens, options.max_tokens);
  return options;
}

auto numbers(const ExpertOptions& of) {
  return std::array<uint64_t, 11>{
      of.experts_per_rank, of.top_k,           of.hidden,
      of.max_tokens,       uint64_t(of.token), of.scales,
      uint64_t(of.result), of.packet_tokens,   of.packet ? uint64_t(*of.packet) + 1 : 0,
      of.blocks,           uint64_t(of.space)};
}

std::string text(const ExpertOptions& of) {
  return fmt::format(
      "{} experts per rank, top {}, {} elements of {} and {} scales, up to {} tokens ({} as packets), "
      "results "
      "of {}, {} blocks",
      of.experts_per_rank, of.top_k, of.hidden, dtype_name(of.token), of.scales, of.max_tokens,
      of.packet_tokens, dtype_name(of.result), of.blocks);
}

/// Checks the options of all ranks, so that all throw the same error.
void agree(World& world, const ExpertOptions& options) {
  world::collective_try(world, [&] {
    check(options);
    if (world.ranks() > 64) {
      throw UsageError(fmt::format("an expert exchange of {} ranks: expected at most 64", world.ranks()));
    }
  });
  const auto mine = numbers(options);
  const auto all = world.allgather(std::as_bytes(std::span(mine)));
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    throw RunError(RunError::Reason::mismatch,
                   fmt::format("the ranks make different expert exchanges: ranks 0 and {} pass different "
                               "options; rank {} passes {}",
                               rank, world.rank(), text(options)));
  }
}

}  // namespace

ExpertExchange::ExpertExchange(World& world, const ExpertOptions& options)
    : ExpertExchange(world, options, [&world] {
        std::vector<int> owners(size_t(world.ranks()));
        std::iota(owners.begin(), owners.end(), 0);
        return owners;
      }()) {}

ExpertExchange::ExpertExchange(World& world, const ExpertOptions& asked, std::vector<int> owners)
    : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.world = &world;
  state.options = chosen(asked);
  state.owners = std::move(owners);
  agree(world, state.options);
  // The transport only launches: all data goes through the window.
  RendezvousOptions rings;
  rings.per_peer_bytes = unit_bytes;
  rings.max_channels = rings.depth = 1;
  rings.space = state.options.space;
  state.transport = direct_rendezvous(world, rings);
  if (state.options.space == Space::device) {
    world::collective_try(world, [&] {
      state.owners_for_kernels =
          transport::device_copy(state.owners.data(), state.owners.size() * sizeof(int32_t));
    });
  } else {
    state.owners_for_kernels = {std::shared_ptr<void>(), state.owners.data()};
  }
  state.make_window();
}

void ExpertExchange::State::make_window() {
  const auto bytes_of = [this](DType type) { return uint32_t(this->options.hidden * dtype_size(type)); };
  view = {};
  view.shards = uint32_t(owners.size());
  view.experts_per_shard = options.experts_per_rank;
  view.top_k = options.top_k;
  view.max_tokens = options.max_tokens;
  view.packet_tokens = options.packet_tokens;
  view.blocks = options.blocks;
  view.token_bytes = bytes_of(options.token);
  view.scale_bytes = options.scales * uint32_t(sizeof(float));
  view.result_bytes = bytes_of(options.result);
  view.owners = static_cast<const int32_t*>(owners_for_kernels.get());
  view.shard = uint32_t(std::find(owners.begin(), owners.end(), world->rank()) - owners.begin());
  view.window.ranks = world->ranks();
  view.lines = options.packet != PacketForm::ll16;  // also a bound of the size, until the window tells
  const auto make = [this] {
    view.at = view.offsets();
    window.reset();
    window.emplace(OneSidedWindow::create(*world, view.at.end, ExpertView::signals_per_block * view.blocks, 0,
                                          options.space));
  };
  make();
  if (view.lines && !window->whole_lines()) {
    if (options.packet) {
      throw UsageError(
          "an expert exchange with packets of form ll128: they need NVLink between all GPUs; take ll16, or "
          "leave `packet` unset");
    }
    view.lines = false;
    make();
  }
  view.window = window->view();
}

ExpertExchange::ExpertExchange(ExpertExchange&&) noexcept = default;
ExpertExchange& ExpertExchange::operator=(ExpertExchange&&) noexcept = default;
ExpertExchange::~ExpertExchange() = default;

ExpertExchange ExpertExchange::over(World& survivors) const {
  // Each rank tells which experts it has. So it does not matter how the world was made.
  const uint32_t mine = state_->view.shard;
  const auto all = survivors.allgather(std::as_bytes(std::span(&mine, 1)));
  std::vector<int> owners(state_->owners.size(), -1);
  for (size_t rank = 0; rank < all.size(); ++rank) {
    uint32_t shard = 0;
    std::memcpy(&shard, all[rank].data(), std::min(sizeof shard, all[rank].size()));
    if (all[rank].size() != sizeof shard || shard >= owners.size() || owners[shard] >= 0) {
      throw UsageError(fmt::format(
          "an expert exchange over other ranks: rank {} is not a rank of this exchange that is left", rank));
    }
    owners[shard] = int(rank);
  }
  return {survivors, state_->options, std::move(owners)};
}

std::vector<int> ExpertExchange::lost() const {
  std::vector<int> lost;
  for (size_t shard = 0; shard < state_->owners.size(); ++shard) {
    if (state_->owners[shard] < 0) lost.push_back(int(shard));
  }
  return lost;
}

const ExpertOptions& ExpertExchange::options() const { return state_->options; }
uint64_t ExpertExchange::max_rows(uint32_t alignment) const {
  const ExpertOptions& of = state_->options;
  return max_rows_of_expert() * std::min(of.top_k, of.experts_per_rank) +
         uint64_t(of.experts_per_rank) * (alignment - 1);
}
uint64_t ExpertExchange::max_rows_of_expert() const {
  return uint64_t(state_->world->ranks()) * state_->options.max_tokens;
}
uint64_t ExpertExchange::bytes() const { return state_->view.at.end; }

void ExpertExchange::reset() {
  state_->transport->reset();
  state_->window->clear();
}

Transport& ExpertExchange::transport() const { return *state_->transport; }
ExpertView ExpertExchange::view() const { return state_->view; }

namespace {

void check_aligned(const char* what, const void* data, uint64_t rows, const char* call) {
  if (rows == 0) return;
  if (!data) throw UsageError(fmt::format("{}(): {} is null", call, what));
  if (reinterpret_cast<uintptr_t>(data) % unit_bytes != 0) {
    throw UsageError(
        fmt::format("{}(): {} is at {}, expected a multiple of {} bytes", call, what, data, unit_bytes));
  }
}
void check_given(const char* what, const void* data, bool wanted) {
  if (wanted && !data) throw UsageError(fmt::format("dispatch(): {} is null", what));
}
void check_tokens(const char* call, uint32_t n, const ExpertOptions& options) {
  if (n <= options.max_tokens) return;
  throw UsageError(fmt::format(
      "{}(): {} tokens, but the exchange was made for at most {}: make it with a larger max_tokens", call, n,
      options.max_tokens));
}

}  // namespace

void detail::check_dispatch(const ExpertExchange& exchange, const void* tokens, const void* scales,
                            const void* experts, uint32_t n, const void* rows, const void* row_scales,
                            const void* counts, uint64_t room, uint32_t alignment, bool padded,
                            bool may_drop) {
  const ExpertOptions& options = exchange.options();
  check_tokens("dispatch", n, options);
  if (alignment == 0) throw UsageError("dispatch(): alignment is 0, expected at least 1");
  const uint64_t most = padded ? exchange.max_rows_of_expert() : exchange.max_rows(alignment);
  if (room < most && !may_drop) {
    throw UsageError(fmt::format(
        "dispatch(): room for {} rows{}, but up to {} may come: pass more room, or set may_drop to drop "
        "tokens that have none",
        room, padded ? " of each expert" : "", most));
  }
  const uint64_t parts = padded ? options.experts_per_rank : 1, limit = std::numeric_limits<int32_t>::max();
  if (room > limit / parts) {
    throw UsageError(fmt::format("dispatch(): room for {} rows{}, expected at most {}", room,
                                 padded ? " of each expert" : "", limit / parts));
  }
  const uint64_t all = room * parts;
  check_aligned("tokens", tokens, n, "dispatch");
  check_aligned("rows", rows, all, "dispatch");
  check_given("experts", experts, n != 0);
  check_given("counts", counts, true);
  check_given("scales", scales, n != 0 && options.scales != 0);
  check_given("row_scales", row_scales, all != 0 && options.scales != 0);
}

LaunchConfig detail::launch_of(const ExpertExchange& exchange, uint32_t threads) {
  const ExpertOptions& options = exchange.options();
  if (options.space == Space::host) return {options.blocks, threads};
  if (threads % 32 != 0 || threads > 512) {
    throw UsageError(fmt::format(
        "an expert exchange in blocks of {} threads: expected a multiple of 32, at most 512", threads));
  }
  return {options.blocks, threads == 0 ? 512 : threads};
}

void detail::check_combine(const ExpertExchange& exchange, const Combine& call, DType type) {
  const ExpertOptions& options = exchange.options();
  if (type != options.result) {
    throw UsageError(fmt::format("combine() of {}, but the exchange was made for results of {}",
                                 dtype_name(type), dtype_name(options.result)));
  }
  check_tokens("combine", call.n, options);
  check_aligned("rows", call.rows, 1, "combine");
  check_aligned("out", call.out, call.n, "combine");
}

}  // namespace chorale::fused
