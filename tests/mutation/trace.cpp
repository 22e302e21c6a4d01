#include "trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace chorale::mutation {
namespace {

using proof::Node;
constexpr uint32_t nobody = proof::History::none;

bool is_boundary(const Node& node) { return node.kind == Node::Kind::begin || node.kind == Node::Kind::end; }

}  // namespace

/// Records the history of an execution, with the accesses of each of its nodes.
class Trace::Accesses : public proof::History {
 public:
  explicit Accesses(const proof::SymbolicExecutor& executor)
      : History(executor),
        streams_(executor.chains().size()),
        counts_(executor.chains().size()),
        cells_(executor.memory().cells()) {}

  void begin(uint32_t rank, uint32_t launch) override {
    if (launch == 0) own(rank, launch, nobody);
    History::begin(rank, launch);
    for (const bool overwrites : {false, true}) {
      const auto found = accesses_.find({AccessId::Who::application, rank, 0, launch, overwrites});
      if (found != accesses_.end()) found->second.out = newest();
    }
    for (uint32_t chain = 0; chain < counts_.size(); ++chain) {
      if (executor().chains()[chain].rank == rank) counts_[chain] = 0;
    }
  }

  void end(uint32_t rank, uint32_t launch) override {
    History::end(rank, launch);
    own(rank, launch + 1, newest());
  }

  void move(uint32_t chain, const proof::SymbolicStep& step, std::span<const proof::Touch> touches) override {
    History::move(chain, step, touches);
    const proof::Chain& by = executor().chains()[chain];
    AccessId reads{AccessId::Who::block, by.rank, by.block, by.launch, counts_[chain]++}, writes = reads;
    std::string& stream = streams_[chain];
    stream += fmt::format("{}:", step.combines ? reduce_op_name(step.reduce_op) : "");
    for (const proof::Touch& touch : touches) {
      stream += fmt::format(" {}{}.{}.{}-{}", touch.access->write ? ">" : "", touch.access->rank,
                            uint32_t(touch.access->buffer), touch.range.begin, touch.range.end);
    }
    stream += "\n";
    if (step.kind == proof::SymbolicStep::Kind::push) {
      reads.who = AccessId::Who::proxy_reads;
      writes.who = AccessId::Who::proxy_writes;
      accesses_[reads] = {by.place(), newest() - 1, newest() - 1};
    }
    accesses_[writes] = {by.place(), newest(), newest()};
    for (const proof::Touch& touch : touches) {
      for (uint32_t cell = touch.cell; cell < touch.cell + touch.cells; ++cell)
        touch.access->write ? write(cell, writes, touch.access->packets) : read(cell, reads);
    }
  }

  struct Access {
    OpPlace at;
    uint32_t in = nobody;   ///< the node that must come after an earlier access
    uint32_t out = nobody;  ///< the node that must come before a later access
  };

  const std::vector<std::string>& streams() const { return streams_; }
  const std::map<AccessId, Access>& accesses() const { return accesses_; }
  const std::set<Pair>& pairs() const { return pairs_; }

 private:
  struct Cell {
    std::optional<AccessId> write;
    std::vector<AccessId> readers;
    bool packets = false;
  };

  uint32_t newest() const { return uint32_t(nodes().size() - 1); }

  /// Before a launch the application of a rank reads the last output and overwrites the input.
  /// \param after  the end of the previous launch
  void own(uint32_t rank, uint32_t launch, uint32_t after) {
    for (const bool overwrites : {false, true}) {
      const proof::Range range =
          executor().memory().buffer(rank, overwrites ? BufferKind::input : BufferKind::output);
      if (range.begin == range.end) continue;
      const AccessId id{AccessId::Who::application, rank, 0, launch, overwrites};
      accesses_[id] = {{rank, 0, 0}, after, nobody};
      const uint32_t first = executor().memory().cell(range, 0);
      for (uint32_t cell = first; cell < first + executor().memory().count(range); ++cell)
        overwrites ? write(cell, id, false) : read(cell, id);
    }
  }

  void note(const AccessId& first, const AccessId& second, bool visible) {
    // Between two launches the application works in its own order.
    const bool by_application = first.who == AccessId::Who::application && second.who == first.who &&
                                second.rank == first.rank && second.launch == first.launch;
    if (first != second && !by_application) pairs_.insert({first, second, visible});
  }

  void read(uint32_t at, const AccessId& id) {
    Cell& cell = cells_[at];
    // Data in packets comes with its flag, so it needs no order.
    if (cell.write && !cell.packets) note(*cell.write, id, true);
    if (std::find(cell.readers.begin(), cell.readers.end(), id) == cell.readers.end())
      cell.readers.push_back(id);
  }

