// This file writes the texts of findings about races.

#include <algorithm>

#include "races.hpp"

namespace chorale::proof {

std::string Races::name() const {
  return std::string(what_->packets ? "packets of " : "") + std::string(buffer_names[size_t(what_->buffer)]) +
         "[" + number(what_->begin) + ":" + number(what_->end) + "] of " + rank_name(what_->rank);
}

/// Names chunks of a buffer of the application.
std::string Races::name(uint32_t cell) const {
  const Range range = executor_.memory().range_of(cell);
  const uint64_t chunk = executor_.memory().message().chunk;
  const uint64_t first = executor_.memory().buffer(what_->rank, what_->buffer).begin;
  return std::string(buffer_names[size_t(what_->buffer)]) + "[" + number((range.begin - first) / chunk) +
         ":" + number((range.end - first + chunk - 1) / chunk) + "] of " + rank_name(what_->rank);
}

OpPlace Races::place(const Epoch& epoch) {
  const Chain& chain = executor_.chains()[agent(epoch.agent).chain];
  return {chain.rank, chain.block, epoch.op};
}
ProofEvent Races::event(const Epoch& epoch, bool writes) {
  const Agent& by = agent(epoch.agent);
  ProofEvent event;
  event.segment = epoch.segment;
  if (plain(epoch)) {
    event.who = by.kind == Agent::Kind::block ? ProofEvent::Who::block : ProofEvent::Who::proxy;
    event.at = place(epoch);
    event.launch = launch_of(epoch);
  } else {
    event.who = ProofEvent::Who::application;
    event.at.rank = by.rank;
    event.launch = epoch.segment / 2;  // two segments per launch: see begin() and end()
  }
  event.accesses = true;
  event.writes = writes;
  event.packets = what_->packets;
  event.buffer_rank = what_->rank;
  event.buffer = what_->buffer;
  event.begin = what_->begin;
  event.end = what_->end;
  return event;
}

/// Returns whether packets that the operation reads show that `first` has ended, but not those at its own
/// position.
bool Races::elsewhere(const Epoch& first) const {
  for (const Touch& touch : sources_) {
    for (uint32_t at = 0; touch.access->packets && at < touch.cells; ++at) {
      if (first.segment < told_[packets_[touch.cell + at].told][first.agent]) return true;
    }
  }
  return false;
}

/// Reports that `second` is not ordered after `first`. `writes` and `written` say whether they write.
void Races::conflict(uint32_t id, uint32_t cell, const Epoch& first, bool writes, bool written) {
  const Epoch second = here(id);
  if (!plain(second) && !plain(first)) return;  // this concerns only the application
  if (!written && was_unwritten(cell, first, second)) return missed(first, second, cell);
  if (plain(second) && plain(first)) return between(second, first, cell, writes, written);
  with_owner(second, first, cell, writes, written);
}

void Races::with_owner(const Epoch& second, const Epoch& first, uint32_t cell, bool writes, bool written) {
  const Epoch& of_plan = plain(second) ? second : first;
  const Epoch& of_owner = plain(second) ? first : second;
  // The application does the same around each launch, so one report is enough.
  if (launch_of(of_plan)) return;
  const bool overwrites = plain(second) ? writes : written;
  // A launch has two segments: see begin() and end().
  const bool early = of_owner.segment / 2 <= launch_of(of_plan);
  std::string text =
      std::string("this ") + (overwrites ? "overwrites " : "reads ") + (plain(second) ? name() : name(cell));
  if (early)
    text += ", and nothing says that this rank has begun: the application may still be using it";
  else if (overwrites && first.segment < over_[first.agent])
    text +=
        ", but the rank learns this only from a relaxed signal or a packet, which publishes no data: the "
        "application may not see it";
  else
    text +=
        ", and nothing tells the rank when: its launch may have ended, and the application may be using it";
  say(ProofName::races, cell, second, first, writes, written, text, {});
}

void Races::between(const Epoch& second, const Epoch& first, uint32_t cell, bool writes, bool written) {
  const Agent &later = agent(second.agent), &sooner = agent(first.agent);
  const uint32_t launches = launch_of(second) - launch_of(first);
  std::string text = std::string("this ") + (writes ? "overwrites " : "reads ") + name() + ", which ";
  const std::string does = written ? "overwrites" : "reads";
  Note note{{}, place(first), "the other operation is here"};
  if (second.agent == first.agent && sooner.kind == Agent::Kind::block) {
    text += "another thread of the block " + does + ": nothing synchronises the threads in between";
  } else if (sooner.kind != Agent::Kind::block && sooner.chain == later.chain) {
    text += "the proxy " + does + " at some later time: nothing waits for that";
    note.text = "it was handed to the proxy here";
  } else {
    text += (launches ? "an earlier launch " : "another operation ") + does + ": ";
    const bool known = written && first.segment < over_[first.agent];
    text += known ? "a relaxed signal or a packet orders the two, but publishes no data"
            : elsewhere(first)
                ? "only packets at another place of this operation show that it has ended, and the threads "
                  "that work here do not wait for them; synchronise the threads in between"
                : "nothing orders the two";
  }
  std::string help;
  if (writes && written && !launches && second.agent != first.agent && later.chain != sooner.chain) {
    const bool one_rank = place(second).rank == place(first).rank;
    // In scratch, two writers mostly mean two data, which a third party is to read both.
    help = what_->buffer == BufferKind::scratch
               ? std::string("give each ") + (one_rank ? "thread block" : "rank") +
                     " that writes here a chunk of scratch of its own, or order the writes by "
               : std::string("let one ") + (one_rank ? "thread block" : "rank") + " write it, or put ";
    help += one_rank ? "a barrier of the two thread blocks" : "a signal of one rank and a wait of the other";
    if (what_->buffer != BufferKind::scratch) help += " between the writes";
  }
  say(launches ? ProofName::replay : ProofName::races, cell, second, first, writes, written, text,
      std::move(note), std::move(help));
}

/// Returns whether a read of the plan came before anything in its launch wrote its cell, so that it read
/// nothing of use.
bool Races::was_unwritten(uint32_t cell, const Epoch& reader, const Epoch& writer) {
  const Epoch& before = cells_[cell].write;
  if (cells_[cell].writers != nobody || what_->packets) return false;
  if (before.agent != nobody && plain(before) && launch_of(before) == launch_of(reader)) return false;
  if (!plain(reader) || !plain(writer) || launch_of(reader) != launch_of(writer)) return false;
  if (agent(reader.agent).chain == agent(writer.agent).chain) return false;
  const Memory& memory = executor_.memory();
  const Range range = memory.range_of(cell), input = memory.buffer(what_->rank, BufferKind::input);
  return range.space != input.space || range.begin < input.begin || range.begin >= input.end;
}

/// Reports a read that came before the first write of its memory. Here the write comes first in the finding,
/// because the read should come after it.
void Races::missed(const Epoch& read, const Epoch& write, uint32_t cell) {
  Finding* const finding = say(ProofName::races, cell, read, write, false, true, {},
                               Note{{}, place(write), "the other operation is here"});
  if (!finding) return;
  const ProofEvent& event = finding->events[1];  // it names the chunks that both access
  finding->diagnostic.text = "this reads " + std::string(buffer_names[size_t(event.buffer)]) + "[" +
                             number(event.begin) + ":" + number(event.end) + "] of " +
                             rank_name(event.buffer_rank) +
                             ", which another operation overwrites: nothing orders the two";
}

void Races::keep_common(Finding& finding, uint32_t cell) const {
  const Plan& plan = executor_.plan();
  const Access whole{what_->rank, what_->buffer, false, what_->packets, false, 0, 1};
  const uint64_t chunk =
      (executor_.memory().range_of(cell).begin - executor_.memory().whole(whole, {}).begin) /
      executor_.memory().message().chunk;
  uint64_t begin = what_->begin, end = what_->end;
  SymbolicSteps steps;
  for (const ProofEvent& event : finding.events) {
    if (event.who == ProofEvent::Who::application) continue;
    const Gpu& gpu = plan.gpus[event.at.rank];
    const ThreadBlock& block = gpu.threadblocks[event.at.threadblock];
    list_steps(plan, gpu, block, block.ops[event.at.op], steps);
    for (const Access& access : steps.accesses) {
      if (access.rank != what_->rank || access.buffer != what_->buffer || access.packets != what_->packets ||
          access.write != event.writes || chunk < access.begin || chunk >= access.end)
        continue;
      begin = std::max(begin, access.begin);
      end = std::min(end, access.end);
      break;
    }
  }
  for (ProofEvent& event : finding.events) {
    event.begin = begin;
    event.end = end;
  }
}

void Races::overlap_inside(const Epoch& at) {
  if (!findings_.wanted(ProofName::races)) return;
  const std::string text =
      "operands of this overlap in " + name() + ": one of its threads overwrites what another reads";
  if (!findings_.news(ProofName::races, place(at), {}, "overlap")) return;
  Finding& finding = findings_.add(ProofName::races, Finding::Kind::race, place(at), text);
  finding.events = {event(at, false), event(at, true)};
}

Finding* Races::say(ProofName proof, uint32_t cell, const Epoch& second, const Epoch& first, bool writes,
                    bool written, const std::string& text, std::optional<Note> note, std::string help) {
  if (!findings_.wanted(proof)) return nullptr;
  const OpPlace at = place(plain(second) ? second : first);
  if (!findings_.news(proof, at, note ? note->at : std::optional<OpPlace>(), text.substr(0, 12)))
    return nullptr;
  Finding& finding = findings_.add(proof, Finding::Kind::race, at, text, std::move(help));
  if (note) finding.diagnostic.notes.push_back(std::move(*note));
  finding.events = {event(first, written), event(second, writes)};
  keep_common(finding, cell);
  finding.known = written ? agent(second.agent).visible[first.agent] : over_[first.agent];
  return &finding;
}

}  // namespace chorale::proof
