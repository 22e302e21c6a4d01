#include "promise.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace chorale::proof {

Promise::Promise(const Plan& plan, const Memory& memory) : plan_(plan), outcome_(plan) {
  if (!any()) return;
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
  std::vector<Origin> list;
  if (!any()) return list;
  outcome_.for_each(rank, at / segment_, sender, [&](const Contribution& from) {
    list.push_back({from.rank, from.chunk * segment_ + at % segment_});
  });
  return list;
}

bool Promise::has_several_parts(uint32_t rank, uint64_t at) const {
  if (plan_.extension.post.empty()) return false;
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
  if (!outcome_.reduces() || !outcome_.promises(rank)) return add();
  // The sum of one part of all inputs is the same on every rank.
  const auto [found, added] = of_all_.try_emplace(outcome_.input_part(rank) * segment_ + at % segment_);
  if (added) found->second = *add();
  return found->second;
}

}  // namespace chorale::proof
