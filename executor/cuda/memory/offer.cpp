#include "offer.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace chorale::cuda {
namespace {

struct Head {
  uint64_t pointer, bytes, offset, parts, freed;
};

template <class T>
void append(std::vector<std::byte>& to, const T* values, size_t count) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::byte* const first = reinterpret_cast<const std::byte*>(values);
  to.insert(to.end(), first, first + count * sizeof(T));
}

template <class T>
void take(std::span<const std::byte>& from, T* values, size_t count) {
  if (count == 0) return;
  std::memcpy(values, from.data(), count * sizeof(T));
  from = from.subspan(count * sizeof(T));
}

}  // namespace

std::vector<std::byte> Offer::to_bytes() const {
  const Head head{pointer, bytes, offset, parts.size(), freed.size()};
  std::vector<std::byte> all;
  append(all, &head, 1);
  append(all, parts.data(), parts.size());
  append(all, freed.data(), freed.size());
  return all;
}

Offer Offer::from_bytes(std::span<const std::byte> from) {
  Head head;
  take(from, &head, 1);
  Offer offer;
  offer.pointer = head.pointer;
  offer.bytes = head.bytes;
  offer.offset = head.offset;
  offer.parts.resize(head.parts);
  offer.freed.resize(head.freed);
  take(from, offer.parts.data(), head.parts);
  take(from, offer.freed.data(), head.freed);
  return offer;
}

std::vector<uint64_t> Offer::numbers() const {
  std::vector<uint64_t> all;
  for (const Part& part : parts) all.push_back(part.number);
  return all;
}

size_t Offer::descriptors() const {
  return size_t(std::count_if(parts.begin(), parts.end(),
                              [](const Part& part) { return part.sharing == Sharing::descriptor; }));
}

}  // namespace chorale::cuda
