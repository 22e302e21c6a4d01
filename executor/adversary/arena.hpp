#pragma once
/// \file
/// An Arena lays out all memory that a plan touches as cells with addresses. The addresses only distinguish
/// cells. There is no memory at these addresses.

#include <algorithm>
#include <cstdint>
#include <vector>

namespace chorale::adversary {

/// Represents a cell and the way in which it is accessed. Cells of packets are numbered by their payload.
using Ref = uint32_t;
inline constexpr Ref no_cell = 0x3fffffff;    ///< a place past the end of the data, which reads as zero and
                                              ///< drops writes
inline constexpr Ref by_switch = 0x80000000;  ///< a flag: the access is through a switch channel
inline constexpr Ref is_coded = 0x40000000;   ///< a flag: the access encodes or decodes
constexpr uint32_t cell_of(Ref ref) { return ref & ~(by_switch | is_coded); }

/// Represents a piece of memory of one rank.
struct Area {
  enum class Kind : uint8_t { input, output, scratch, packets, room };
  Kind kind = Kind::input;
  uint32_t rank = 0;
  uint64_t base = 0, bytes = 0;  ///< for packets, the bytes of their slots
  uint32_t first = 0, cells = 0;

  /// Returns the address, or nullptr if the area is empty, because an application may omit the address of an
  /// empty buffer.
  char* address() const { return bytes ? reinterpret_cast<char*>(base) : nullptr; }
};

class Arena {
 public:
  explicit Arena(uint32_t cell_bytes) : cell_bytes_(cell_bytes) {}

  const Area& add(Area::Kind kind, uint32_t rank, uint64_t bytes, uint64_t payload) {
    Area area{kind, rank, next_, bytes, cells_, uint32_t(payload / cell_bytes_)};
    next_ += (bytes + gap) / gap * gap + gap;  // leave a gap, so that an access past the end does not hit
                                               // another area
    cells_ += area.cells;
    areas_.push_back(area);
    return areas_.back();
  }

  /// Returns the area that holds `bytes` bytes at an address, or null if none does.
  const Area* find(uint64_t address, uint64_t bytes) const {
    auto behind = std::upper_bound(areas_.begin(), areas_.end(), address,
                                   [](uint64_t at, const Area& area) { return at < area.base; });
    if (behind == areas_.begin()) return nullptr;
    const Area& area = *--behind;
    const uint64_t offset = address - area.base;
    return offset <= area.bytes && bytes <= area.bytes - offset ? &area : nullptr;
  }

  const std::vector<Area>& areas() const { return areas_; }
  uint32_t cell_bytes() const { return cell_bytes_; }
  uint32_t cells() const { return cells_; }

 private:
  static constexpr uint64_t gap = 4096;
  uint32_t cell_bytes_;
  uint64_t next_ = gap;
  uint32_t cells_ = 0;
  std::vector<Area> areas_;
};

}  // namespace chorale::adversary
