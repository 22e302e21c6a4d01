#pragma once
/// \file
/// A packet carries data together with a flag, so that it needs no signal. There are three forms.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

namespace chorale {

/// Says how packets carry their flag. ll8 and ll16 use half of 8 or of 16 bytes for it. ll128 uses 16 bytes
/// of a line of 128, and needs NVLink between GPUs.
enum class PacketForm : uint8_t { ll8, ll16, ll128 };
inline constexpr std::string_view packet_form_names[] = {"ll8", "ll16", "ll128"};

/// Names the setting that lets the size of the message choose the form, see packet_form_by_size().
inline constexpr std::string_view packet_form_auto = "auto";

/// Returns the form named `word`, if any.
constexpr std::optional<PacketForm> packet_form_of(std::string_view word) {
  for (size_t form = 0; form < std::size(packet_form_names); ++form) {
    if (packet_form_names[form] == word) return PacketForm(form);
  }
  return std::nullopt;
}

/// Gives the granularity of a packet form: `bytes` of payload take `stored` bytes of scratch.
struct PacketPayload {
  uint32_t bytes, stored;
};
constexpr PacketPayload payload_of(PacketForm form) {
  return form == PacketForm::ll128 ? PacketPayload{112, 128} : PacketPayload{16, 32};
}

}  // namespace chorale
