#include "bindings.hpp"

#include <algorithm>

namespace chorale {

Binding* Bindings::find(const Call& call, const Arguments& arguments) {
  const auto fits = [&](Binding& binding) { return binding.call() == call && binding.serves(arguments); };
  if (last_ && fits(*last_)) return last_;
  for (Kept& kept : kept_) {
    if (!fits(*kept.binding)) continue;
    kept.last_use = ++uses_;
    return last_ = kept.binding.get();
  }
  return nullptr;
}

Binding* Bindings::add(std::unique_ptr<Binding> binding) {
  kept_.push_back({++made_, ++uses_, std::move(binding)});
  return last_ = kept_.back().binding.get();
}

void Bindings::clear() {
  kept_.clear();
  last_ = nullptr;
}

std::vector<uint64_t> Bindings::evictable() const {
  std::vector<const Kept*> order;
  for (const Kept& kept : kept_) {
    if (!kept.binding->held()) order.push_back(&kept);
  }
  std::sort(order.begin(), order.end(),
            [](auto* one, auto* other) { return one->last_use < other->last_use; });
  std::vector<uint64_t> numbers;
  for (const Kept* const kept : order) numbers.push_back(kept->number);
  return numbers;
}

void Bindings::evict(std::span<const uint64_t> numbers) {
  last_ = nullptr;
  for (const uint64_t number : numbers) {
    std::erase_if(kept_, [number](const Kept& kept) { return kept.number == number; });
  }
}

void Bindings::add_trace(std::vector<TraceSpan>& spans) const {
  for (const Kept& kept : kept_) kept.binding->add_trace(spans);
}

}  // namespace chorale
