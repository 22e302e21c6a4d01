// No two agents touch the same bytes at once where one overwrites them. What is read must have been visible,
// what is overwritten over: see order.hpp. As the order of a plan is the same in every execution
// (deadlock.cpp says why), each pair of accesses is looked at in one.
//
// For each cell we keep who wrote last, and who has read since: an access that is ordered after these is
// ordered after all before them, or a pair before was found wanting already. Packets carry a flag that their
// readers wait for, so that reading them needs no order, unless a slot is written twice in a launch.
//
// The application owns a rank's input and output between launches: it writes the one before, and reads the
// other and overwrites the first after. So a peer that comes too early or too late races with it.
//
// Replay: scratch is used again by the next launch, or the one after it where there are two banks. Order is
// the same from launch to launch, and the accesses of two launches that far apart are ordered if all are that
// are once that far apart; so one launch more than there are banks is enough for any number.
//
// Costs O(a) for the cells of all accesses, times the readers that a cell has between two writes, and O(s c /
// 64) for s signals between c thread blocks; where most know little of each other much less.

#include <algorithm>
#include <set>
#include <tuple>

#include "../resolve.hpp"
#include "chorale/compile.hpp"
#include "executions.hpp"
#include "order.hpp"
#include "shares.hpp"

namespace chorale {
namespace {

using namespace proof;

constexpr uint32_t nobody = ~uint32_t{0};

/// An access that was.
struct Epoch {
  uint32_t agent = nobody, segment = 0;
  uint32_t op = 0;
  uint32_t switched : 1 = 0;
};

/// An operation that wrote packets: what it had read, by operand and position. Its packets tell whoever reads
/// one that this much has been read at its position, and what the packets it was made of told.
struct Sent {
  struct Source {
    uint32_t cell;  ///< the first
    /// Packets: by position, the operation that wrote them, and its position.
    std::vector<std::pair<uint32_t, uint32_t>> sent;
  };
  Epoch epoch;
  std::vector<Source> sources;
};

struct Cell {
  Epoch write;
  uint32_t readers = nobody;  ///< in Races::pool_
  uint32_t told = 0;          ///< packets: in Races::told_
  uint32_t sent = nobody;     ///< packets: in Races::sent_, at `position` of its operands
  uint32_t position = 0;
  bool again = false;  ///< packets: written for the second time in a launch
};

class Races : public Order {
 public:
  Races(const Player& player, const Shares& shares, Report& report, bool replay)
      : Order(player), shares_(shares), report_(report), replay_(replay), cells_(player.memory().cells()) {
    told_.emplace_back();
  }

  void begin(uint32_t rank, uint32_t launch) override {
    if (launch == 0) own(rank, BufferKind::input, true);
    ++agent(application(rank)).segment;
    Order::begin(rank, launch);
  }

  void end(uint32_t rank, uint32_t launch) override {
    Order::end(rank, launch);
    ++agent(application(rank)).segment;
    own(rank, BufferKind::output, false);
    own(rank, BufferKind::input, true);
  }

  void move(uint32_t chain, const Step& step, std::span<const Touch> touches) override {
    op_ = player_.chains()[chain].op;
    launch_ = player_.chains()[chain].launch;
    uint32_t reads = block_id(chain), writes = reads;
    if (step.kind == Step::Kind::push) std::tie(reads, writes) = hand_over(chain, step);
    inside(block_id(chain), touches);
    over_ = agent(writes).over;
    sources_ = touches.first(step.sources);
    for (const Touch& touch : sources_) touch_all(reads, touch, step.kind == Step::Kind::push);
    if (reads == writes && !over_.same(agent(writes).over)) agent(writes).pending.join(over_);
    const std::span<const Touch> dests = touches.subspan(step.sources);
    if (std::any_of(dests.begin(), dests.end(), [](const Touch& touch) { return touch.access->packets; }))
      note_sent(reads);
    for (const Touch& touch : dests) {
      if (step.combines || !forwards_to_itself(touch)) touch_all(writes, touch, false);
    }
    if (step.kind == Step::Kind::push) complete(reads, writes);
  }

  bool found() const { return !said_.empty(); }

 private:
  struct Reader {
    Epoch epoch;
    uint32_t next;
  };

