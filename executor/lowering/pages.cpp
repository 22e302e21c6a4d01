#include "pages.hpp"

#include <algorithm>
#include <cstring>

namespace chorale::lowering {
namespace {

/// Returns the end of the steps that must be in one page with the step at `at`: its whole loop, or the step
/// alone.
size_t end_of_unit(const std::vector<RecordedStep>& steps, size_t at) {
  if (steps[at].step.kind != ProgramStepKind::loop) return at + 1;
  while (steps[at].step.kind != ProgramStepKind::repeat) ++at;
  return at + 1;
}

}  // namespace

PageShape with_step(PageShape shape, const RecordedStep& step) {
  ++shape.steps;
  shape.items += uint32_t(step.items.size());
  shape.plain += uint32_t(step.plain.size());
  shape.packets += uint32_t(step.packets.size());
  return shape;
}

std::vector<Page> paginate(std::vector<RecordedStep>& steps, uint64_t page_bytes) {
  std::vector<Page> pages(1);
  for (size_t at = 0; at < steps.size();) {
    const size_t end = end_of_unit(steps, at);
    PageShape unit, more = pages.back().shape;
    for (; at < end; ++at) {
      unit = with_step(unit, steps[at]);
      more = with_step(more, steps[at]);
    }
    if (more.shared_bytes() > page_bytes && pages.back().end != pages.back().first) {
      pages.push_back({pages.back().end, pages.back().end, {}});
      more = unit;
    }
    pages.back().shape = more;
    pages.back().end = end;
  }
  for (const Page& page : pages) {
    for (size_t at = page.first; at < page.end; ++at) steps[at].step.batch = batch_from(steps, at, page.end);
  }
  return pages;
}

void write_page(char* to, const PageShape& shape, const std::vector<RecordedStep>& steps, const Page& page,
                bool more) {
  PageHeader header;
  header.steps = uint32_t(page.end - page.first);
  header.more = more;
  std::memcpy(to, &header, sizeof header);
  auto* const strides = reinterpret_cast<uint64_t*>(to + shape.strides_at());
  uint32_t items = 0, plain = 0, packets = 0;
  size_t loop = 0;
  for (size_t at = page.first; at < page.end; ++at) {
    const RecordedStep& from = steps[at];
    ProgramStep step = from.step;
    step.first_item = uint16_t(items);
    step.first_plain = uint16_t(plain);
    step.first_packets = uint16_t(packets);
    std::memcpy(to + 16 + (at - page.first) * sizeof step, &step, sizeof step);
    if (step.kind == ProgramStepKind::loop) loop = at;
    for (SyncItem item : from.items) {
      if (step.kind == ProgramStepKind::repeat) item.repeat.steps = at - loop - 1;
      if (step.kind == ProgramStepKind::push && item.push.from != ~0u) {
        item.push.from += plain;
        item.push.to += plain;
      }
      std::memcpy(to + shape.items_at() + items++ * sizeof item, &item, sizeof item);
    }
    if (!from.plain_strides.empty()) {
      std::copy(from.plain_strides.begin(), from.plain_strides.end(), strides + plain);
      std::copy(from.packet_strides.begin(), from.packet_strides.end(), strides + shape.plain + packets);
    }
    for (const ProgramPlace& place : from.plain)
      std::memcpy(to + shape.plain_at() + plain++ * sizeof place, &place, sizeof place);
    for (const ProgramPlace& place : from.packets) {
      std::memcpy(to + shape.packets_at() + packets++ * sizeof place, &place, sizeof place);
    }
  }
}

}  // namespace chorale::lowering
