#include "bindings.hpp"

#include <algorithm>
#include <utility>

namespace chorale {

Binding* Bindings::find(const Call& call, const Arguments& arguments) {
  const auto fits = [&](Binding& binding) { return binding.call() == call && binding.serves(arguments); };
  if (last_ && fits(*last_)) return last_;
  for (Kept& kept : kept_) {
    if (kept.retired || !fits(*kept.binding)) continue;
    kept.last_use = ++uses_;
    return last_ = kept.binding.get();
  }
  return nullptr;
}

Binding* Bindings::add(std::unique_ptr<Binding> binding) {
  kept_.push_back({++made_, ++uses_, std::move(binding)});
  return last_ = kept_.back().binding.get();
}

void Bindings::retire() {
  for (Kept& kept : kept_) kept.retired = true;
  last_ = nullptr;
}

size_t Bindings::surplus() const {
  const auto ready =
      size_t(std::count_if(kept_.begin(), kept_.end(), [](const Kept& kept) { return !kept.retired; }));
  return limit_ != 0 && ready >= limit_ ? ready - limit_ + 1 : 0;
}

uint64_t Bindings::scratch() const {
  uint64_t bytes = 0;
  for (const Kept& kept : kept_) bytes += kept.binding->scratch();
  return bytes;
}

std::vector<uint64_t> Bindings::evictable(bool others) const {
  std::vector<const Kept*> order;
  for (const Kept& kept : kept_) {
    if (!kept.binding->held() && (kept.retired || others)) order.push_back(&kept);
  }
  std::sort(order.begin(), order.end(), [](auto* one, auto* other) {
    return one->retired != other->retired ? one->retired : one->last_use < other->last_use;
  });
  std::vector<uint64_t> numbers;
  for (const Kept* const kept : order) numbers.push_back(kept->number);
  return numbers;
}

void Bindings::evict(std::span<const uint64_t> numbers, uint64_t more) {
  last_ = nullptr;
  for (const uint64_t number : numbers) {
    const auto found = std::find_if(kept_.begin(), kept_.end(),
                                    [number](const Kept& kept) { return kept.number == number; });
    if (found != kept_.end() && (found->retired || crowded(more))) kept_.erase(found);
  }
}

void Bindings::add_trace(std::vector<TraceSpan>& spans) const {
  for (const Kept& kept : kept_) {
    const size_t before = spans.size();
    kept.binding->add_trace(spans);
    for (size_t at = before; at < spans.size(); ++at) spans[at].bytes = kept.binding->call().bytes;
  }
}

}  // namespace chorale
