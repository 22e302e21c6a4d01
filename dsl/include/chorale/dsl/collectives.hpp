#pragma once
/// \file
/// A collective says what a program computes and how many chunks its buffers have. The numbers of chunks
/// below are per rank, for N ranks and chunk factor c. Chunks are the units of a program, and their size in
/// bytes depends on the message. With `inplace` a caller may pass one buffer as input and output.
/// Source: MSCCL++ collectives.py; Broadcast, Reduce and Custom are ours.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "chorale/collective.hpp"
#include "chorale/dsl/common.hpp"

namespace chorale::dsl {

/// Gives every rank the inputs of all ranks, in rank order. Input and output have c and N * c chunks.
struct AllGather {
  static constexpr std::string_view word = "allgather";
  int64_t ranks = 0, chunk_factor = 1;
  bool inplace = false;
};

/// Gives every rank the sum of all inputs. Input and output have N * c chunks each.
struct AllReduce {
  static constexpr std::string_view word = "allreduce";
  int64_t ranks = 0, chunk_factor = 1;
  bool inplace = false;
};

/// Gives rank r part r of the sum of all inputs. Input and output have N * c and c chunks.
struct ReduceScatter {
  static constexpr std::string_view word = "reducescatter";
  int64_t ranks = 0, chunk_factor = 1;
  bool inplace = false;
};

/// Gives rank r part r of every input, in rank order. Input and output have N * c chunks each.
struct AllToAll {
  static constexpr std::string_view word = "alltoall";
  int64_t ranks = 0, chunk_factor = 1;
  bool inplace = false;
};

/// Gives every rank the input of rank `root`. Input and output have c chunks each.
struct Broadcast {
  static constexpr std::string_view word = "broadcast";
  int64_t ranks = 0, root = 0, chunk_factor = 1;
  bool inplace = false;
};

/// Gives rank `root` the sum of all inputs. Input and output have c chunks each. Nothing is promised about
/// the outputs of the other ranks, and a caller may pass null for an output that the program does not use.
struct Reduce {
  static constexpr std::string_view word = "reduce";
  int64_t ranks = 0, root = 0, chunk_factor = 1;
  bool inplace = false;
};

/// Lets the program choose which rank receives whose input. Input and output have c chunks each. An output
/// that is written holds the whole input of one rank, and at least one output must be written.
struct SendRecv {
  static constexpr std::string_view word = "sendrecv";
  int64_t ranks = 0, chunk_factor = 1;
  bool inplace = false;
};

/// Has `input` and `output` chunks. It promises nothing about the output.
struct TestCollective {
  int64_t ranks = 0, input = 0, output = 0;
};

/// Has `input` and `output` chunks and the author's own promise, which the checks prove. Output chunk `chunk`
/// of rank `rank` is the sum of the inputs that post(rank, chunk) lists. A list of one entry means a copy. An
/// empty list leaves the chunk undefined.
///
///   Custom{.ranks = 4, .input = 1, .output = 1, .post = [](int64_t rank, int64_t) {
///     return std::vector<Contribution>{{.rank = uint32_t(rank + 3) % 4, .chunk = 0}};  // from the left
///   }}
struct Custom {
  int64_t ranks = 0, input = 0, output = 0;
  std::function<std::vector<Contribution>(int64_t rank, int64_t chunk)> post = {};
  bool inplace = false;
};

/// Holds any of the above.
struct Collective {
  Collective() = default;
  /// Takes a collective whose word has a row in collectives.def, such as AllReduce.
  template <class Kind>
  requires requires { Kind::word; }
  Collective(const Kind& kind) : Collective(Kind::word, kind.ranks, kind.chunk_factor, kind.inplace) {
    static_assert(is_standard(Kind::word), "collectives.def has no row with this word");
    static_assert(
        collective_info(Kind::word).has_root() == requires { kind.root; },
        "a collective has the member `root` if its row names a root");
    if constexpr (requires { kind.root; }) root = kind.root;
  }
  Collective(const TestCollective&);
  Collective(Custom);

  std::string name;  ///< the word of plan files, such as "allreduce"; empty: not chosen
  int64_t ranks = 0;
  int64_t chunk_factor = 1;  ///< 1 where it does not apply
  int64_t input_parts = 0;   ///< the input has input_parts * chunk_factor chunks
  int64_t output_parts = 0;
  int64_t root = 0;  ///< the root's rank, for example of a broadcast; 0 if the collective has none
  bool inplace = false;
  /// Holds Custom::post. It is empty unless the collective is a Custom.
  std::function<std::vector<Contribution>(int64_t rank, int64_t chunk)> post;

 private:
  Collective(std::string_view word, int64_t ranks, int64_t chunk_factor, bool inplace);
};

}  // namespace chorale::dsl
