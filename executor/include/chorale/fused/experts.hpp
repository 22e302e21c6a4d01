/// \file
/// dispatch() sends tokens to the ranks of their experts, and combine() brings the experts' results back. All
/// counts and routes stay on the device, so you may capture both in a CUDA graph and replay it with other
/// routes. Include launch_cpu.hpp as well, or launch.cuh in a CUDA source.
///
///     ExpertOptions options;
///     options.experts_per_rank = 32, options.top_k = 8, options.hidden = 7168, options.max_tokens = 4096;
///     options.space = Space::device;
///     ExpertExchange exchange(world, options);
///     dispatch<int64_t>(exchange, {.tokens = x, .experts = topk_ids, .weights = topk_weights, .n = n,
///                                  .rows = rows, .counts = counts, .begins = begins, .room =
///                                  exchange.max_rows()}, stream);
///     // Run expert i on rows begins[i] to begins[i] + counts[i] - 1.
///     combine<bf16>(exchange, {.rows = y, .out = out, .n = n}, stream);
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "chorale/fused/combine.hpp"
#include "chorale/fused/dispatch.hpp"
#include "chorale/launch.hpp"
#include "chorale/packet_form.hpp"
#include "chorale/transport.hpp"
#include "chorale/types.hpp"

namespace chorale::fused {

/// Sets up an ExpertExchange. All ranks must pass the same options.
struct ExpertOptions {
  uint32_t experts_per_rank = 0;  ///< rank r has the experts r * experts_per_rank and following
  uint32_t top_k = 0;             ///< the number of experts that each token names
  uint64_t hidden = 0;            ///< elements of a token; a token and a result are multiples of 16 bytes
  uint32_t max_tokens = 0;        ///< the most tokens of a rank in one call
  DType token = DType::bf16;      ///< the type of the tokens' elements
  uint32_t scales = 0;            ///< floats that travel with each token, such as one per block of fp8
  DType result = DType::bf16;     ///< the type of combined tokens: f32, f16 or bf16
  /// A rank with at most this many tokens in a call sends them as packets, which takes less time for few
  /// tokens. Others go as rows. It is lowered to `max_tokens`.
  uint32_t packet_tokens = 256;
  /// Sets the form of packets: ll16 or ll128. None: ll128 where it works between all ranks, otherwise ll16.
  std::optional<PacketForm> packet = std::nullopt;
  /// Sets the thread blocks of a launch, at most 1024; 0: 4 on the CPU, 64 on GPUs. On a GPU a block of 512
  /// threads may need a multiprocessor, so dispatch() refuses more blocks than the GPU holds.
  uint32_t blocks = 0;
  Space space = Space::host;  ///< the memory of the exchange and of all buffers
};

/// Holds the memory through which ranks exchange tokens. The world must outlive it. Peers write into its
/// memory, so destroy it after the launches of all ranks have ended (World::barrier()).
///
/// Its calls alternate: a dispatch(), then at most one combine(). All ranks make the same calls. Launch them
/// in one stream. To have two batches on their way at a time, make two exchanges, whose blocks must all be
/// resident at the same time.
class ExpertExchange {
 public:
  /// Makes an exchange; collective.
  /// \throws UsageError, on all ranks, for options that are out of range, with the values and the remedy; if
  ///         the world has several hosts or more than 64 ranks
  /// \throws RunError mismatch, on all ranks, if the ranks pass different options; resources, if a rank has
  ///         no memory for bytes()
  ExpertExchange(World& world, const ExpertOptions& options);
  ExpertExchange(ExpertExchange&&) noexcept;
  ExpertExchange& operator=(ExpertExchange&&) noexcept;
  ~ExpertExchange();

  /// Makes an exchange for the ranks that are left after some were lost; collective over `survivors`, such as
  /// World::survivors() makes. The experts of lost ranks are masked: tokens are
  /// not sent to them, and combine() adds up the results of the others, whose weights stay as they are.
  /// Expert numbers stay as they were. For example:
  ///
  ///     try {
  ///       step();
  ///     } catch (const RunError& error) {               // names the rank that died
  ///       World rest = world.survivors();
  ///       ExpertExchange again = exchange.over(rest);   // again.lost() has its number
  ///       step_with(again);
  ///     }
  ///
  /// \throws UsageError if a rank of `survivors` is no rank of this exchange; otherwise as the constructor
  ExpertExchange over(World& survivors) const;

  /// Returns the ranks of the first exchange that over() has left out, in order.
  std::vector<int> lost() const;

  const ExpertOptions& options() const;
  /// Returns the most rows that a call can bring to this rank, if the rows of an expert begin at a multiple
  /// of `alignment`.
  uint64_t max_rows(uint32_t alignment = 1) const;
  /// Returns the most rows that a call can bring to one expert.
  uint64_t max_rows_of_expert() const;
  uint64_t bytes() const;  ///< the bytes of memory that the exchange takes on each rank

  /// Makes the exchange usable again after World::reset(); collective. The next call is a dispatch(). Views
  /// and captured graphs stay valid.
  void reset();

  Transport& transport() const;
  ExpertView view() const;  ///< for kernels of your own

 private:
  ExpertExchange(World& world, const ExpertOptions& options, std::vector<int> owners);

