#include "ahead.hpp"

#include <utility>

namespace chorale::schedule {
namespace {

class Ahead {
 public:
  Ahead(Schedule& schedule, TurnMaker& maker, const Region& region, const Slices& slices,
        const Lowering& options)
      : s_(schedule),
        maker_(maker),
        region_(region),
        slices_(slices),
        options_(options),
        comm_(named_stream(schedule, "comm")),
        arrive_(named_stream(schedule, "arrive")),
        comp_(region.computing.empty() ? Stream{} : named_stream(schedule, "comp")) {
    for (const auto* list : {&region.arriving, &region.leaving})
      for (const Item& item : *list)
        moves_.push_back({&item, maker.ends(item, slices, options), maker.new_token()});
  }

  void all() {
    std::vector<Stream> streams = {comm_, arrive_};
    if (!region_.computing.empty()) streams.push_back(comp_);
    add(s_.body, OpKind::fork, {}, region_.at).streams = streams;
    begin();
    turns();
    end();
    add(s_.body, OpKind::join, {}, region_.at).streams = streams;
  }

 private:
  struct Move {
    const Item* item;
    Ends ends;
    uint32_t begun;  ///< token, by turn: of the transfer begun ahead, or waited for at the end
  };

  bool puts() const { return options_.via == Mover::ce_put; }
  bool arrives(const Move& move) const { return &move - moves_.data() < long(region_.arriving.size()); }

  Op loop() const { return loop_over(s_.exprs, region_.turns, region_.at); }
  /// Adds `own` for the turn of this rank's own slice, and returns the list of operations for all other
  /// turns.
  std::vector<Op>& unless_own(Op& turn, const Move& move, std::vector<Op> own = {}) const {
    Op& op = add(turn.body, OpKind::if_, {}, move.item->op.at);
    op.value = slices_.is_own;
    op.body = std::move(own);
    return op.orelse;
  }
  void begin_transfer(std::vector<Op>& body, const Move& move, Stream stream, const Transfer& transfer,
                      uint32_t token, Expr index) const {
    Op& group = add(body, OpKind::group, stream, move.item->op.at);
    group.token = token;
    group.index = index;
    group.transfers = {transfer};
  }
  void wait(std::vector<Op>& body, const Move& move, Stream stream, uint32_t token, Expr index) const {
    Op& op = add(body, OpKind::wait, stream, move.item->op.at);
    op.token = token;
    op.index = index;
  }
  /// Begins a transfer and waits for it at once.
  void transfer_now(std::vector<Op>& body, const Move& move, Stream stream, const Transfer& transfer) {
    const uint32_t token = maker_.new_token();
    begin_transfer(body, move, stream, transfer, token, {});
    wait(body, move, stream, token, {});
  }

  void begin() {
    Op first = loop();
    for (const Move& move : moves_) {
      if (puts()) {
        begin_transfer(unless_own(first, move), move, arrive_, move.ends.recv, move.begun, slices_.turn);
      } else if (arrives(move)) {
        begin_transfer(unless_own(first, move), move, comm_, move.ends.send, move.begun, slices_.turn);
      }
    }
    if (!first.body.empty()) s_.body.push_back(std::move(first));
  }

  void turns() {
    Op turn = loop();
    for (const Move& move : moves_)
      if (arrives(move)) arrive(turn, move);
    for (const Item& item : region_.computing) maker_.item(turn.body, item, slices_, comp_, options_);
    if (!region_.leaving.empty() && !region_.computing.empty())
      add(turn.body, OpKind::after, comm_, region_.leaving[0].op.at).streams = {comp_};
    for (const Move& move : moves_)
      if (!arrives(move)) leave(turn, move);
    s_.body.push_back(std::move(turn));
  }

  void arrive(Op& turn, const Move& move) {
    // The copies run on the stream that does not delay the first transfer.
    const Stream copies = puts() ? arrive_ : comm_;
    std::vector<Op> own = {move.ends.own};
    own[0].stream = copies;
    compute_after(own, move, copies);
    std::vector<Op>& body = unless_own(turn, move, std::move(own));
    if (puts()) {
      transfer_now(body, move, comm_, move.ends.send);
      wait(body, move, arrive_, move.begun, slices_.turn);
    } else {
      transfer_now(body, move, arrive_, move.ends.recv);
    }
    compute_after(body, move, arrive_);
  }
  void compute_after(std::vector<Op>& body, const Move& move, Stream stream) const {
    if (!region_.computing.empty()) add(body, OpKind::after, comp_, move.item->op.at).streams = {stream};
  }

  void leave(Op& turn, const Move& move) {
    std::vector<Op> own = {move.ends.own};
    own[0].stream = comm_;
    std::vector<Op>& body = unless_own(turn, move, std::move(own));
    if (puts()) {
      transfer_now(body, move, comm_, move.ends.send);
      wait(body, move, arrive_, move.begun, slices_.turn);
    } else {
      begin_transfer(body, move, comm_, move.ends.send, move.begun, slices_.turn);
      transfer_now(body, move, arrive_, move.ends.recv);
    }
  }

  /// With ce_get, waits until the peers have read all that was offered.
  void end() {
    if (puts()) return;
    Op last = loop();
    for (const Move& move : moves_) wait(unless_own(last, move), move, comm_, move.begun, slices_.turn);
    s_.body.push_back(std::move(last));
  }

  Schedule& s_;
  TurnMaker& maker_;
  const Region& region_;
  const Slices& slices_;
  const Lowering& options_;
  const Stream comm_, arrive_, comp_;
  std::vector<Move> moves_;  // first those that arrive, then those that leave
};

}  // namespace

void lower_ahead(Schedule& schedule, TurnMaker& maker, const Region& region, const Slices& slices,
                 const Lowering& options) {
  Ahead(schedule, maker, region, slices, options).all();
}

}  // namespace chorale::schedule
