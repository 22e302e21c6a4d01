#include "tools/shown.hpp"

#include <algorithm>
#include <string>

#include "chorale/collective.hpp"
#include "chorale/config.hpp"
#include "chorale/needs.hpp"
#include "chorale/renderer.hpp"
#include "tools/command.hpp"
#include "tools/words.hpp"

namespace chorale::tools {

void show_plan(const Plan& plan, std::ostream& to) {
  to << "plan " << plan.name << ": " << headline(plan) << '\n'
     << count(plan.threads_per_block, "thread") << " per block";
  if (plan.threads_per_block > most_block_threads) to << " (on GPUs " << most_block_threads << ")";
  to << ", alignment " << count(plan.buffer_alignment, "byte");
  if (plan.use_double_scratch_buffer) to << ", double scratch";
  if (plan.reuse_resources) to << ", reused resources";
  to << '\n' << message_words(plan) << '\n';
  to << "scratch of a rank: " << scratch_words(plan, Config::load().round_scratch) << '\n';
  const Extension& more = plan.extension;
  if (!more.requirements.empty()) to << "needs more than MSCCL++: " << join(more.requirements) << '\n';
  for (size_t at = 0; at < more.codecs.size(); ++at)
    to << "codec " << at << ": " << codec_format_name(more.codecs[at].format) << " in blocks of "
       << count(more.codecs[at].block, "element") << '\n';
  if (collective_info(plan.collective).has_root()) to << "root: rank " << more.root << '\n';
}

void show_rank(const Gpu& gpu, std::ostream& to) {
  to << "\nrank " << gpu.id << ": input " << count(gpu.chunks[0], "chunk") << ", output " << gpu.chunks[1]
     << ", scratch " << gpu.chunks[2] << '\n';
  for (const ChannelType type : all_channel_types) {
    const uint32_t channels = gpu.channel_count(type);
    if (!channels) continue;
    to << "  " << channel_type_names[size_t(type)] << " channels:";
    for (uint32_t id = 0; id < channels; ++id) {
      to << (id ? ", " : " ") << id << " to ";
      if (!is_switched(type)) {
        to << "rank " << gpu.peer(type, id);
        continue;
      }
      const SwitchGroup group = gpu.switch_group(id);
      to << buffer_names[size_t(group.buffer)] << " of ranks";
      for (const uint32_t rank : *group.ranks) to << ' ' << rank;
    }
    to << '\n';
  }
  for (size_t id = 0; id < gpu.semaphores.size(); ++id) {
    to << "  semaphore " << id << " starts at " << gpu.semaphores[id] << '\n';
  }
}

void show_block(const Plan& plan, const Gpu& gpu, const ThreadBlock& block, std::ostream& to) {
  to << "  thread block " << block.id << (block.ops.empty() ? ": nothing to do\n" : "\n");
  size_t body_ends = 0;
  for (size_t at = 0; at < block.ops.size(); ++at) {
    const Op& op = block.ops[at];
    std::string number = std::to_string(at);
    number.insert(0, number.size() < 4 ? 4 - number.size() : 0, ' ');
    std::string line = "  " + number + "  " + (at < body_ends ? "  " : "") + op_words(gpu, block, op);
    if (const std::string from = author_line(plan, op); !from.empty()) {
      line.resize(std::max<size_t>(line.size() + 2, 72), ' ');
      line += from;
    }
    to << line << '\n';
    if (op.body) body_ends = at + 1 + op.body;
  }
}

}  // namespace chorale::tools
