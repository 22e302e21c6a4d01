#include "tools/view/plan_picture.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <utility>

#include "chorale/channel.hpp"
#include "chorale/comparison.hpp"
#include "chorale/compile.hpp"
#include "chorale/config.hpp"
#include "chorale/layout.hpp"
#include "chorale/profile.hpp"
#include "chorale/releases.hpp"
#include "chorale/renderer.hpp"
#include "chorale/simulate.hpp"
#include "chorale/storage.hpp"
#include "tools/command.hpp"
#include "tools/view/profile_json.hpp"
#include "tools/view/trace_picture.hpp"
#include "tools/words.hpp"

namespace chorale::tools {
namespace {

/// Numbers operations in the order of the picture: rank by rank, thread block by thread block.
using FirstOps = std::vector<std::vector<uint32_t>>;

FirstOps first_ops(const Plan& plan) {
  FirstOps first;
  uint32_t next = 0;
  for (const Gpu& gpu : plan.gpus) {
    first.emplace_back();
    for (const ThreadBlock& block : gpu.threadblocks) {
      first.back().push_back(next);
      next += uint32_t(block.ops.size());
    }
  }
  return first;
}

bool reads(Role role) {
  return role == Role::Read || role == Role::PacketRead || role == Role::RemoteRead ||
         role == Role::SwitchRead;
}

/// Adds the memory that one side of an operation names. A broken plan may name things that do not exist; they
/// are left out.
void add_accesses(const Plan& plan, const Gpu& gpu, const ThreadBlock& block, const Op& op, bool in_dst,
                  std::vector<PictureAccess>& all) {
  std::vector<const Field*> fields;
  for (const Field& field : info(op.code).fields)
    if (is_operand(field.role) && field.in_dst == in_dst) fields.push_back(&field);
  if (fields.empty()) return;
  const std::span<const Operand> operands = in_dst ? block.dests(op) : block.sources(op);
  const auto add = [&](const Field& field, const Operand& operand, uint32_t rank, uint32_t buffer) {
    if (rank >= plan.gpus.size() || buffer >= std::size(buffer_names)) return;
    all.push_back({!reads(field.role), rank, buffer, operand.index, operand.size});
  };
  for (size_t at = 0; at < operands.size(); ++at) {
    const Field& field = *fields[std::min(at, fields.size() - 1)];
    const Operand& operand = operands[at];
    if (is_remote(field.role)) {
      const RemoteBufferRefs* const refs = block.remote_buffers_of(op.via);
      if (!refs || operand.ref >= refs->ids.size() || refs->ids[operand.ref] >= gpu.remote_buffers.size())
        continue;
      const RemoteBuffer& remote = gpu.remote_buffers[refs->ids[operand.ref]];
      add(field, operand, remote.rank, uint32_t(remote.buffer));
    } else if (is_switched(field.role)) {
      const ChannelRefs* const refs = block.channels_of(ChannelType::switched);
      if (!refs || operand.ref >= refs->ids.size()) continue;
      const SwitchGroup group = gpu.switch_group(refs->ids[operand.ref]);
      if (!group.ranks) continue;
      for (const uint32_t rank : *group.ranks) add(field, operand, rank, uint32_t(group.buffer));
    } else {
      add(field, operand, gpu.id, operand.ref);
    }
  }
}

std::string channel_words(const Gpu& gpu, const ThreadBlock& block, const Op& op) {
  if (op.via == ChannelType::none) return "";
  const std::string type(channel_type_names[size_t(op.via)]);
  std::string words;
  const ChannelRefs* const refs = block.channels_of(op.via);
  for (const uint32_t local : block.op_ids(op)) {
    words += words.empty() ? type + " channel " : ", ";
    if (!refs || local >= refs->ids.size()) {
      words += "?";
      continue;
    }
    const int64_t peer = has_signals(op.via) ? gpu.peer(op.via, refs->ids[local]) : -1;
    words += std::to_string(refs->ids[local]) + (peer < 0 ? "" : " to rank " + std::to_string(peer));
  }
  return words.empty() ? type + " channel" : words;
}

std::vector<std::string> facts_of(const Plan& plan, const PlanView& view) {
  std::vector<std::string> facts{headline(plan), count(plan.threads_per_block, "thread") + " per block",
                                 message_words(plan),
                                 "scratch of a rank: " + scratch_words(plan, Config::load().round_scratch)};
  if (view.bytes)
    facts.push_back("shown for a message of " + format_bytes(view.bytes) + " bytes of " +
                    std::string(dtype_name(view.dtype)));
  return facts;
}

void add_rows(const Plan& plan, Picture& picture) {
  for (const Gpu& gpu : plan.gpus) {
    for (const ThreadBlock& block : gpu.threadblocks) {
      PictureRow row{gpu.id, "block " + std::to_string(block.id), {}};
      row.ops.reserve(block.ops.size());
      for (const Op& op : block.ops) {
        const OpInfo& about = info(op.code);
        PictureOp one;
        one.name = about.name;
        one.kind = picture_kind(about);
        one.combines = about.has(Role::Reduce);
        one.text = op_words(gpu, block, op);
        one.channel = channel_words(gpu, block, op);
        if (plan.first_at(op) <= plan.source.size()) one.line = plan.line_of(op);
        one.parts = std::max<uint32_t>(op.group_size, 1);
        add_accesses(plan, gpu, block, op, false, one.accesses);
        add_accesses(plan, gpu, block, op, true, one.accesses);
        row.ops.push_back(std::move(one));
      }
      picture.rows.push_back(std::move(row));
    }
  }
}

void add_awaited(const Plan& plan, uint64_t chunk_bytes, const FirstOps& first, Picture& picture) {
  const AwaitedByOp awaited = list_awaited(plan, chunk_bytes);
  size_t row = 0;
  for (size_t rank = 0; rank < plan.gpus.size(); ++rank) {
    for (size_t block = 0; block < plan.gpus[rank].threadblocks.size(); ++block, ++row) {
      if (rank >= awaited.size() || block >= awaited[rank].size()) continue;
      std::vector<PictureOp>& ops = picture.rows[row].ops;
      for (size_t op = 0; op < std::min(ops.size(), awaited[rank][block].size()); ++op) {
        for (const OpPlace& place : awaited[rank][block][op].releases) {
          const uint32_t number = first[place.rank][place.threadblock] + place.op;
          if (number != first[rank][block] + op) ops[op].awaits.push_back(number);
        }
      }
    }
  }
}

void add_times(const FirstOps& first, const std::vector<TraceSpan>& spans, const std::string& track,
               const std::string& title, Picture& picture) {
  PictureTimes times{title, false, {}};
  times.spans.resize(picture.op_count());
  for (const TraceSpan& span : spans) {
    if (span.rank >= first.size() || span.block >= first[span.rank].size()) continue;
    const size_t number = size_t(first[span.rank][span.block]) + span.op;
    if (number < times.spans.size()) times.spans[number] = {int64_t(span.begin_ns), int64_t(span.end_ns)};
  }
  picture.times.push_back(std::move(times));
  picture.tracks.push_back(track);
}

/// Says which spans share a clock. A trace of GPUs counts from each rank's first span, so that all ranks
/// begin at 0.
Clocks clocks_of(const std::vector<TraceSpan>& spans) {
  std::map<uint32_t, uint64_t> begins;
  for (const TraceSpan& span : spans) {
    const auto [at, is_new] = begins.try_emplace(span.rank, span.begin_ns);
    if (!is_new) at->second = std::min(at->second, span.begin_ns);
  }
  const bool all_zero =
      std::all_of(begins.begin(), begins.end(), [](const auto& one) { return one.second == 0; });
  return begins.size() > 1 && all_zero ? Clocks::per_rank : Clocks::one;
}

/// Predicts the times, if that is possible.
std::vector<TraceSpan> predicted(const Plan& plan, const PlanView& view, Picture& picture) {
  if (!view.machine) return {};
  try {
    Simulation made = simulate(
        plan,
        {.bytes = view.bytes, .dtype = view.dtype, .packet = view.packet, .eager = view.eager, .spans = true},
        *view.machine);
    return std::move(made.spans);
  } catch (const UsageError& error) {
    picture.notes.push_back(std::string("no times are predicted: ") + error.what());
    return {};
  }
}

}  // namespace

PictureKind picture_kind(const OpInfo& row) {
  const auto is_data = [](const Field& field) { return is_operand(field.role); };
  if (std::any_of(row.fields.begin(), row.fields.end(), is_data)) return PictureKind::moves;
  for (const Role role : {Role::Await, Role::AwaitRelaxed, Role::Acquire, Role::Arrive, Role::Drain})
    if (row.has(role)) return PictureKind::waits;
  for (const Role role : {Role::Post, Role::PostRelaxed, Role::Release})
    if (row.has(role)) return PictureKind::signals;
  return PictureKind::other;
}

Picture picture_of(const Plan& plan, const PlanView& view) {
  Picture picture;
  picture.kind = "plan";
  picture.name = plan.name;
  picture.file = view.file;
  picture.headline = headline(plan);
  picture.facts = facts_of(plan, view);
  picture.ranks = plan.ranks();
  for (const Gpu& gpu : plan.gpus) picture.chunks.push_back({gpu.chunks[0], gpu.chunks[1], gpu.chunks[2]});
  add_rows(plan, picture);
  const FirstOps first = first_ops(plan);
  picture.findings = findings_json(plan, view.findings, first);
  // A plan that the checks refuse may name what does not exist, so that nothing more can be computed.
  const bool is_sound = std::all_of(view.findings.begin(), view.findings.end(),
                                    [](const Explained& of) { return is_proof(of.diagnostic.check); });
  if (!is_sound) {
    picture.notes.push_back("no times are predicted and no waits are followed: the checks refuse the plan");
    picture.times.push_back(order_of(picture));
    picture.tracks.push_back("predicted");
    return picture;
  }
  picture.one_storage = plan.ranks() && is_one_storage(plan, 0);
  try {
    const Layout layout =
        layout_of(plan, view.bytes, view.dtype, view.packet.value_or(packet_form_by_size(plan, view.bytes)));
    picture.chunk_bytes = layout.chunk_bytes;
  } catch (const UsageError& error) {
    picture.notes.push_back(error.what());
  }
  if (picture.chunk_bytes) add_awaited(plan, picture.chunk_bytes, first, picture);
  const std::vector<TraceSpan> spans =
      picture.chunk_bytes ? predicted(plan, view, picture) : std::vector<TraceSpan>{};
  const Arguments arguments{.bytes = view.bytes, .dtype = view.dtype, .packet = view.packet};
  if (!spans.empty()) {
    add_times(first, spans, "predicted",
              "predicted for " + format_bytes(view.bytes) + " of " + std::string(dtype_name(view.dtype)) +
                  " on " + view.machine->title(),
              picture);
    picture.profiles["predicted"] = profile_json(profile(plan, arguments, spans, Clocks::one));
  }
  if (!view.measured.empty()) {
    add_times(first, view.measured, "measured", trace_title(view.trace_backend, view.trace_file), picture);
    if (view.trace_backend == "cpu" && !spans.empty())
      picture.notes.push_back("the times were measured on the CPU and predicted for " +
                              view.machine->title() + ": compare what waits for what, not the times");
    const Clocks clocks = clocks_of(view.measured);
    if (clocks == Clocks::per_rank)
      picture.notes.push_back("the ranks of " + view.trace_file +
                              " have different clocks: their times begin at each rank's first operation, so "
                              "compare times of one rank only");
    if (picture.chunk_bytes) {
      picture.profiles["measured"] = profile_json(profile(plan, arguments, view.measured, clocks));
      if (!spans.empty())
        picture.comparison = comparison_json(compare(plan, view.bytes, view.measured, clocks, spans));
    }
  }
  if (picture.times.empty()) {
    picture.times.push_back(order_of(picture));
    picture.tracks.push_back("predicted");
  }
  return picture;
}

}  // namespace chorale::tools
