#include "promise.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace chorale::proof {

Promise::Promise(const Plan& plan, const Memory& memory) : plan_(plan) {
  const std::string& what = plan.collective;
  if (what == "allreduce") kind_ = Kind::all;
  if (what == "reducescatter") kind_ = Kind::part_of_all;
  if (what == "allgather") kind_ = Kind::each;
  if (what == "alltoall") kind_ = Kind::part_of_each;
  if (what == "broadcast") kind_ = Kind::root;
  if (what == "sendrecv") kind_ = Kind::sender;
  if (!plan.extension.post.empty()) kind_ = Kind::own;
  if (kind_ == Kind::nothing) return;
  const Segmentation segments = segmentation(plan);
  uint64_t chunks = 0;
  for (const Gpu& gpu : plan.gpus) {
    for (const auto& [kind, parts] :
         {std::pair(BufferKind::input, segments.input), {BufferKind::output, segments.output}}) {
      const uint64_t all = gpu.chunks[size_t(kind)];
      if (!all) continue;
      if (!chunks) chunks = all / parts;
      if (all != chunks * parts) {
        impossible_ = fmt::format("the {} of rank {} has {} chunks, which are not {} parts of {}",
                                  buffer_names[size_t(kind)], gpu.id, all, parts, chunks);
      }
    }
  }
  segment_ = chunks * memory.message().chunk;
}

std::vector<Origin> Promise::origins(uint32_t rank, uint64_t at, uint32_t sender) const {
  const uint64_t part = at / segment_, within = at % segment_;
  std::vector<Origin> list;
  switch (kind_) {
    case Kind::nothing:
      break;
    case Kind::all:
    case Kind::part_of_all:
      for (uint32_t of = 0; of < plan_.ranks(); ++of)
        list.push_back({of, (kind_ == Kind::all ? 0 : rank * segment_) + at});
      break;
    case Kind::each:
      list.push_back({uint32_t(part), within});
      break;
    case Kind::part_of_each:
      list.push_back({uint32_t(part), rank * segment_ + within});
      break;
    case Kind::root:
      list.push_back({plan_.extension.root, at});
      break;
    case Kind::sender:
      list.push_back({sender, at});
      break;
    case Kind::own: {
      const auto& post = plan_.extension.post;
      if (rank >= post.size() || part >= post[rank].size()) break;
      for (const Contribution& from : post[rank][part])
        list.push_back({from.rank, from.chunk * segment_ + within});
      break;
    }
  }
  return list;
}

bool Promise::has_several_parts(uint32_t rank, uint64_t at) const {
  if (kind_ != Kind::own) return false;
  std::vector<Origin> parts = origins(rank, at, 0);
  std::sort(parts.begin(), parts.end());
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  return std::adjacent_find(parts.begin(), parts.end(), [](const Origin& one, const Origin& next) {
           return one.rank == next.rank;
         }) != parts.end();
}

std::optional<Sum> Promise::sum(uint32_t rank, uint64_t at, uint32_t sender) {
  const auto add = [&] {
    std::optional<Sum> sum;
    for (const Origin& of : origins(rank, at, sender)) sum = sum ? plus(*sum, sum_of(of)) : sum_of(of);
    return sum;
  };
  if (kind_ != Kind::all && kind_ != Kind::part_of_all) return add();
  // The sum is the same on every rank.
  const auto [found, added] = of_all_.try_emplace((kind_ == Kind::all ? 0 : rank * segment_) + at);
  if (added) found->second = *add();
  return found->second;
}

}  // namespace chorale::proof
