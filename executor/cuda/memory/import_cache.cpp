#include "import_cache.hpp"

#include <algorithm>

namespace chorale::cuda {

std::shared_ptr<Imported> ImportCache::find(const Key& key) {
  const auto found = held_.find(key);
  if (found == held_.end() || found->second.imported->stale()) return nullptr;
  found->second.last_use = ++uses_;
  return found->second.imported;
}

std::shared_ptr<Imported> ImportCache::open(const Key& key, std::span<const Foreign> parts) {
  auto imported = std::make_shared<Imported>(parts);
  ++opened_;
  held_[key] = {imported, ++uses_};
  return imported;
}

void ImportCache::drop(int rank, const std::vector<uint64_t>& freed) {
  if (freed.empty()) return;
  std::erase_if(held_, [&](const auto& held) {
    const auto& [owner, numbers] = held.first;
    const bool gone = owner == rank && std::find_first_of(numbers.begin(), numbers.end(), freed.begin(),
                                                          freed.end()) != numbers.end();
    if (gone) held.second.imported->close();
    return gone;
  });
}

void ImportCache::limit_unused(size_t limit) {
  std::vector<std::pair<uint64_t, Key>> unused;
  for (const auto& [key, entry] : held_) {
    if (entry.imported.use_count() == 1) unused.emplace_back(entry.last_use, key);
  }
  if (unused.size() <= limit) return;
  std::sort(unused.begin(), unused.end());
  for (size_t at = 0; at < unused.size() - limit; ++at) held_.erase(unused[at].second);
}

}  // namespace chorale::cuda
