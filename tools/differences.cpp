#include "tools/differences.hpp"

#include <algorithm>
#include <sstream>
#include <vector>

#include "chorale/renderer.hpp"
#include "chorale/schedule/dump.hpp"
#include "tools/canonical.hpp"
#include "tools/command.hpp"
#include "tools/words.hpp"

namespace chorale::tools {
namespace {

using Lines = std::vector<std::string>;

/// Collects the lines that differ between two lists, and where they are.
class Differences {
 public:
  const std::string& text() const { return text_; }

  void compare(const std::string& place, const Lines& left, const Lines& right) {
    size_t same_front = 0, same_back = 0;
    const size_t least = std::min(left.size(), right.size());
    while (same_front < least && left[same_front] == right[same_front]) ++same_front;
    while (same_back < least - same_front &&
           left[left.size() - 1 - same_back] == right[right.size() - 1 - same_back]) {
      ++same_back;
    }
    if (same_front == left.size() && same_front == right.size()) return;
    text_ += place + '\n';
    middle({left.begin() + long(same_front), left.end() - long(same_back)},
           {right.begin() + long(same_front), right.end() - long(same_back)});
  }

 private:
  /// Compares by the longest common subsequence. If its table would be too large, all lines count as
  /// different.
  void middle(const Lines& left, const Lines& right) {
    if (left.size() * right.size() > size_t(1) << 24) {
      for (const std::string& line : left) text_ += "- " + line + '\n';
      for (const std::string& line : right) text_ += "+ " + line + '\n';
      return;
    }
    const size_t width = right.size() + 1;
    std::vector<uint32_t> common((left.size() + 1) * width, 0);  // the length for the lines from here on
    for (size_t l = left.size(); l-- > 0;) {
      for (size_t r = right.size(); r-- > 0;) {
        common[l * width + r] = left[l] == right[r]
                                    ? common[(l + 1) * width + r + 1] + 1
                                    : std::max(common[(l + 1) * width + r], common[l * width + r + 1]);
      }
    }
    size_t l = 0, r = 0;
    while (l < left.size() || r < right.size()) {
      if (l < left.size() && r < right.size() && left[l] == right[r]) {
        ++l, ++r;
      } else if (r == right.size() ||
                 (l < left.size() && common[(l + 1) * width + r] >= common[l * width + r + 1])) {
        text_ += "- " + left[l++] + '\n';
      } else {
        text_ += "+ " + right[r++] + '\n';
      }
    }
  }