  struct State;
  std::unique_ptr<State> state_;
};

/// Holds the arguments of dispatch(). All buffers are in the exchange's space. `tokens` and `rows` are
/// aligned to 16 bytes, the others to their elements. \tparam Id  the type of expert numbers: int32_t or
/// int64_t
template <class Id>
struct Dispatch {
  const void* tokens = nullptr;    ///< [n][hidden]
  const float* scales = nullptr;   ///< [n][scales]; null if options().scales is 0
  const Id* experts = nullptr;     ///< [n][top_k]: the experts of each token; -1: none
  const float* weights = nullptr;  ///< [n][top_k]: what combine() multiplies results by; null: 1
  uint32_t n = 0;                  ///< tokens of this rank; may differ by rank and may be 0

  void* rows = nullptr;         ///< output [room][hidden], or [experts_per_rank][room][hidden] if padded: the
                                ///< tokens by expert, in the order of their ranks and of their numbers there
  float* row_scales = nullptr;  ///< output: the scales of each row; null if options().scales is 0
  int32_t* counts = nullptr;    ///< output [experts_per_rank]: the rows of each expert
  int32_t* wanted = nullptr;    ///< output [experts_per_rank]: the tokens that name each expert, also those
                                ///< that are dropped; null: not wanted
  int32_t* begins = nullptr;    ///< output [experts_per_rank + 1]: the first row of each expert, and the end
                                ///< of the last; null: not wanted
  uint64_t room = 0;            ///< the rows of `rows`, or the rows of each expert if padded
  uint32_t alignment = 1;       ///< the rows of each expert begin at a multiple of it; not if padded
  bool padded = false;          ///< expert i of this rank has the rows i * room and following
  /// Allows less room than max_rows(), or max_rows_of_expert() if padded. Tokens without room are dropped:
  /// they have no row, combine() adds nothing for them, and only `wanted` counts them.
  bool may_drop = false;
};

/// Holds the arguments of combine(). Buffers are as those of Dispatch.
struct Combine {
  const void* rows = nullptr;  ///< the experts' results of type options().result, in the rows of dispatch()
  void* out = nullptr;         ///< output [n][hidden] of type options().result
  uint32_t n = 0;              ///< as for the dispatch() before
};

namespace detail {
/// \throws UsageError that names the values and the remedy
void check_dispatch(const ExpertExchange& exchange, const void* tokens, const void* scales,
                    const void* experts, uint32_t n, const void* rows, const void* row_scales,
                    const void* counts, uint64_t room, uint32_t alignment, bool padded, bool may_drop);
void check_combine(const ExpertExchange& exchange, const Combine& call, DType type);
/// Returns the blocks and threads of a launch.
/// \throws UsageError for a number of threads that blocks cannot have
LaunchConfig launch_of(const ExpertExchange& exchange, uint32_t threads);

template <class T>
constexpr DType result_type() {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, f16> || std::is_same_v<T, bf16>,
                "results of experts are float, f16 or bf16");
  return std::is_same_v<T, float> ? DType::f32 : std::is_same_v<T, f16> ? DType::f16 : DType::bf16;
}
}  // namespace detail

/// Sends each token to the ranks of its experts, once to each rank, and stores it there in a row for each of
/// its experts. Every rank calls it. A token that names a wrong expert is an error of all ranks: on the CPU
/// with the token and the expert, on CUDA as an abort by this rank.
/// \param threads  per block; on CUDA a multiple of 32, at most 512; 0: 1 on the CPU, 512 on CUDA
/// \throws UsageError on this rank for arguments that are out of range, before it sends anything; the other
///   ranks then wait for it. Otherwise as launch()
template <class Id, class = chorale::detail::Side>
void dispatch(ExpertExchange& exchange, const Dispatch<Id>& call, LaunchStream on = {},
              uint32_t threads = 0) {
  static_assert(std::is_same_v<Id, int32_t> || std::is_same_v<Id, int64_t>, "expert numbers are integers");
  detail::check_dispatch(exchange, call.tokens, call.scales, call.experts, call.n, call.rows, call.row_scales,
                         call.counts, call.room, call.alignment, call.padded, call.may_drop);
  const ExpertView view = exchange.view();
  launch(exchange.transport(),
         DispatchKernel<Id>{view, static_cast<const char*>(call.tokens),
                            reinterpret_cast<const char*>(call.scales), call.experts, call.weights, call.n,
                            static_cast<char*>(call.rows), reinterpret_cast<char*>(call.row_scales),
                            call.counts, call.wanted, call.begins, call.room, call.alignment, call.padded},
         detail::launch_of(exchange, threads), on, {"dispatch of tokens to experts"});
}

/// Gives each token the sum of weight * result over its experts. The sum is in float: first over the experts
/// of each rank in the order in which the token names them, rounded to T, then over the ranks in their order,
/// rounded to T. So its bits do not depend on time or on the form in which tokens travel. A token without
/// experts gets 0.
/// \throws UsageError as dispatch(), and if T is not options().result
template <class T, class = chorale::detail::Side>
void combine(ExpertExchange& exchange, const Combine& call, LaunchStream on = {}, uint32_t threads = 0) {
  detail::check_combine(exchange, call, detail::result_type<T>());
  const ExpertView view = exchange.view();
  launch(exchange.transport(),
         CombineKernel<T>{view, static_cast<const char*>(call.rows), static_cast<char*>(call.out), call.n},
         detail::launch_of(exchange, threads), on, {"combination of experts' results"});
}

}  // namespace chorale::fused
