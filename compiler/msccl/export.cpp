// This file makes an MSCCL algorithm from a plan, the reverse of import.cpp.

#include "export.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

#include "chorale/collective.hpp"
#include "chorale/msccl_xml.hpp"
#include "compiler/plan/report.hpp"

namespace chorale {
namespace msccl {
namespace {

/// Returns whether a collective of the plan's own is the sum of all inputs at one rank. The import makes such
/// a plan of MSCCL's reduce.
bool is_sum_at_root(const Plan& plan, uint32_t& root) {
  const auto& post = plan.extension.post;
  if (post.size() != plan.gpus.size() || plan.extension.input_segments != 1 ||
      plan.extension.output_segments != 1)
    return false;
  uint32_t found = 0;
  for (uint32_t rank = 0; rank < post.size(); ++rank) {
    if (post[rank].size() != 1) return false;
    if (post[rank][0].empty()) continue;
    ++found;
    root = rank;
    std::vector<bool> has(post.size(), false);
    for (const Contribution& addend : post[rank][0]) {
      if (addend.chunk != 0 || addend.rank >= has.size() || has[addend.rank]) return false;
      has[addend.rank] = true;
    }
    if (post[rank][0].size() != post.size()) return false;
  }
  return found == 1;
}

/// Sets the attributes of the algorithm. Reports what MSCCL has no word for.
void describe(const Plan& plan, Algorithm& algorithm, Report& report) {
  algorithm.name = plan.name;
  algorithm.collective = plan.collective;
  algorithm.inplace = plan.inplace;
  algorithm.min_bytes = plan.min_message_size;
  algorithm.max_bytes = plan.max_message_size;
  algorithm.root = plan.extension.root;
  const CollectiveInfo& info = collective_info(plan.collective);
  const bool custom = info.holds == CollectiveInfo::Holds::post;
  if (custom && is_sum_at_root(plan, algorithm.root)) {
    algorithm.collective = "reduce";
  } else if (custom && !plan.extension.post.empty()) {
    report.add_at("/chorale/post", "MSCCL has no word for the result that this plan promises",
                  "without a post, the plan becomes a custom algorithm");
  } else if (std::find(std::begin(collective_words), std::end(collective_words), plan.collective) ==
             std::end(collective_words)) {
    report.add_at("/collective", "MSCCL has no word for the collective '" + plan.collective + "'");
  }
  const Gpu& first = plan.gpus.front();
  for (const BufferKind buffer : {BufferKind::input, BufferKind::output}) {
    const uint64_t chunks = first.chunks[size_t(buffer)];
    (buffer == BufferKind::input ? algorithm.input : algorithm.output) = chunks;
    for (const Gpu& gpu : plan.gpus) {
      if (gpu.chunks[size_t(buffer)] == chunks) continue;
      report.add_at(path_of("gpus", gpu.id, chunks_key(size_t(buffer))),
                    rank_name(gpu.id) + " has " + count(gpu.chunks[size_t(buffer)], "chunk") +
                        ", and rank 0 " + number(chunks) + ": in MSCCL all gpus have the same");
      return;
    }
  }
}

/// Checks that the import would find the root of a broadcast or a reduce: the only gpu that receives nothing,
/// or sends nothing.
void check_root(const Algorithm& algorithm, Report& report) {
  const bool broadcast = algorithm.collective == "broadcast";
  if (!broadcast && algorithm.collective != "reduce") return;
  for (uint32_t rank = 0; rank < algorithm.gpus.size(); ++rank) {
    bool any = false;
    for (const Block& block : algorithm.gpus[rank].blocks) {
      for (const AlgorithmStep& step : block.steps)
        any = any || (broadcast ? step.type->receives : step.type->sends);
    }
    if (any != (rank == algorithm.root)) continue;
    report.add_at(path_of("gpus", rank), rank_name(rank) + (any ? ", the root, " : " ") +
                                             (broadcast ? "receives " : "sends ") +
                                             (any ? "something" : "nothing") +
                                             ": a file names no root, which is the only gpu that " +
                                             (broadcast ? "receives nothing" : "sends nothing"));
    return;
  }
}

}  // namespace

void number_channels(const std::vector<RankItems>& ranks, Algorithm& algorithm, Diagnostics& out) {
  std::vector<uint32_t> first;  // number of a gpu's first thread block
  uint32_t blocks = 0;
  for (const RankItems& rank : ranks) {
    first.push_back(blocks);
    blocks += uint32_t(rank.blocks.size());
  }
  std::vector<uint32_t> group(blocks);  // of thread blocks that connections join
  std::iota(group.begin(), group.end(), 0);
  const auto group_of = [&](uint32_t block) {
    while (group[block] != block) block = group[block] = group[group[block]];
    return block;
  };
  for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
    for (uint32_t id = 0; id < ranks[rank].blocks.size(); ++id) {
      const BlockItems& block = ranks[rank].blocks[id];
      if (block.receive >= 0)
        group[group_of(first[rank] + id)] = group_of(first[size_t(block.receive)] + block.sender);
    }
  }
  // The order of channels between two gpus stays the same, so that an imported plan is imported as it was.
  std::map<std::pair<uint32_t, uint32_t>, std::map<uint32_t, uint32_t>>
      between;  // by gpus, by number: groups
  for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
    for (uint32_t id = 0; id < ranks[rank].blocks.size(); ++id) {
      const BlockItems& block = ranks[rank].blocks[id];
      if (block.send < 0) continue;
      const uint32_t own = group_of(first[rank] + id);
      std::map<uint32_t, uint32_t>& groups = between[{rank, uint32_t(block.send)}];
      for (const auto& [number, other] : groups) {
        if (other != own) continue;
        Report("export", out)
            .add(OpPlace{rank, block.origin, block.items.front().op},
                 "thread block " + std::to_string(block.origin) + " of rank " + std::to_string(rank) +
                     " sends to rank " + std::to_string(block.send) +
                     ", as another one of the same connected thread blocks does, and all of these have one "
                     "channel number in MSCCL");
        return;
      }
      groups[block.send_channel] = own;
    }
  }
  std::map<uint32_t, std::vector<uint32_t>> after;  // by group: those with a higher number between two gpus
  std::map<uint32_t, uint32_t> before;
  for (const auto& [gpus, groups] : between) {
    for (auto at = groups.begin(); at != groups.end(); ++at) {
      before.try_emplace(at->second, 0);
      for (auto later = std::next(at); later != groups.end(); ++later) {
        after[at->second].push_back(later->second);
        ++before[later->second];
      }
    }
  }
  std::map<uint32_t, uint32_t> channels;
  while (!before.empty()) {
    // If the orders form a circle, any group may be the next one.
    const auto next = std::min_element(before.begin(), before.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    const uint32_t current = next->first;
    before.erase(next);
    uint32_t channel = 0;
    for (const auto& [gpus, groups] : between) {
      const bool here =
          std::any_of(groups.begin(), groups.end(), [&](const auto& of) { return of.second == current; });
      if (!here) continue;
      for (const auto& [number, other] : groups) {
        const auto taken = channels.find(other);
        if (taken != channels.end()) channel = std::max(channel, taken->second + 1);
      }
    }
    channels[current] = channel;
    for (const uint32_t later : after[current]) {
      const auto left = before.find(later);
      if (left != before.end()) --left->second;
    }
  }
  for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
    for (uint32_t id = 0; id < ranks[rank].blocks.size(); ++id) {
      const auto found = channels.find(group_of(first[rank] + id));
      if (found != channels.end()) algorithm.gpus[rank].blocks[id].channel = found->second;
    }
  }
}

}  // namespace msccl

std::string export_msccl_xml(const Plan& plan, Diagnostics& out) {
  Diagnostics found;  // separate from the findings that are there already
  Report report("export", found);
  msccl::Algorithm algorithm;
  msccl::describe(plan, algorithm, report);
  std::vector<msccl::RankItems> items = msccl::list_items(plan, found);
  if (found.empty()) {
    msccl::split_blocks(items);
    algorithm.gpus.resize(plan.gpus.size());
    for (uint32_t rank = 0; rank < plan.gpus.size(); ++rank)
      msccl::make_steps(items[rank], plan, rank, algorithm, found);
  }
  if (found.empty()) msccl::check_root(algorithm, report);
  if (found.empty()) msccl::number_channels(items, algorithm, found);
  std::string text = found.empty() ? msccl::write_algorithm(algorithm) : std::string();
  std::move(found.begin(), found.end(), std::back_inserter(out));
  return text;
}

}  // namespace chorale
