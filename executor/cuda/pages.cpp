#include "pages.hpp"

#include <cstring>

namespace chorale::cuda {
namespace {

PageShape plus(PageShape shape, const Step& step) {
  ++shape.steps;
  shape.items += uint32_t(step.items.size());
  shape.plain += uint32_t(step.plain.size());
  shape.packets += uint32_t(step.packets.size());
  return shape;
}

}  // namespace

std::vector<Page> paginate(std::vector<Step>& steps, uint64_t page_bytes) {
  std::vector<Page> pages(1);
  for (size_t at = 0; at < steps.size(); ++at) {
    const PageShape more = plus(pages.back().shape, steps[at]);
    if (more.shared_bytes() > page_bytes && pages.back().end != pages.back().first) {
      pages.push_back({at, at, {}});
    }
    pages.back().shape = plus(pages.back().shape, steps[at]);
    pages.back().end = at + 1;
  }
  for (const Page& page : pages) {
    for (size_t at = page.first; at < page.end; ++at) steps[at].step.batch = batch_from(steps, at, page.end);
  }
  return pages;
}

void write_page(char* to, const PageShape& shape, const std::vector<Step>& steps, const Page& page,
                bool more) {
  PageHeader header;
  header.steps = uint32_t(page.end - page.first);
  header.more = more;
  std::memcpy(to, &header, sizeof header);
  uint32_t items = 0, plain = 0, packets = 0;
  for (size_t at = page.first; at < page.end; ++at) {
    const Step& from = steps[at];
    TapeStep step = from.step;
    step.first_item = uint16_t(items);
    step.first_plain = uint16_t(plain);
    step.first_packets = uint16_t(packets);
    std::memcpy(to + 16 + (at - page.first) * sizeof step, &step, sizeof step);
    for (TapeItem item : from.items) {
      if (step.kind == TapeKind::push && item.push.from != ~0u) {
        item.push.from += plain;
        item.push.to += plain;
      }
      std::memcpy(to + shape.items_at() + items++ * sizeof item, &item, sizeof item);
    }
    for (const TapePlace& place : from.plain)
      std::memcpy(to + shape.plain_at() + plain++ * sizeof place, &place, sizeof place);
    for (const TapePlace& place : from.packets) {
      std::memcpy(to + shape.packets_at() + packets++ * sizeof place, &place, sizeof place);
    }
  }
}

}  // namespace chorale::cuda
