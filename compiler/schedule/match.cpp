#include "match.hpp"

#include <fmt/format.h>

#include <tuple>

#include "report.hpp"

namespace chorale::schedule {
namespace {

const Step& step_of(const Concrete& made, const Pair::End& end) { return made.steps[end.rank][end.step]; }
ConcreteTransfer& transfer_of(Concrete& made, const Pair::End& end) {
  return made.steps[end.rank][end.step].transfers[end.transfer];
}

/// Checks that both ends agree on the bytes.
void compare(Concrete& made, const Schedule& schedule, const Pair& pair, Diagnostics& out) {
  const ConcreteTransfer &send = transfer_of(made, pair.send), &recv = transfer_of(made, pair.recv);
  const auto differ = [&](std::string text) {
    Diagnostic* finding = report(out, schedule, "matching", send.at, std::move(text));
    note(finding, schedule, recv.at,
         fmt::format("the receive, on {}", where(pair.recv.rank, step_of(made, pair.recv))));
  };
  const std::string place = where(pair.send.rank, step_of(made, pair.send));
  const DType from = made.tensors[send.box.tensor].dtype, to = made.tensors[recv.box.tensor].dtype;
  if (from != to)
    return differ(fmt::format("{} of {} is sent on {}, but rank {} receives {}", text(made, send.box),
                              dtype_name(from), place, pair.recv.rank, dtype_name(to)));
  if (send.box.bytes != recv.box.bytes)
    return differ(fmt::format("{} bytes of {} are sent on {}, but rank {} receives {} bytes in {}",
                              send.box.bytes, text(made, send.box), place, pair.recv.rank, recv.box.bytes,
                              text(made, recv.box)));
  if (send.mover != recv.mover)
    return differ(fmt::format("{} is sent via {} on {}, but rank {} receives via {}", text(made, send.box),
                              mover_names[size_t(send.mover)], place, pair.recv.rank,
                              mover_names[size_t(recv.mover)]));
}

}  // namespace

void match(Concrete& made, const Schedule& schedule, Diagnostics& out) {
  struct Queues {
    std::vector<Pair::End> sends, recvs;
  };
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, Queues> channels;  // by source, destination and tag
  for (uint32_t rank = 0; rank < made.ranks; ++rank) {
    for (uint32_t step = 0; step < made.steps[rank].size(); ++step) {
      const std::vector<ConcreteTransfer>& list = made.steps[rank][step].transfers;
      for (uint32_t k = 0; k < list.size(); ++k) {
        Queues& queues = list[k].is_send ? channels[{rank, list[k].peer, list[k].tag}]
                                         : channels[{list[k].peer, rank, list[k].tag}];
        (list[k].is_send ? queues.sends : queues.recvs).push_back({rank, step, k});
      }
    }
  }
  for (const auto& [channel, queues] : channels) {
    const size_t both = std::min(queues.sends.size(), queues.recvs.size());
    for (size_t k = 0; k < both; ++k) {
      const Pair pair{queues.sends[k], queues.recvs[k], transfer_of(made, queues.sends[k]).mover};
      transfer_of(made, pair.send).pair = transfer_of(made, pair.recv).pair = uint32_t(made.pairs.size());
      made.pairs.push_back(pair);
      compare(made, schedule, pair, out);
    }
    const bool sent = queues.sends.size() > both;
    const std::vector<Pair::End>& left = sent ? queues.sends : queues.recvs;
    if (left.size() == both) continue;
    const auto [from, to, tag] = channel;
    const ConcreteTransfer& one = transfer_of(made, left[both]);
    report(
        out, schedule, "matching", one.at,
        fmt::format(
            "this {} on {} has no {} at rank {}: with tag {}, rank {} sends {} to rank {}, which receives {}",
            sent ? "send" : "receive", where(left[both].rank, step_of(made, left[both])),
            sent ? "receive" : "send", one.peer, tag, from, count(queues.sends.size(), "time"), to,
            count(queues.recvs.size(), "time")));
  }
}

}  // namespace chorale::schedule
