// This check requires every id to name something that exists, and every list to have the length that its user
// needs. The other checks and the rewrites rely on that.

#include "structure.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "chorale/checks.hpp"
#include "chorale/collective.hpp"
#include "compiler/plan/resolve.hpp"

namespace chorale {
namespace {

std::string word(ChannelType type) { return std::string(channel_type_names[size_t(type)]); }

void check_launch(const Plan& plan, Report& report) {
  if (plan.gpus.empty()) report.add_at("/gpus", "the plan has no ranks, expected at least 1");
  const uint64_t threads = plan.threads_per_block;
  if (threads < 1 || threads > 1024 || threads % 32) {
    report.add_at("/num_threads_per_block", "thread blocks have " + count(threads, "thread") +
                                                ", expected a multiple of 32 up to 1024");
  }
  if (!std::has_single_bit(plan.buffer_alignment)) {
    report.add_at("/buffer_alignment", "the buffer alignment is " + count(plan.buffer_alignment, "byte") +
                                           ", expected a power of two");
  }
  if (plan.min_message_size > plan.max_message_size) {
    report.add_at("/min_message_size", "the smallest message has " + count(plan.min_message_size, "byte") +
                                           ", but the largest has " + number(plan.max_message_size));
  }
}

/// Reports chunk counts that contradict the collective. Every segment must have the same number of chunks in
/// input and output and on all ranks.
void check_collective(const Plan& plan, Report& report) {
  if (plan.gpus.empty() || !is_standard(plan.collective)) return;
  const Segmentation parts = segmentation(plan);
  const uint64_t first = plan.gpus[0].chunks[0];
  for (const Gpu& gpu : plan.gpus) {
    const uint64_t input = gpu.chunks[0], output = gpu.chunks[1];
    const std::string rank = rank_name(gpu.id);
    if (input != first) {
      report.add_at(path_of("gpus", gpu.id, chunks_key(0)), "the input of " + rank + " has " +
                                                                count(input, "chunk") +
                                                                ", but that of rank 0 has " + number(first));
    }
    if (input % parts.input) {
      report.add_at(path_of("gpus", gpu.id, chunks_key(0)),
                    "the input of " + rank + " has " + count(input, "chunk") + ", expected a multiple of " +
                        number(parts.input) + ", the number of its parts");
    }
    // In place, the output may have no chunks, because it is the input.
    if (plan.inplace && output == 0) continue;
    if (output % parts.output || output / parts.output != input / parts.input) {
      report.add_at(
          path_of("gpus", gpu.id, chunks_key(1)),
          "the output of " + rank + " has " + count(output, "chunk") + ", but its input has " + number(input),
          plan.collective + " with " + count(plan.ranks(), "rank") + " needs " + number(parts.output) +
              " chunks of output for every " + number(parts.input) + " of input");
    }
  }
}

void check_post(const Plan& plan, Report& report) {
  const Extension& own = plan.extension;
  if (own.post.empty()) return;
  if (own.post.size() != plan.gpus.size()) {
    report.add_at("/chorale/post", "the wanted result is given for " + count(own.post.size(), "rank") +
                                       ", but the plan has " + number(plan.gpus.size()));
    return;
  }
  const Segmentation parts = segmentation(plan);
  for (size_t rank = 0; rank < own.post.size(); ++rank) {
    const bool has_output = plan.gpus[rank].chunks[size_t(BufferKind::output)] != 0;
    if (own.post[rank].size() != parts.output && (has_output || !own.post[rank].empty())) {
      report.add_at(path_of("chorale", "post", rank),
                    "the wanted result of " + rank_name(rank) + " has " +
                        count(own.post[rank].size(), "segment") + ", but the output has " +
                        number(parts.output),
                    "an empty list says that nothing is promised of a segment");
    }
    for (size_t segment = 0; segment < own.post[rank].size(); ++segment) {
      const std::vector<Contribution>& parts_of_it = own.post[rank][segment];
      for (size_t position = 0; position < parts_of_it.size(); ++position) {
        const Contribution& part = parts_of_it[position];
        if (part.rank < plan.gpus.size() && part.chunk < parts.input) continue;
        report.add_at(path_of("chorale", "post", rank, segment, position),
                      "the wanted result of " + rank_name(rank) + " has chunk " + number(part.chunk) +
                          " of " + rank_name(part.rank) + ", but there are " +
                          count(plan.gpus.size(), "rank") + " with " + number(parts.input) + " chunks each");
      }
    }
  }
}

void check_extension(const Plan& plan, Report& report) {
  const Extension& own = plan.extension;
  for (size_t position = 0; position < own.requirements.size(); ++position) {
    const std::string& feature = own.requirements[position];
    if (std::find(std::begin(known_requirements), std::end(known_requirements), feature) ==
        std::end(known_requirements))
      report.add_at(path_of("chorale", "requires", position),
                    "the plan requires '" + feature + "', which is not known");
  }
  if (own.root >= std::max<size_t>(plan.gpus.size(), 1)) {
    report.add_at("/chorale/root", "the root is " + rank_name(own.root) + ", but the plan has " +
                                       count(plan.gpus.size(), "rank"));
  }
  for (const Gpu& gpu : plan.gpus) {
    const uint64_t segments[] = {own.input_segments, own.output_segments};
    for (size_t buffer = 0; buffer < 2; ++buffer) {
      if (!segments[buffer] || gpu.chunks[buffer] % segments[buffer] == 0) continue;
      report.add_at(path_of("gpus", gpu.id, chunks_key(buffer)),
                    "the " + std::string(buffer_names[buffer]) + " of " + rank_name(gpu.id) + " has " +
                        count(gpu.chunks[buffer], "chunk") + ", expected a multiple of its " +
                        count(segments[buffer], "segment"));
    }
  }
  check_post(plan, report);
}

/// Checks the other end of a channel or the owner of a remote buffer. `path` is called only after an error,
/// because most plans are correct and have many of both.
void check_peer(const Plan& plan, const Gpu& gpu, uint32_t peer, std::string_view what, auto&& path,
                Report& report) {
  if (peer >= plan.gpus.size()) {
    report.add_at(path(), std::string(what) + " of " + rank_name(gpu.id) + " names " + rank_name(peer) +
                              ", but the plan has " + count(plan.gpus.size(), "rank"));
  } else if (peer == gpu.id) {
    report.add_at(path(), std::string(what) + " of " + rank_name(gpu.id) + " names rank " + number(peer) +
                              " itself, expected another rank");
  }
}

void check_switch_group(const Plan& plan, const Gpu& gpu, const std::vector<uint32_t>& ranks, auto&& path,
                        Report& report) {
  const std::string what = "a switch channel of " + rank_name(gpu.id);
  std::vector<uint32_t> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  if (!sorted.empty() && sorted.back() >= plan.gpus.size()) {
    report.add_at(path(), what + " has " + rank_name(sorted.back()) + " as a member, but the plan has " +
                              count(plan.gpus.size(), "rank"));
  }
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) report.add_at(path(), what + " has " + rank_name(*twice) + " as a member twice");
  if (!std::binary_search(sorted.begin(), sorted.end(), gpu.id)) {
    report.add_at(path(),
                  what + " has " + count(ranks.size(), "member") + ", none of them " + rank_name(gpu.id));
  }
}

void check_gpu(const Plan& plan, const Gpu& gpu, Report& report) {
  for (size_t k = 0; k < gpu.channels.size(); ++k) {
    const ChannelRecord& record = gpu.channels[k];
    const std::string what = "a " + word(record.type) + " channel";
    for (size_t id = 0; id < record.connected_to.size(); ++id) {
      const auto path = [&] { return path_of("gpus", gpu.id, "channels", k, "connected_to", id); };
      check_peer(plan, gpu, record.connected_to[id], what, path, report);
    }
    for (size_t id = 0; id < record.rank_groups.size(); ++id) {
      const auto path = [&] { return path_of("gpus", gpu.id, "channels", k, "rank_groups", id, "ranks"); };
      check_switch_group(plan, gpu, record.rank_groups[id], path, report);
    }
  }
  for (size_t id = 0; id < gpu.remote_buffers.size(); ++id) {
    const auto path = [&] { return path_of("gpus", gpu.id, "remote_buffers", id, "rank"); };
    check_peer(plan, gpu, gpu.remote_buffers[id].rank, "a remote buffer", path, report);
  }
  for (size_t id = 0; id < gpu.semaphores.size(); ++id) {
    if (gpu.semaphores[id] >= 0) continue;
    report.add_at(path_of("gpus", gpu.id, "semaphores", id, "init_value"),
                  "semaphore " + number(id) + " of " + rank_name(gpu.id) + " starts at " +
                      std::to_string(gpu.semaphores[id]) + ", expected at least 0");
  }
}

/// Finds ids that occur twice, without sorting, because a plan has many lists, at least one per thread block.
class Seen {
 public:
  /// Starts a new list, whose ids are all below `most`.
  void start(uint64_t most) {
    if (marks_.size() < most) marks_.resize(most, 0);
    ++list_;
  }
  bool again(uint32_t id) { return std::exchange(marks_[id], list_) == list_; }