  std::string text_;
};

/// Returns the keys that the format does not know, and keeps as text: `, "key":1`. Returns "" if there are
/// none.
std::string unknown_keys(const Plan& plan, uint32_t extra, const std::string& of = "") {
  return extra ? ", " + of + plan.extras[extra - 1] : "";
}

/// Adds the unknown keys as a separate line.
void add_unknown(Lines& lines, const Plan& plan, uint32_t extra, const std::string& of = "") {
  if (extra) lines.push_back("unknown " + of + plan.extras[extra - 1]);
}

std::string op_line(const Plan& plan, const Gpu& gpu, const ThreadBlock& block, const Op& op) {
  std::string line = op_words(gpu, block, op) + unknown_keys(plan, op.extra);
  for (const bool in_dst : {false, true}) {
    size_t position = 0;
    for (const Operand& operand : in_dst ? block.dests(op) : block.sources(op)) {
      const std::string of = (in_dst ? "destination " : "source ") + std::to_string(position++);
      line += unknown_keys(plan, operand.extra, "of " + of + " ");
    }
  }
  return line;
}

/// Returns a block's operations in words, with the ids looked up in the block's lists. It also returns these
/// lists, so that no difference is missed. Every block shows its id, because otherwise a block that does
/// nothing would look like no block.
Lines block_lines(const Plan& plan, const Gpu& gpu, const ThreadBlock& block) {
  Lines lines = {"id " + std::to_string(block.id)};
  add_unknown(lines, plan, block.extra);
  const auto add_list = [&](ChannelType type, const std::string& of, const std::vector<uint32_t>& ids,
                            uint32_t extra) {
    std::string line = "list of " + std::string(channel_type_names[size_t(type)]) + " " + of + ":";
    for (const uint32_t id : ids) line += " " + std::to_string(id);
    lines.push_back(line + unknown_keys(plan, extra));
  };
  for (const ChannelRefs& refs : block.channels) add_list(refs.type, "channels", refs.ids, refs.extra);
  for (const RemoteBufferRefs& refs : block.remote_buffers)
    add_list(refs.type, "remote buffers", refs.ids, refs.extra);
  for (const Op& op : block.ops) lines.push_back(op_line(plan, gpu, block, op));
  return lines;
}

/// Returns " fp8_e4m3/128 int8/64": the format and the block of each codec.
std::string codec_words(const Plan& plan) {
  std::string words;
  for (const Codec& codec : plan.extension.codecs)
    words += std::string(" ") + codec_format_name(codec.format) + "/" + std::to_string(codec.block);
  return words;
}

Lines header_lines(const Plan& plan) {
  const Extension& more = plan.extension;
  const Segmentation parts = segmentation(plan);  // the default number of parts is that of its chunks
  Lines lines = {"name " + plan.name,
                 headline(plan),
                 count(plan.threads_per_block, "thread") + " per block",
                 "alignment " + std::to_string(plan.buffer_alignment),
                 "messages from " + std::to_string(plan.min_message_size) + " to " +
                     std::to_string(plan.max_message_size) + " bytes",
                 std::string("double scratch ") + (plan.use_double_scratch_buffer ? "on" : "off"),
                 std::string("reused resources ") + (plan.reuse_resources ? "on" : "off"),
                 "root " + std::to_string(more.root),
                 "requires " + join(more.requirements),
                 std::string("bounded proof ") + (more.bounded_proof ? "on" : "off"),
                 "codecs" + codec_words(plan),
                 "segments " + std::to_string(parts.input) + " and " + std::to_string(parts.output)};
  add_unknown(lines, plan, plan.extra);
  add_unknown(lines, plan, more.extra, "of chorale ");
  for (size_t rank = 0; rank < more.post.size(); ++rank) {
    for (size_t segment = 0; segment < more.post[rank].size(); ++segment) {
      std::string line = "result " + std::to_string(segment) + " of rank " + std::to_string(rank) + ":";
      for (const Contribution& from : more.post[rank][segment]) {
        line += " " + std::to_string(from.rank) + "." + std::to_string(from.chunk);
      }
      lines.push_back(line);
    }
  }
  return lines;
}

/// Returns a schedule as its author reads it, with its parameters and their defaults.
Lines schedule_lines(const Plan& plan) {
  if (!plan.extension.schedule) return {};
  const schedule::Schedule& schedule = *plan.extension.schedule;
  Lines lines;
  for (const uint32_t ranks : schedule.ranks) lines.push_back("for " + count(ranks, "rank"));
  for (const schedule::Param& param : schedule.params)
    lines.push_back("parameter " + param.name + (param.value ? " " + std::to_string(*param.value) : ""));
  std::istringstream text(schedule::dump("", schedule));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

Lines rank_lines(const Plan& plan, const Gpu& gpu) {
  Lines lines;
  add_unknown(lines, plan, gpu.extra);
  for (size_t kind = 0; kind < std::size(buffer_names); ++kind) {
    lines.push_back(std::string(buffer_names[kind]) + " of " + count(gpu.chunks[kind], "chunk"));
  }
  for (const ChannelType type : all_channel_types) {
    for (uint32_t id = 0; id < gpu.channel_count(type); ++id) {
      std::string line =
          std::string(channel_type_names[size_t(type)]) + " channel " + std::to_string(id) + " to";
      if (is_switched(type)) {
        const SwitchGroup group = gpu.switch_group(id);
        line += " " + std::string(buffer_names[size_t(group.buffer)]) + " of";
        for (const uint32_t rank : *group.ranks) line += " " + std::to_string(rank);
      } else {
        line += " rank " + std::to_string(gpu.peer(type, id));
      }
      lines.push_back(line);
    }
  }
  for (const ChannelRecord& record : gpu.channels)
    add_unknown(lines, plan, record.extra,
                "of " + std::string(channel_type_names[size_t(record.type)]) + " channels ");
  for (const RemoteBuffer& remote : gpu.remote_buffers) {
    std::string line = "remote " + std::string(buffer_names[size_t(remote.buffer)]) + " of rank " +
                       std::to_string(remote.rank) + " by";
    for (const ChannelType type : remote.access) line += " " + std::string(channel_type_names[size_t(type)]);
    lines.push_back(line + unknown_keys(plan, remote.extra));
  }
  for (size_t id = 0; id < gpu.semaphores.size(); ++id)
    lines.push_back("semaphore " + std::to_string(id) + " from " + std::to_string(gpu.semaphores[id]));
  return lines;
}

}  // namespace

std::string differences(Plan left, Plan right, bool canonical) {
  if (canonical) {
    canonicalise(left);
    canonicalise(right);
  }
  Differences differences;
  differences.compare("plan", header_lines(left), header_lines(right));
  differences.compare("host schedule", schedule_lines(left), schedule_lines(right));
  for (size_t rank = 0; rank < std::max(left.gpus.size(), right.gpus.size()); ++rank) {
    const std::string place = "rank " + std::to_string(rank);
    const auto of_rank = [rank](const Plan& plan) {
      return rank < plan.gpus.size() ? rank_lines(plan, plan.gpus[rank]) : Lines{};
    };
    differences.compare(place, of_rank(left), of_rank(right));
    const auto blocks = [rank](const Plan& plan) {
      return rank < plan.gpus.size() ? plan.gpus[rank].threadblocks.size() : 0;
    };
    for (size_t block = 0; block < std::max(blocks(left), blocks(right)); ++block) {
      const auto of_block = [&](const Plan& plan) {
        if (block >= blocks(plan)) return Lines{};
        return block_lines(plan, plan.gpus[rank], plan.gpus[rank].threadblocks[block]);
      };
      differences.compare(place + ", thread block " + std::to_string(block), of_block(left), of_block(right));
    }
  }
  return differences.text();
}

}  // namespace chorale::tools