  /// An operation whose operands overlap at different places: one of its threads overwrites what another
  /// reads.
  void inside(uint32_t id, std::span<const Touch> touches) {
    for (size_t k = 0; k < touches.size(); ++k) {
      for (size_t other = 0; other < k; ++other) {
        const Touch &one = touches[other], &two = touches[k];
        if (one.range.space != two.range.space || one.range.begin == two.range.begin) continue;
        if (!one.access->write && !two.access->write) continue;
        if (one.range.begin >= two.range.end || two.range.begin >= one.range.end) continue;
        if (one.access->packets) continue;
        what_ = two.access;
        say(here(id),
            "operands of this overlap in " + name() + ": one of its threads overwrites what another reads");
      }
    }
  }

  /// Packets that are written where they were read are what they were.
  bool forwards_to_itself(const Touch& dest) const {
    return dest.access->packets && std::any_of(sources_.begin(), sources_.end(), [&](const Touch& source) {
             return source.access->packets && source.cell == dest.cell;
           });
  }

  void note_sent(uint32_t id) {
    Sent& sent = sent_.emplace_back();
    sent.epoch = here(id);
    for (const Touch& touch : sources_) {
      Sent::Source& source = sent.sources.emplace_back();
      source.cell = touch.cell;
      for (uint32_t at = 0; touch.access->packets && at < touch.cells; ++at)
        source.sent.emplace_back(cells_[touch.cell + at].sent, cells_[touch.cell + at].position);
    }
  }

  /// Whether the packets that this operation has read at its position tell that `reader` has read a cell.
  bool told(uint32_t cell, const Epoch& reader) const {
    if (position_ == nobody) return false;
    for (const Touch& touch : sources_) {
      if (!touch.access->packets || position_ >= touch.cells) continue;
      const Cell& slot = cells_[touch.cell + position_];
      if (told_by(slot.sent, slot.position, cell, reader, 6)) return true;
    }
    return false;
  }

  bool told_by(uint32_t sent, uint32_t position, uint32_t cell, const Epoch& reader, int depth) const {
    if (sent == nobody || !depth) return false;
    const Sent& of = sent_[sent];
    const bool mine =
        of.epoch.agent == reader.agent && of.epoch.segment == reader.segment && of.epoch.op == reader.op;
    for (const Sent::Source& source : of.sources) {
      if (mine && source.cell + position == cell) return true;
      if (position >= source.sent.size()) continue;
      const auto [before, at] = source.sent[position];
      if (told_by(before, at, cell, reader, depth - 1)) return true;
    }
    return false;
  }

  void touch_all(uint32_t id, const Touch& touch, bool by_proxy) {
    what_ = touch.access;
    Range range = touch.range;
    uint32_t cell = touch.cell, cells = touch.cells;
    position_ = 0;
    if (!touch.access->packets && cells) {
      if (const Range* whole = shares_.whole(range)) {
        range = *whole;
        cell = player_.memory().cell(range, launch_);
        cells = player_.memory().count(range);
        position_ = nobody;
      }
    }
    if (touch.access->packets && touch.access->write && cells) {
      const Clock clock = told_by_packet(id);
      if (!told_.back().same(clock)) told_.push_back(clock);
    }
    for (uint32_t at = cell; at < cell + cells; ++at) {
      if (touch.access->packets)
        touch.access->write ? write_packets(id, at) : read_packets(id, at, by_proxy);
      else
        touch.access->write ? write(id, at) : read(id, at);
      if (position_ != nobody) ++position_;
    }
  }

  /// The application touches a buffer of its rank.
  void own(uint32_t rank, BufferKind kind, bool write_it) {
    Access access{rank, kind, write_it, false, false, 0, player_.plan().gpus[rank].chunks[size_t(kind)]};
    const Range range = player_.memory().buffer(rank, kind);
    if (range.begin == range.end) return;
    what_ = &access;
    position_ = nobody;
    const uint32_t first = player_.memory().cell(range, 0);
    over_ = agent(application(rank)).over;
    for (uint32_t at = first; at < first + player_.memory().count(range); ++at)
      write_it ? write(application(rank), at) : read(application(rank), at);
  }

  bool visible(uint32_t id, const Epoch& to) {
    const Agent& by = agent(id);
    if (id != to.agent) return to.segment < by.visible[to.agent];
    if (to.segment == by.segment) return false;
    // Memory that a switch reaches by another address is seen there only after an operation that releases.
    return to.switched || !what_->switched || to.segment < by.released;
  }
  bool over(uint32_t id, const Epoch& to) {
    return id == to.agent ? to.segment < agent(id).segment : to.segment < over_[to.agent];
  }
  /// The same operation: its threads touch the same place of each operand, in order.
  bool same(uint32_t id, const Epoch& to) {
    return id == to.agent && to.segment == agent(id).segment && to.op == op_;
  }

