#pragma once
/// \file
/// Holds the common part of semantics.hpp's machines, which execute nothing and only record.

#include <cstdint>
#include <memory>
#include <vector>

#include "packet_form.hpp"
#include "semantics.hpp"

namespace chorale::lowering {

/// Serves as the base of machines (see semantics.hpp) that record a block. Derived classes record the steps.
class Recording {
 public:
  const image::Image& image() const { return image_; }
  uint64_t bank(uint64_t bytes) const { return even_ ? bytes : 0; }

  image::Range range(uint64_t bytes, const op::Slice& slice) const {
    return image::range_of(bytes, turn_first_, turn_bytes_, slice.index, slice.size, image_.alignment);
  }
  void turn(uint64_t first, uint64_t bytes) {
    turn_first_ = first;
    turn_bytes_ = bytes;
  }

  template <class T, class Item>
  T* list(uint32_t n, const Item& item) {
    auto items = std::make_shared<std::vector<T>>();
    items->reserve(n);
    for (uint32_t at = 0; at < n; ++at) items->push_back(item(at));
    lists_.push_back(items);
    return items->data();
  }
  void release_lists() { lists_.clear(); }

  template <class F>
  void with_packet(const F& f) const {
    with_packet_form(packet_, f);
  }

  void enter(uint32_t record) { record_ = record - first_record_; }

 protected:
  /// \param even launches of even number use the second bank of scratch
  Recording(const image::Image& image, PacketForm packet, bool even)
      : image_(image), packet_(packet), even_(even) {}

  void begin(uint32_t block) { first_record_ = image_.blocks[block].first; }
  uint32_t first_record() const { return first_record_; }
  uint32_t record() const { return record_; }  ///< the position of the record in its block
  PacketForm packet() const { return packet_; }

  const image::Image image_;

 private:
  const PacketForm packet_;
  const bool even_;
  std::vector<std::shared_ptr<void>> lists_;
  uint32_t first_record_ = 0, record_ = 0;
  uint64_t turn_first_ = 0, turn_bytes_ = 0;
};

}  // namespace chorale::lowering