 private:
  std::vector<uint32_t> marks_;  // by id: the last list that had it
  uint32_t list_ = 0;
};

/// Checks that every id of a local list is below `most`, and that no id or type occurs twice. `key` is the
/// JSON key of the ids. `block` and `path` are called only after an error.
template <class Lists>
void check_lists(const Lists& lists, auto&& block, auto&& path, const char* key, const char* noun,
                 auto&& most, Seen& seen, Report& report) {
  bool listed[std::size(channel_type_names)] = {};
  for (size_t k = 0; k < lists.size(); ++k) {
    const auto& list = lists[k];
    const auto what = [&] { return block() + " lists " + word(list.type) + " " + noun; };
    if (std::exchange(listed[size_t(list.type)], true))
      report.add_at(path() + path_of(k), what() + "s in two lists, expected one");
    const uint64_t available = most(list.type);
    const auto last_of = [&](uint32_t id) {
      const auto found = std::find(list.ids.rbegin(), list.ids.rend(), id);
      return path() + path_of(k, key, list.ids.rend() - found - 1);
    };
    const auto highest = std::max_element(list.ids.begin(), list.ids.end());
    if (highest != list.ids.end() && *highest >= available) {
      report.add_at(last_of(*highest),
                    what() + " " + number(*highest) + ", but its rank has " + number(available));
    }
    seen.start(available);
    const auto twice = std::find_if(list.ids.begin(), list.ids.end(),
                                    [&](uint32_t id) { return id < available && seen.again(id); });
    if (twice != list.ids.end()) report.add_at(last_of(*twice), what() + " " + number(*twice) + " twice");
  }
}

void check_blocks(const Gpu& gpu, Seen& seen, Report& report) {
  for (size_t position = 0; position < gpu.threadblocks.size(); ++position) {
    const ThreadBlock& block = gpu.threadblocks[position];
    const auto name = [&] { return "thread block " + number(position) + " of " + rank_name(gpu.id); };
    const auto path = [&] { return path_of("gpus", gpu.id, "threadblocks", position); };
    const auto path_to = [&](const char* key) { return [&path, key] { return path() + key; }; };
    if (block.id != position)
      report.add_at(path() + "/id", name() + " has id " + number(block.id) + ", expected its position");
    check_lists(
        block.channels, name, path_to("/channels"), "channel_ids", "channel",
        [&](ChannelType type) { return gpu.channel_count(type); }, seen, report);
    check_lists(
        block.remote_buffers, name, path_to("/remote_buffer_refs"), "remote_buffer_ids", "remote buffer",
        [&](ChannelType) { return gpu.remote_buffers.size(); }, seen, report);
    for (size_t k = 0; k < block.remote_buffers.size(); ++k) {
      const RemoteBufferRefs& refs = block.remote_buffers[k];
      for (size_t local = 0; local < refs.ids.size(); ++local) {
        const uint32_t id = refs.ids[local];
        if (id >= gpu.remote_buffers.size()) continue;
        const std::vector<ChannelType>& access = gpu.remote_buffers[id].access;
        if (std::find(access.begin(), access.end(), refs.type) != access.end()) continue;
        report.add_at(path() + path_of("remote_buffer_refs", k, "remote_buffer_ids", local),
                      name() + " reaches remote buffer " + number(id) + " over " + word(refs.type) +
                          ", but the buffer's access types do not have it");
      }
    }
  }
}

/// Checks that all members of a switch channel list it equally often, because they create it together.
void check_switch_members(const Plan& plan, Report& report) {
  std::map<std::pair<std::vector<uint32_t>, BufferKind>, std::vector<uint32_t>> lists;
  for (const Gpu& gpu : plan.gpus) {
    for (const ChannelRecord& record : gpu.channels) {
      for (const std::vector<uint32_t>& ranks : record.rank_groups)
        lists[{ranks, record.buffer}].push_back(gpu.id);
    }
  }
  for (const auto& [group, listed] : lists) {
    const auto times = [&listed = listed](uint32_t rank) {
      return std::count(listed.begin(), listed.end(), rank);
    };
    for (const uint32_t member : group.first) {
      if (member >= plan.gpus.size() || times(member) == times(listed[0])) continue;
      report.add_at(path_of("gpus", listed[0], "channels"),
                    rank_name(listed[0]) + " has " + count(times(listed[0]), "switch channel") +
                        " over the " + std::string(buffer_names[size_t(group.second)]) + " of these " +
                        count(group.first.size(), "rank") + ", but " + rank_name(member) + " has " +
                        number(times(member)));
    }
  }
}

}  // namespace

void pass::structure(const Plan& plan, Diagnostics& out) {
  Report report("structure", out);
  check_launch(plan, report);
  check_collective(plan, report);
  check_extension(plan, report);
  Seen seen;
  for (const Gpu& gpu : plan.gpus) {
    check_gpu(plan, gpu, report);
    check_blocks(gpu, seen, report);
  }
  check_switch_members(plan, report);
  if (check_operations(plan, report)) check_barriers(plan, report);
}

}  // namespace chorale