  Epoch here(uint32_t id) { return {id, agent(id).segment, op_, what_->switched}; }

  void read(uint32_t id, uint32_t at) {
    Cell& cell = cells_[at];
    if (cell.write.agent != nobody && !visible(id, cell.write) && !same(id, cell.write))
      conflict(id, at, cell.write, false, true);
    add_reader(cell, here(id));
  }

  void write(uint32_t id, uint32_t at) {
    Cell& cell = cells_[at];
    if (cell.write.agent != nobody && !visible(id, cell.write) && !same(id, cell.write))
      conflict(id, at, cell.write, true, true);
    check_readers(id, at);
    cell.write = here(id);
  }

  void read_packets(uint32_t id, uint32_t at, bool by_proxy) {
    Cell& cell = cells_[at];
    // The block has waited for what its proxy reads.
    if (cell.write.agent != nobody && cell.again && !visible(id, cell.write) && !by_proxy)
      conflict(id, at, cell.write, false, true);
    over_.join(told_[cell.told]);
    add_reader(cell, here(id));
  }

  void write_packets(uint32_t id, uint32_t at) {
    Cell& cell = cells_[at];
    const bool before = cell.write.agent != nobody;
    // Whoever has read a packet knows that it was written.
    if (before && cell.readers == nobody && !over(id, cell.write)) conflict(id, at, cell.write, true, true);
    check_readers(id, at);
    cell.again = before && agent(cell.write.agent).launch_of(cell.write.segment) == launch_;
    cell.write = here(id);
    cell.told = uint32_t(told_.size() - 1);
    cell.sent = uint32_t(sent_.size() - 1);
    cell.position = position_;
  }

  void check_readers(uint32_t id, uint32_t at) {
    uint32_t* slot = &cells_[at].readers;
    while (*slot != nobody) {
      const uint32_t reader = *slot;
      const Epoch& epoch = pool_[reader].epoch;
      if (!over(id, epoch) && !same(id, epoch) && !told(at, epoch)) conflict(id, at, epoch, true, false);
      *slot = pool_[reader].next;
      pool_[reader].next = free_;
      free_ = reader;
    }
  }

  void add_reader(Cell& cell, const Epoch& epoch) {
    for (uint32_t at = cell.readers; at != nobody; at = pool_[at].next) {
      Epoch& known = pool_[at].epoch;
      if (known.agent != epoch.agent) continue;
      // Who is known to have come to a segment has ended those before; not what else is in the same.
      if (known.segment == epoch.segment && known.op != epoch.op) continue;
      known = epoch;
      return;
    }
    if (free_ == nobody) {
      pool_.push_back({epoch, cell.readers});
      cell.readers = uint32_t(pool_.size() - 1);
      return;
    }
    const uint32_t at = free_;
    free_ = pool_[at].next;
    pool_[at] = {epoch, cell.readers};
    cell.readers = at;
  }

  // -- What is said

  std::string name() const {
    return std::string(what_->packets ? "packets of " : "") +
           std::string(buffer_names[size_t(what_->buffer)]) + "[" + number(what_->begin) + ":" +
           number(what_->end) + "] of " + rank_name(what_->rank);
  }

  /// Of a buffer of the application.
  std::string name(uint32_t cell) const {
    const Range range = player_.memory().range_of(cell);
    const uint64_t chunk = player_.memory().message().chunk;
    const uint64_t first = player_.memory().buffer(what_->rank, what_->buffer).begin;
    return std::string(buffer_names[size_t(what_->buffer)]) + "[" + number((range.begin - first) / chunk) +
           ":" + number((range.end - first + chunk - 1) / chunk) + "] of " + rank_name(what_->rank);
  }

  OpPlace place(const Epoch& epoch) {
    const Chain& chain = player_.chains()[agent(epoch.agent).chain];
    return {chain.rank, chain.block, epoch.op};
  }
  uint32_t launch_of(const Epoch& epoch) { return agent(epoch.agent).launch_of(epoch.segment); }
  bool plain(const Epoch& epoch) { return agent(epoch.agent).kind != Agent::Kind::application; }