  void write(uint32_t at, const AccessId& id, bool packets) {
    Cell& cell = cells_[at];
    if (cell.write && (cell.readers.empty() || !cell.packets)) note(*cell.write, id, !cell.packets);
    for (const AccessId& reader : cell.readers) note(reader, id, false);
    cell = {id, {}, packets};
  }

  std::vector<std::string> streams_;  // by chain
  std::vector<uint32_t> counts_;      // by chain: accesses of the launch
  std::vector<Cell> cells_;
  std::map<AccessId, Access> accesses_;
  std::set<Pair> pairs_;
};

Trace::Trace(const Plan& plan) {
  const std::vector<proof::Message> messages = proof::list_messages(plan);
  if (messages.empty()) return;
  memory_ = std::make_unique<proof::Memory>(plan, messages.back(), plan.inplace);
  if (!memory_->fits()) return;
  executor_ = std::make_unique<proof::SymbolicExecutor>(plan, *memory_);
  accesses_ = std::make_unique<Accesses>(*executor_);
  proof::Choices choices;
  ended_ = executor_->run(memory_->banks() + 1, choices, *accesses_) && accesses_->complete();
}

Trace::~Trace() = default;

const std::vector<std::string>& Trace::streams() const { return accesses_->streams(); }
const std::set<Pair>& Trace::pairs() const { return accesses_->pairs(); }
OpPlace Trace::place_of(const AccessId& id) const { return accesses_->accesses().at(id).at; }

std::vector<Pair> Trace::pairs_through(const OpPlace& at) const {
  // These are the distances from and to the nearest node of the operation. Causes come before their effects.
  const std::vector<Node>& nodes = accesses_->nodes();
  std::vector<uint32_t> before(nodes.size(), nobody), behind(nodes.size(), nobody);
  for (uint32_t node = 0; node < nodes.size(); ++node) {
    if (!is_boundary(nodes[node]) && accesses_->place(nodes[node]) == at) before[node] = behind[node] = 0;
  }
  const auto step = [&](uint32_t distance, uint32_t to) {
    // A pair within one launch says more than a pair across two.
    return distance == nobody ? nobody : distance + (is_boundary(nodes[to]) ? 4 : 1);
  };
  for (uint32_t node = 0; node < nodes.size(); ++node) {
    for (const proof::Cause& cause : accesses_->before(node))
      behind[node] = std::min(behind[node], step(behind[cause.node], node));
  }
  for (uint32_t node = uint32_t(nodes.size()); node-- > 0;) {
    for (const proof::Cause& cause : accesses_->before(node))
      before[cause.node] = std::min(before[cause.node], step(before[node], cause.node));
  }
  std::vector<std::pair<uint32_t, Pair>> found;
  for (const Pair& pair : pairs()) {
    const auto &first = accesses_->accesses().at(pair.first), &second = accesses_->accesses().at(pair.second);
    const bool is_one = pair.first.who != AccessId::Who::application && first.at == at;
    const bool is_other = pair.second.who != AccessId::Who::application && second.at == at;
    if (is_one || is_other) {
      found.emplace_back(0, pair);
    } else if (first.out != nobody && second.in != nobody && before[first.out] != nobody &&
               behind[second.in] != nobody) {
      found.emplace_back(before[first.out] + behind[second.in], pair);
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Pair> pairs;
  for (const auto& [distance, pair] : found) pairs.push_back(pair);
  return pairs;
}

std::optional<std::vector<OpPlace>> Trace::path(const Pair& pair) const {
  const auto first = accesses_->accesses().find(pair.first), second = accesses_->accesses().find(pair.second);
  if (first == accesses_->accesses().end() || second == accesses_->accesses().end()) return {};
  const uint32_t from = first->second.out, to = second->second.in;
  if (from == nobody || to == nobody) return {};
  if (!past_ || past_node_ != std::pair(to, pair.visible)) {
    past_.emplace(*accesses_, to, pair.visible);
    past_node_ = {to, pair.visible};
  }
  if (!past_->has(from)) return {};
  std::vector<OpPlace> places;
  for (const uint32_t node : past_->path_from(from)) {
    const Node& of = accesses_->nodes()[node];
    if (node == from || node == to || is_boundary(of)) continue;
    const OpPlace here = accesses_->place(of);
    // The path keeps only the first and the last of consecutive operations of a block.
    const auto in_block = [&](const OpPlace& other) {
      return other.rank == here.rank && other.threadblock == here.threadblock;
    };
    if (places.size() > 1 && in_block(places.back()) && in_block(places[places.size() - 2]))
      places.pop_back();
    places.push_back(here);
  }
  return places;
}

}  // namespace chorale::mutation
