// This file defines the collectives and checks the options of a program.

#include "chorale/dsl/collectives.hpp"

#include <bit>
#include <utility>

#include "chorale/collective.hpp"
#include "dsl/recording.hpp"

namespace chorale::dsl {
namespace {

/// Returns the number of parts of a buffer.
int64_t parts(CollectiveInfo::Cut cut, int64_t ranks) {
  return cut == CollectiveInfo::Cut::whole ? 1 : ranks;
}

}  // namespace

Collective::Collective(std::string_view word, int64_t ranks, int64_t chunk_factor, bool inplace)
    : name(word),
      ranks(ranks),
      chunk_factor(chunk_factor),
      input_parts(parts(collective_info(word).input, ranks)),
      output_parts(parts(collective_info(word).output, ranks)),
      inplace(inplace) {}

Collective::Collective(const TestCollective& kind)
    : name("test"), ranks(kind.ranks), input_parts(kind.input), output_parts(kind.output) {}

Collective::Collective(Custom kind)
    : name("custom"),
      ranks(kind.ranks),
      input_parts(kind.input),
      output_parts(kind.output),
      inplace(kind.inplace),
      post(std::move(kind.post)) {}

void Recording::set_options(const ProgramOptions& options, Here at) {
  const auto within = [&](const char* name, int64_t value, int64_t least, int64_t most) {
    if (value >= least && value <= most) return value;
    find(at, say(name, " is ", value, ", but must be ", least, " to ", most));
    return least;
  };
  if (options.name.empty()) find(at, "the name of the program is empty, but plans are known by it");
  if (options.min_message_size > options.max_message_size) {
    find(at, say("min_message_size is ", options.min_message_size, ", which is above max_message_size ",
                 options.max_message_size));
  }
  compile_options_.instances = uint32_t(within("instances", options.instances, 1, 1024));
  compile_options_.fuse = options.fuse;
  compile_options_.auto_sync = options.auto_sync;
  const auto known = [&](const char* name, auto value, std::span<const std::string_view> names) {
    const std::string wrong = unknown_value(name, uint64_t(value), names);
    if (wrong.empty()) return value;
    find(at, wrong);
    return decltype(value){};
  };
  compile_options_.replication = known("replication", options.replication, replication_names);
  compile_options_.target = known("target", options.target, target_names);
  plan_.protocol = known("protocol", options.protocol, protocol_names);
  plan_.reuse_resources = options.reuse_resources;
  plan_.extension.bounded_proof = options.bounded_proof;
  plan_.use_double_scratch_buffer = options.use_double_scratch_buffer;
  plan_.threads_per_block = uint64_t(within("threads_per_block", options.threads_per_block, 32, 1024));
  if (plan_.threads_per_block % 32) {
    find(at, say("threads_per_block is ", plan_.threads_per_block, ", but must be a multiple of 32"));
  }
  plan_.buffer_alignment = uint64_t(within("buffer_alignment", options.buffer_alignment, 1, max_count));
  if (!std::has_single_bit(plan_.buffer_alignment)) {
    find(at, say("buffer_alignment is ", plan_.buffer_alignment, ", but must be a power of two"));
  }
  plan_.min_message_size = options.min_message_size;
  plan_.max_message_size = options.max_message_size;
}

void Recording::set_collective(const Collective& collective, Here at) {
  const size_t before = findings_.size();
  const auto within = [&](const char* name, int64_t value, int64_t least, int64_t most) {
    if (value < least || value > most) {
      find(at, say(name, " of ", collective.name, " is ", value, ", but must be ", least, " to ", most));
    }
  };
  if (collective.name.empty()) {
    find(at, "no collective is given, but it determines the numbers of ranks and chunks",
         "for example .collective = AllReduce{.ranks = 8}");
    return;
  }
  within("ranks", collective.ranks, 1, max_rank_count);
  within("chunk_factor", collective.chunk_factor, 1, max_count);
  // The named collectives have 1 part or one per rank. The ranks were checked above.
  const bool free = collective_info(collective.name).has_free_sizes();
  if (free) {
    within("input", collective.input_parts, 0, max_count);
    within("output", collective.output_parts, 0, max_count);
  }
  if (findings_.size() != before) return;
  if (collective.root < 0 || collective.root >= collective.ranks) {
    find(at, say("root is ", collective.root, ", but the ranks are 0 to ", collective.ranks - 1),
         "ranks count from 0");
    return;
  }
  const auto chunks = [&](const char* buffer, int64_t parts) -> uint64_t {
    if (parts <= max_count / collective.chunk_factor) return uint64_t(parts * collective.chunk_factor);
    find(at, say("the ", buffer, " of ", collective.name, " has ", parts, " times ", collective.chunk_factor,
                 " chunks, but at most ", max_count, " fit"));
    return 0;
  };
  const uint64_t input = chunks("input", collective.input_parts);
  const uint64_t output = chunks("output", collective.output_parts);
  if (findings_.size() != before) return;

  plan_.collective = collective.name;
  plan_.inplace = collective.inplace;
  plan_.extension.root = uint32_t(collective.root);
  if (free) {
    plan_.extension.input_segments = input;
    plan_.extension.output_segments = output;
  }
  plan_.gpus.resize(size_t(collective.ranks));
  for (size_t rank = 0; rank < plan_.gpus.size(); ++rank) {
    plan_.gpus[rank].id = uint32_t(rank);
    plan_.gpus[rank].chunks[size_t(BufferKind::input)] = input;
    plan_.gpus[rank].chunks[size_t(BufferKind::output)] = output;
  }
  if (collective_info(collective.name).holds == CollectiveInfo::Holds::post) set_post(collective, at);
}

void Recording::set_post(const Collective& collective, Here at) {
  // The plan file lists every chunk. A longer list could not be read or checked in practice.
  constexpr int64_t most = int64_t{1} << 24;
  if (!collective.post) {
    find(at, "custom has no post, but only post says what the output holds",
         "give .post, or use TestCollective, which promises nothing");
    return;
  }
  if (collective.output_parts > most / collective.ranks) {
    find(at, say("custom promises ", collective.output_parts, " chunks on each of ", collective.ranks,
                 " ranks, but at most ", most, " in all can be listed"));
    return;
  }
  auto& post = plan_.extension.post;
  post.resize(size_t(collective.ranks));
  for (int64_t rank = 0; rank < collective.ranks; ++rank) {
    for (int64_t chunk = 0; chunk < collective.output_parts; ++chunk) {
      std::vector<Contribution> sum = collective.post(rank, chunk);
      for (const Contribution& part : sum) {
        if (int64_t{part.rank} < collective.ranks && part.chunk < uint64_t(collective.input_parts)) continue;
        find(at,
             say("post(", rank, ", ", chunk, ") names input chunk ", part.chunk, " of rank ", part.rank,
                 ", but each of ", collective.ranks, " ranks has ", collective.input_parts, " input chunks"));
      }
      post[size_t(rank)].push_back(std::move(sum));
    }
  }
}

}  // namespace chorale::dsl