  /// `second`, which writes or reads, is not ordered after `first`, which wrote or read.
  void conflict(uint32_t id, uint32_t cell, const Epoch& first, bool writes, bool written) {
    const Epoch second = here(id);
    if (!plain(second) && !plain(first)) return;  // the application's own affair
    // What the application does is the same around each launch.
    if (replay_ && (!plain(second) || !plain(first) || launch_of(second) == launch_of(first))) return;
    if (plain(second) && plain(first)) return between(second, first, writes, written);
    const Epoch& of_plan = plain(second) ? second : first;
    const Epoch& of_owner = plain(second) ? first : second;
    const bool overwrites = plain(second) ? writes : written;
    // Two segments a launch: see begin() and end().
    const bool early = of_owner.segment / 2 <= launch_of(of_plan);
    std::string text = std::string("this ") + (overwrites ? "overwrites " : "reads ") +
                       (plain(second) ? name() : name(cell));
    if (early)
      text += ", and nothing says that this rank has begun: the application may still be using it";
    else if (overwrites && first.segment < over_[first.agent])
      text +=
          ", but what tells the rank so, a relaxed signal or a packet, publishes no data: the application "
          "may "
          "not see it";
    else
      text +=
          ", and nothing tells the rank when: the launch may have ended there, and the application be using "
          "it";
    say(of_plan, text);
  }

  void between(const Epoch& second, const Epoch& first, bool writes, bool written) {
    const Agent &later = agent(second.agent), &sooner = agent(first.agent);
    const uint32_t launches = launch_of(second) - launch_of(first);
    std::string text = std::string("this ") + (writes ? "overwrites " : "reads ") + name() + ", which ";
    const std::string does = written ? "overwrites" : "reads";
    Note note{{}, place(first), "the other operation is here"};
    if (second.agent == first.agent && sooner.kind == Agent::Kind::block) {
      text += "another thread of the block " + does + ": nothing synchronises the threads in between";
    } else if (sooner.kind != Agent::Kind::block && sooner.chain == later.chain) {
      text += "the proxy " + does + " at its leisure: nothing waits until it has done so";
      note.text = "it was handed to the proxy here";
    } else {
      text += (launches ? "an earlier launch " : "another operation ") + does + ": ";
      const bool known = written && first.segment < over_[first.agent];
      text += known ? "what orders the two, a relaxed signal or a packet, publishes no data"
                    : "nothing orders the two";
    }
    say(second, text, std::move(note));
  }

  void say(const Epoch& at, const std::string& text, std::optional<Note> note = {}) {
    if (said_.size() >= most) return;
    const Plan& plan = player_.plan();
    const OpPlace where = place(at);
    const auto line = [&](const OpPlace& of) {
      const SourceLine line = plan.line_of(plan.gpus[of.rank].threadblocks[of.threadblock].ops[of.op]);
      // Every rank does the same as a rule: one finding for a pair of lines.
      return line.line ? line.file + ":" + number(line.line)
                       : number(of.rank) + "." + number(of.threadblock) + "." + number(of.op);
    };
    const std::string pair =
        line(where) + " " + (note ? line(*note->at) : "") + (note ? "" : text.substr(0, 12));
    if (!said_.insert(pair).second) return;
    Diagnostic& finding = report_.add(where, text);
    if (note) finding.notes.push_back(std::move(*note));
  }

  static constexpr size_t most = 20;

  const Shares& shares_;
  Report& report_;
  const bool replay_;  // only what is between launches
  std::vector<Cell> cells_;
  std::vector<Reader> pool_;
  uint32_t free_ = nobody;
  std::vector<Clock> told_;
  std::vector<Sent> sent_;
  std::span<const Touch> sources_;  // of the move that is looked at
  uint32_t position_ = 0;           // in each of its operands
  Clock over_;                      // of the agent that acts, with what packets tell its own threads
  const Access* what_ = nullptr;
  uint32_t op_ = 0, launch_ = 0;
  std::set<std::string> said_;
};

void look(const Plan& plan, uint32_t launches, Report& report) {
  for_each_execution(plan, report, [&](Player& player, Choices& choices) {
    const Shares shares(plan, player.memory());
    Races races(player, shares, report, launches > 1);
    player.play(launches, choices, races);
    return !races.found();
  });
}

}  // namespace

void pass::races(const Plan& plan, Diagnostics& out) {
  Report report("races", out);
  look(plan, 1, report);
}

void pass::replay(const Plan& plan, Diagnostics& out) {
  Report report("replay", out);
  bool packets = false;
  for_each_op(plan, [&](const Gpu&, const ThreadBlock&, const Op& op, const Op*, OpPlace) {
    for (const Field& field : info(op.code).fields) packets |= is_packet(field.role);
  });
  const uint32_t banks = packets || plan.use_double_scratch_buffer ? 2 : 1;
  look(plan, banks + 1, report);
}

}  // namespace chorale
