// Checks for `chorale doctor PLAN` that this machine has what the plan needs.

#include <fmt/format.h>

#include <algorithm>

#include "chorale/config.hpp"
#include "chorale/error.hpp"
#include "chorale/needs.hpp"
#include "tools/command.hpp"
#include "tools/doctor/examination.hpp"
#include "tools/words.hpp"

namespace chorale::tools {
namespace {

/// Collects the needs of all ranks, to find the largest.
struct PlanNeeds {
  std::vector<RankNeeds> ranks;

  template <class Value>
  Value most(Value RankNeeds::*what) const {
    Value value{};
    for (const RankNeeds& rank : ranks) value = std::max(value, rank.*what);
    return value;
  }
};

/// Returns the needs of a plan's ranks for a message.
/// \throws UsageError if the plan does not take messages of that size
PlanNeeds needs_of_ranks(const Plan& plan, uint64_t bytes, DType dtype) {
  PlanNeeds needs;
  for (uint32_t rank = 0; rank < plan.ranks(); ++rank)
    needs.ranks.push_back(needs_of(plan, rank, bytes, dtype, Config::load().round_scratch));
  return needs;
}

std::string gpus_here(const GpusFound& gpus) {
  if (!gpus.gpus.empty())
    return "here " + std::string(gpus.gpus.size() == 1 ? "is " : "are ") + std::to_string(gpus.gpus.size());
  return "here is none (" + gpus.problem + ")";
}

void compare_blocks(Examination& found, const GpusFound& gpus, const Plan& plan, const PlanNeeds& needs) {
  const uint64_t blocks = needs.most(&RankNeeds::thread_blocks),
                 threads = std::clamp<uint64_t>(plan.threads_per_block, 1, most_block_threads);
  const std::string needed =
      fmt::format("{} of {} per rank", count(blocks, "block"), count(threads, "thread"));
  if (gpus.gpus.empty()) return found.note("thread blocks", needed);
  uint64_t sms = UINT64_MAX, places = UINT64_MAX;
  for (const GpuFacts& gpu : gpus.gpus) {
    sms = std::min(sms, uint64_t(gpu.sms));
    places = std::min(places, uint64_t(gpu.sms) * (uint64_t(gpu.threads_per_sm) / threads));
  }
  const std::string here = fmt::format("{}; a GPU here has {}", needed, count(sms, "SM"));
  if (blocks > places) {
    found.fail(
        "thread blocks", fmt::format("{}, which can hold at most {} such blocks at a time", here, places),
        "fewer instances or threads: all blocks must be resident at once, because they wait for each other");
  } else if (blocks > sms) {
    found.note("thread blocks",
               here + ": several blocks share an SM; whether they fit shows when the plan is bound");
  } else {
    found.pass("thread blocks", here);
  }
}

/// Checks that the GPUs can serve the switch channels. Switch channels go through peers' memory, unless the
/// setting asks for multicast.
void compare_switches(Examination& found, const GpusFound& gpus) {
  const Setting<std::string> wanted = Config::load().switch_channels;
  const bool offered = !gpus.gpus.empty() && std::all_of(gpus.gpus.begin(), gpus.gpus.end(),
                                                         [](const GpuFacts& gpu) { return gpu.multicast; });
  if (wanted.value == "peer") {
    found.more(std::string("switch channels: through peer memory; multicast, which GPUs here ") +
               (offered ? "offer" : "do not offer") + ", is used only with switch_channels = multicast");
    return;
  }
  const std::string asked =
      "by multicast, as " + wanted.from + " asks (not with NCCL_NVLS_ENABLE=0); it has not run on hardware";
  if (offered) {
    found.note("switch", asked);
  } else {
    found.fail("switch", asked + "; the GPUs here do not offer it", "switch_channels = peer");
  }
}

void compare_channels(Examination& found, const GpusFound& gpus, const PlanNeeds& needs) {
  std::string text =
      fmt::format("{} memory, {} port, {} switch per rank", needs.most(&RankNeeds::memory_channels),
                  needs.most(&RankNeeds::port_channels), needs.most(&RankNeeds::switch_channels));
  std::vector<std::string> apart;
  const size_t here = std::min(needs.ranks.size(), gpus.gpus.size());
  for (size_t rank = 0; rank < here; ++rank) {
    for (const uint32_t peer : needs.ranks[rank].peers) {
      if (peer < here && !gpus.reaches[rank][peer]) apart.push_back(fmt::format("{} to {}", rank, peer));
    }
  }
  if (apart.empty()) {
    gpus.gpus.empty() ? found.note("channels", text) : found.pass("channels", text);
  } else {
    found.fail("channels", text + "; no peer access from GPU " + join(apart),
               "other GPUs (CUDA_VISIBLE_DEVICES), or a plan that does not connect these ranks");
  }
  const bool handles = std::all_of(gpus.gpus.begin(), gpus.gpus.end(),
                                   [](const GpuFacts& gpu) { return gpu.ipc || (gpu.vmm && gpu.posix_fd); });
  if (!handles) {
    found.fail("processes", "GPUs here offer neither IPC nor allocations as POSIX file descriptors",
               "run the ranks as threads of one process");
  }
  if (needs.most(&RankNeeds::port_channels))
    found.more("port channels: a thread of the host issues their copies");
  if (needs.most(&RankNeeds::switch_channels)) compare_switches(found, gpus);
}

/// Checks that the GPUs can carry the packets. Packets of more than 8 bytes need wider stores that arrive as
/// a whole.
void compare_packets(Examination& found, const GpusFound& gpus, const PlanNeeds& needs) {
  if (!needs.most(&RankNeeds::packets)) return found.pass("packets", "none");
  const bool without_links = std::any_of(gpus.gpus.begin(), gpus.gpus.end(), [](const GpuFacts& gpu) {
    return gpu.nvlinks && *gpu.nvlinks == 0;
  });
  if (without_links) {
    found.note("packets", "yes; without NVLink only those of 8 bytes arrive whole: CHORALE_PACKET=ll8");
  } else {
    found.pass("packets", "yes");
  }
}

void compare_memory(Examination& found, const GpusFound& gpus, const Plan& plan, const PlanNeeds& needs) {
  uint64_t bytes = 0;
  for (const RankNeeds& rank : needs.ranks) {
    const uint64_t own =
        plan.inplace ? std::max(rank.input_bytes, rank.output_bytes) : rank.input_bytes + rank.output_bytes;
    bytes = std::max(bytes, own + rank.scratch_bytes);
  }
  const std::string needed = fmt::format("{} input, {} output, {} scratch per rank",
                                         format_bytes(needs.most(&RankNeeds::input_bytes)),
                                         format_bytes(needs.most(&RankNeeds::output_bytes)),
                                         format_bytes(needs.most(&RankNeeds::scratch_bytes)));
  compare_bytes(found, gpus, needed, bytes, "smaller messages, or a plan with less scratch");
}

}  // namespace

void compare_ranks(Examination& found, const GpusFound& gpus, uint32_t ranks) {
  const std::string text = count(ranks, "rank") + ", with one GPU each; " + gpus_here(gpus);
  found.judge(ranks <= gpus.gpus.size(), "ranks", text,
              "a plan for fewer ranks, a machine with more GPUs, or the CPU: chorale run --backend cpu");
}

void compare_bytes(Examination& found, const GpusFound& gpus, const std::string& needed, uint64_t bytes,
                   const std::string& remedy) {
  if (gpus.gpus.empty()) return found.note("bytes", needed);
  uint64_t free = UINT64_MAX;
  for (const GpuFacts& gpu : gpus.gpus) free = std::min(free, gpu.free_memory.value_or(gpu.memory));
  found.judge(bytes <= free, "bytes", needed + "; free on a GPU here: " + mebibytes(free), remedy);
}

void examine_launched(Examination& found, const GpusFound& gpus, const Plan& plan, uint64_t bytes,
                      DType dtype) {
  PlanNeeds needs;
  try {
    needs = needs_of_ranks(plan, bytes, dtype);
  } catch (const UsageError& error) {
    return found.fail("message", error.what(), "other parameters of the schedule, or another --plan");
  }
  compare_blocks(found, gpus, plan, needs);
  compare_channels(found, gpus, needs);
  compare_packets(found, gpus, needs);
  found.more(format_bytes(needs.most(&RankNeeds::scratch_bytes)) + " scratch per rank");
}

void examine_requirements(Examination& found, const Plan& plan) {
  found.pass("plan", plan.name + ": " + headline(plan));
  for (const std::string& word : plan.extension.requirements) {
    if (std::find(std::begin(known_requirements), std::end(known_requirements), word) ==
        std::end(known_requirements)) {
      found.fail("requires", "'" + word + "', which this version does not have",
                 "a newer version of Chorale");
    }
  }
}

void examine_plan(Examination& found, const GpusFound& gpus, const Plan& plan, uint64_t bytes, DType dtype) {
  examine_requirements(found, plan);
  compare_ranks(found, gpus, plan.ranks());
  PlanNeeds needs;
  try {
    needs = needs_of_ranks(plan, bytes, dtype);
  } catch (const UsageError& error) {
    found.fail("message", error.what(), "another --bytes or --dtype");
    return;
  }
  found.pass("message", fmt::format("{} bytes of {}", format_bytes(bytes), dtype_name(dtype)));
  compare_blocks(found, gpus, plan, needs);
  compare_channels(found, gpus, needs);
  found.pass("scratch", scratch_words(plan, Config::load().round_scratch));
  compare_memory(found, gpus, plan, needs);
  found.more("scratch of a rank: " + scratch_words(plan, Config::load().round_scratch));
  compare_packets(found, gpus, needs);
}

}  // namespace chorale::tools
